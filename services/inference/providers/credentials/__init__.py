"""Credentials of clouds: found by the clouds' own libraries, and renewed ahead of their end."""

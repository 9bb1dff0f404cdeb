"""Stored chat completions of users."""

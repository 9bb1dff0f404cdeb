"""Finds archived turns by what they say."""

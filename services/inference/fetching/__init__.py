"""Fetching what a caller names by its address: the one place where a caller makes us connect."""

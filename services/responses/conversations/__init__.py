"""Stored conversations: lists of items that responses are generated from and appended to."""

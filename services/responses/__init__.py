"""Stored responses: what callers of OpenAI's responses have kept, for a time, by user."""

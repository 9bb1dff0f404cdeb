"""Stored chat completions in OpenAI's format: translation of requests and responses."""

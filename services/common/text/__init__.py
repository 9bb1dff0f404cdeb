"""Texts and their forms: JSON, MIME types, vectors, estimates of tokens. Pure."""

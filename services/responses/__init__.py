"""Stored responses: what callers of OpenAI's responses have kept, for a time, by user.

They know nothing of memories, and share with them what a user may store (`services.common.owners`).
"""

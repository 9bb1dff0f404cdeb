"""Stored responses of OpenAI's Responses API, kept for their user for a limited time.

They are independent of memories, but share a user's storage quota with them
(`services.common.storage.owners`).
"""

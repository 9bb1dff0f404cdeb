"""Compaction: a summary in place of the older part of a conversation that has grown too long."""

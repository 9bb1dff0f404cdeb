"""Rules of the transcript: messages, turns, windows, and how a request merges. Pure."""

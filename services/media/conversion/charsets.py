"""Guess the character encoding of text."""

import chardet


def guess(content: bytes) -> str | None:
    """Return the name of the likely encoding, or None."""
    return chardet.detect(content)["encoding"]

"""Texts from outside, made fit to be kept, logged and repeated.

Callers and providers send names of any length and with any characters in them. What is
kept or repeated of one is bounded here, wherever it came in.
"""

MAX_NAME = 256  # characters of a name: of a model, a memory, a step
_QUOTED = 128  # characters of a name that a message repeats
_CUT = "…"


def cut(text: str, most: int) -> str:
    """Return the text, or its first `most` characters and an ellipsis where it has more."""
    return text if len(text) <= most else text[:most] + _CUT


def quoted(name: str) -> str:
    """Return a name as a message repeats it: in quotes, cut, unprintable characters escaped."""
    return repr(cut(name, _QUOTED))


def fit(text: str, most_bytes: int) -> str:
    """Return the text as valid UTF-8 of at most `most_bytes`; what is cut ends in an ellipsis.

    Half of a surrogate pair, which has no UTF-8, becomes a question mark.
    """
    if len(text) <= most_bytes and text.isascii():
        return text
    # No character has less than one byte, so the rest need not be encoded to be cut off.
    encoded = text[: most_bytes + 1].encode(errors="replace")
    if len(encoded) <= most_bytes:
        return encoded.decode()
    kept = encoded[: most_bytes - len(_CUT.encode())]
    return kept.decode(errors="ignore") + _CUT

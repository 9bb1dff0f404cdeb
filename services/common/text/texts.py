"""Sanitizing of external texts before they are stored, logged or repeated in messages.

Callers and providers send names of any length and with any characters. These functions limit the
part that is stored or repeated.
"""

import re
import unicodedata
from typing import Literal

MAX_NAME = 256  # characters of the name of a model, a memory or a step
_QUOTED = 128  # characters of a name that a message repeats
_CUT = "…"
INT64_DIGITS = 18  # of numbers that 64 bits hold, such as sizes of files
# Maximum number of characters of a text that is normalised; longer texts stay unchanged.
_MAX_NORMALIZED = 1 << 20
# The class contains all combining characters; so many in a row are not a letter with accents.
_LONG_RUN = re.compile(r"([^\w\s\x00-\x7f]{32,})")


def cut(text: str, most: int) -> str:
    """Return the text, truncated to `most` characters and an ellipsis if it is longer."""
    return text if len(text) <= most else text[:most] + _CUT


def parse_digits(text: str, most: int = 9) -> int | None:
    """Return the number that 1 to `most` ASCII digits form; None for any other text.

    `str.isdigit` also accepts characters that `int` rejects, such as "²", and `int` rejects more
    than 4,300 digits.
    """
    return int(text) if len(text) <= most and text.isascii() and text.isdecimal() else None


def elide_middle(text: str, most: int, gap: str = f"\n{_CUT}\n") -> str:
    """Return the text, or its beginning and end of `most` characters together, with a gap."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}{gap}{text[-half:]}"


def quoted(name: str) -> str:
    """Return a name for a message: quoted, truncated, with unprintable characters escaped."""
    return repr(cut(name, _QUOTED))


def printable(text: str) -> str:
    """Return the text with its control and other unprintable characters escaped."""
    return text if text.isprintable() else repr(text)[1:-1]


def fit(text: str, most_bytes: int) -> str:
    """Return the text as valid UTF-8 of at most `most_bytes`; truncated text ends in an ellipsis.

    A lone surrogate, which has no UTF-8 encoding, becomes a question mark.
    """
    if len(text) <= most_bytes and text.isascii():
        return text
    # Every character has at least one byte, so the rest is cut off without encoding it.
    encoded = text[: most_bytes + 1].encode(errors="replace")
    if len(encoded) <= most_bytes:
        return encoded.decode()
    start = encoded[: most_bytes - len(_CUT.encode())]
    return start.decode(errors="ignore") + _CUT


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return the text in a Unicode normal form, in a time linear in its length.

    Sorting combining characters takes quadratic time, in which nothing else of the process runs.
    Runs of 32 or more, which no language has (UAX #15 allows 30 in its stream-safe format), stay
    unchanged, and so does a text of more than a million characters.
    """
    if text.isascii() or len(text) > _MAX_NORMALIZED:
        return text
    if not _LONG_RUN.search(text):
        return unicodedata.normalize(form, text)
    # Every other piece is a long run.
    pieces = _LONG_RUN.split(text)
    pieces[::2] = [unicodedata.normalize(form, piece) for piece in pieces[::2]]
    return "".join(pieces)

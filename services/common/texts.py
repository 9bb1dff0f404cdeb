"""Cleaning of texts from outside before they are stored, logged or repeated.

Callers and providers send names of any length and with any characters in them. What is
kept or repeated of one is bounded here, wherever it came in.
"""

import re
import unicodedata
from typing import Literal

MAX_NAME = 256  # characters of a name: of a model, a memory, a step
_QUOTED = 128  # characters of a name that a message repeats
_CUT = "…"
# Characters of a text that is normalised; what is longer stays as it is.
_MAX_NORMALIZED = 1 << 20
# Every combining character is one of these; so many in a row are not a letter with its accents.
_LONG_RUN = re.compile(r"([^\w\s\x00-\x7f]{32,})")


def cut(text: str, most: int) -> str:
    """Return the text, or its first `most` characters and an ellipsis where it has more."""
    return text if len(text) <= most else text[:most] + _CUT


def elide_middle(text: str, most: int, gap: str = f"\n{_CUT}\n") -> str:
    """Return the text, or `most` characters of its beginning and its end, with a gap between."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}{gap}{text[-half:]}"


def quoted(name: str) -> str:
    """Return a name as a message repeats it: in quotes, cut, unprintable characters escaped."""
    return repr(cut(name, _QUOTED))


def printable(text: str) -> str:
    """Return the text with its control and other unprintable characters escaped."""
    return text if text.isprintable() else repr(text)[1:-1]


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


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return the text in a normal form of Unicode, in a time linear in its length.

    Putting combining characters in order takes a square of their number, and nothing else of
    the process runs meanwhile. 32 and more in a row, which no language has (UAX #15 allows 30
    in its stream-safe format), stay as they are, and so does a text of more than a million
    characters.
    """
    if text.isascii() or len(text) > _MAX_NORMALIZED:
        return text
    if not _LONG_RUN.search(text):
        return unicodedata.normalize(form, text)
    # Every other piece is a long run.
    pieces = _LONG_RUN.split(text)
    pieces[::2] = [unicodedata.normalize(form, piece) for piece in pieces[::2]]
    return "".join(pieces)

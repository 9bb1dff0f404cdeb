"""JSON objects whose values stay bytes until somebody reads them. Pure.

`msgspec` checks that they are JSON in one scan, without building them.
"""

from typing import Final

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

NULL: Final = Raw(b"null")
_QUOTE: Final = ord('"')
_EMPTY_SIZE: Final = len(b'""')
_FIELDS = Decoder(dict[str, Raw])
_TEXT = Decoder(str)


def fields_of(body: bytes) -> dict[str, Raw] | None:
    """Return the members of a JSON object; None where the body is something else.

    Numbers may be beyond the range of doubles.
    """
    try:
        fields = _FIELDS.decode(body)
        # Strings that are not built are not checked to be UTF-8.
        if not body.isascii():
            body.decode()
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return fields


def is_text(value: Raw) -> bool:
    """Return whether a value is a string."""
    return memoryview(value)[0] == _QUOTE


def is_filled(value: Raw) -> bool:
    """Return whether a value is a string that is not empty."""
    return len(value) > _EMPTY_SIZE and memoryview(value)[0] == _QUOTE


def text_of(value: Raw) -> str:
    """Return the text of a string."""
    return _TEXT.decode(value)

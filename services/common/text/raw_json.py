"""JSON objects whose values stay bytes until they are read. Pure.

`msgspec` validates them in one scan, without building Python objects.
"""

from typing import Final

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

NULL: Final = Raw(b"null")
_QUOTE: Final = ord('"')
_EMPTY_SIZE: Final = len(b'""')
# First bytes of white space and of escapes: ASCII's, and those of U+00A0, U+2000 and U+3000 on.
_SPACES: Final = b" \\\xc2\xe1\xe2\xe3"
_FIELDS = Decoder(dict[str, Raw])
_TEXT = Decoder(str)


def fields_of(body: bytes) -> dict[str, Raw] | None:
    """Return the members of a JSON object, or None if the body is not a JSON object.

    Numbers may exceed the range of doubles.
    """
    try:
        fields = _FIELDS.decode(body)
        # msgspec does not check that skipped strings are valid UTF-8.
        if not body.isascii():
            body.decode()
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return fields


def is_text(value: Raw) -> bool:
    """Return whether a value is a string."""
    return memoryview(value)[0] == _QUOTE


def is_filled(value: Raw) -> bool:
    """Return whether a value is a non-empty string."""
    return len(value) > _EMPTY_SIZE and memoryview(value)[0] == _QUOTE


def has_words(value: Raw) -> bool:
    """Return whether a value is a string of more than white space."""
    if not is_filled(value):
        return False
    # Nearly all texts begin with none of these.
    return memoryview(value)[1] not in _SPACES or not text_of(value).isspace()


def text_of(value: Raw) -> str:
    """Return the text of a string."""
    return _TEXT.decode(value)

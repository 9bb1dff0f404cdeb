"""Conversations that go on as their caller wrote them: what the dialects have in common. Pure.

`msgspec` checks the form of a conversation in one scan, without building what nobody reads: texts
stay bytes of the body. They are JSON strings, which say one thing to every reader. Objects are
written anew from what was checked, so that of a member that is there twice no other value goes on.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

import orjson
from msgspec import DecodeError, Meta, Raw
from msgspec.json import Decoder
from pydantic import BaseModel
from pydantic_core import from_json

from facade.dialects.validation import exact_json

Filled = Annotated[str, Meta(min_length=1)]

NULL: Final = Raw(b"null")
# Lists of tools that are kept, as agents send the same with every request, and bytes of each.
_KEPT_TOOLS: Final = 32
_KEPT_BYTES: Final = 64 << 10
_QUOTE: Final = ord('"')
_EMPTY_SIZE: Final = len(b'""')
_FIELDS = Decoder(dict[str, Raw])
_TEXT = Decoder(str)
_Wire = TypeVar("_Wire", bound=BaseModel)


class Source(NamedTuple):
    """A conversation that goes on as its caller wrote it.

    Attributes:
        fields: what is sent, by the names of a body's fields.
        parts: JSON of the conversation, for those who read it.
        only_maker: whether only the dialect's own maker takes it so.
    """

    fields: Mapping[str, orjson.Fragment]
    parts: Mapping[str, bytes]
    only_maker: bool


class UnreadBody(Generic[_Wire]):
    """A body whose conversation is parsed when somebody reads it."""

    def __init__(self, wire: _Wire, parts: Mapping[str, bytes]) -> None:
        """Return a body of which `wire` lacks these parts, in JSON."""
        self._wire = wire
        self._parts = parts

    def read(self) -> _Wire:
        """Return the whole body."""
        parts, self._parts = self._parts, {}
        for name, json in parts.items():
            # Of a member that is there twice the first value may be a number of any size.
            setattr(self._wire, name, from_json(json))
        return self._wire


def fields_of(body: bytes) -> dict[str, Raw] | None:
    """Return the fields of a JSON object; None where the body is something else.

    The values are checked to be JSON. In it numbers may be beyond the range of doubles.
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


def rewritten(value: Raw) -> Raw | None:
    """Return an object written anew; None where it is another value, or would not stay the same."""
    parsed = exact_json(bytes(value))
    json = _written(parsed) if isinstance(parsed, dict) else None
    return None if json is None else Raw(json)


def tools_reader(are_plain: Callable[[Any], bool]) -> Callable[[Raw], bytes | None]:
    """Return a function that returns tools in JSON, written anew, b"" for none.

    None where they are not plain, or would not stay the same.
    """

    def read(given: bytes) -> bytes | None:
        tools = exact_json(given)
        if not are_plain(tools):
            return None
        return _written(tools) if tools else b""

    kept = lru_cache(_KEPT_TOOLS)(read)

    def read_kept(given: Raw) -> bytes | None:
        if given == NULL:
            return b""
        return (kept if len(given) <= _KEPT_BYTES else read)(bytes(given))

    return read_kept


def _written(value: object) -> bytes | None:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # nested too deeply to be written
        return None

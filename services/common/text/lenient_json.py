"""JSON that some servers send although it is not valid. Pure.

`NaN` and infinite numbers become null, a byte order mark is ignored, and half of a surrogate pair
becomes U+FFFD, unless the other half follows at the same place of the next event: servers that
decode a model's output token by token split characters outside of the basic plane.
"""

import json
from codecs import BOM_UTF8
from typing import Any

_Path = tuple[str | int, ...]
# Marks of the deviations above. A text without any of them is invalid in another way.
_MARKS = (b"NaN", b"Infinity", b"\\ud", b"\\uD")
_REPLACEMENT = "\ufffd"
# Fields of events that no server writes token by token: half of a character in one stays there.
_WHOLE_FIELDS = frozenset({"type", "object", "id", "role", "name", "model", "status"})


class SplitCharacters:
    """The JSON values of one stream, with characters joined that two values contain halves of."""

    __slots__ = ("_halves",)

    def __init__(self) -> None:
        self._halves: dict[_Path, str] = {}  # first halves, by the place of their strings

    @property
    def is_waiting(self) -> bool:
        """Whether the first half of a character has been received."""
        return bool(self._halves)

    def parse(self, data: bytes) -> Any:
        """Parse a text that is not valid JSON; None if it is invalid in an unknown way."""
        value = _loads(data)
        return None if value is None else _mended(value, (), self._halves)

    def complete(self, value: Any) -> None:
        """Mark the halves in a valid value's strings as incomplete: it has no second halves."""
        for path in tuple(self._halves):
            parent = _at(value, path[:-1])
            text = _at(parent, path[-1:])
            if isinstance(text, str) and text:
                del self._halves[path]
                parent[path[-1]] = _REPLACEMENT + text


def parse_leniently(data: bytes) -> Any:
    """Parse a text that is not valid JSON; None if it is invalid in an unknown way."""
    value = _loads(data)
    return None if value is None else _mended(value, (), None)


def _loads(data: bytes) -> Any:
    """Parse a text with one of the deviations that are accepted; None if it has none."""
    text = data.removeprefix(BOM_UTF8)
    if len(text) == len(data) and not any(mark in data for mark in _MARKS):
        return None
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None


def _mended(value: Any, path: _Path, halves: dict[_Path, str] | None) -> Any:
    """Return the value at a path without halves of surrogate pairs.

    Args:
        value: parsed JSON.
        path: its place.
        halves: last halves of earlier values by path, which are joined with the strings there, and
            replaced by those of this value; None to replace all halves by U+FFFD.
    """
    if isinstance(value, dict):
        return {
            _without_halves(name): _mended(inner, (*path, name), halves)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_mended(inner, (*path, index), halves) for index, inner in enumerate(value)]
    if not isinstance(value, str) or not value:
        return value
    if halves is not None and not (path and path[-1] in _WHOLE_FIELDS):
        value = halves.pop(path, "") + value
        if "\ud800" <= value[-1] <= "\udbff":
            halves[path] = value[-1]
            value = value[:-1]
    return _without_halves(value)


def _without_halves(text: str) -> str:
    """Return a text with pairs of halves joined, and other halves replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _at(value: Any, path: _Path) -> Any:
    """Return the value at a path, None if there is none."""
    for step in path:
        match value:
            case dict():
                value = value.get(step)
            case list() if isinstance(step, int) and step < len(value):
                value = value[step]
            case _:
                return None
    return value

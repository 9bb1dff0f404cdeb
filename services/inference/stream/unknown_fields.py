"""Accumulation of unknown fields that arrive in pieces, in linear time. Pure.

Unknown fields are those without a field in the canonical messages.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Opaque
from services.inference.stream.pieces import keep

# Strings that identify something and are not a part of its content: they arrive whole.
_WHOLE = frozenset({"id", "type", "format", "role", "name", "mime_type", "status", "object"})
# Items at the end of a list that may be continued; others are not searched.
_MAX_OPEN = 16


class _Text:
    """A string that may be continued."""

    __slots__ = ("pieces",)

    def __init__(self, text: str) -> None:
        self.pieces = [text]


class UnknownFields:
    """Merges JSON objects of unknown fields that arrive one after the other.

    Args:
        joins: whether texts and lists are joined, as in a message; a list item continues the
            earlier item of the same `index` and `type`. Otherwise, and for any other value, a new
            value replaces the old one.
    """

    __slots__ = ("_dialect", "_fields", "_joins")

    def __init__(self, *, joins: bool) -> None:
        self._joins = joins
        self._dialect = conversation_pb2.DIALECT_UNSPECIFIED
        self._fields: dict[str, Any] = {}

    def __bool__(self) -> bool:
        return bool(self._fields)

    def add(self, part: Opaque) -> None:
        """Merge the next object; an empty `part` is ignored.

        Raises:
            ValueError: the JSON is not an object.
        """
        if not part.json:
            return
        fields = orjson.loads(part.json)
        if not isinstance(fields, dict):
            raise ValueError("no JSON object")
        self._dialect = part.dialect
        if self._joins:
            _merge(self._fields, fields)
        else:
            self._fields.update(fields)

    def put_into(self, whole: Opaque) -> None:
        """Write the merged object into `whole`."""
        whole.dialect = self._dialect
        whole.json = orjson.dumps(self._fields, default=_joined)


def _joined(text: object) -> str:
    if not isinstance(text, _Text):
        raise TypeError
    return "".join(text.pieces)


def _merge(into: dict[str, Any], fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        before = into.get(name)
        if value is None:
            into.setdefault(name, None)
        elif isinstance(value, str) and name not in _WHOLE and isinstance(before, _Text):
            keep(before.pieces, value)
        elif isinstance(value, dict) and isinstance(before, dict):
            _merge(before, value)
        elif isinstance(value, list) and isinstance(before, list):
            _extend(before, value)
        else:
            into[name] = _begun(value, name)


def _extend(into: list[Any], items: Iterable[Any]) -> None:
    open_items = [item for item in into[-_MAX_OPEN:] if isinstance(item, dict) and "index" in item]
    for item in items:
        before = _goes_on(item, open_items)
        if before is None:
            into.append(_begun(item))
        else:
            _merge(before, item)


def _goes_on(item: Any, open_items: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the known item that another one continues, or None."""
    match item:
        case {"index": int(index)}:
            fitting = (
                before
                for before in reversed(open_items)
                if before["index"] == index and item.get("type") in (None, before.get("type"))
            )
            return next(fitting, None)
    return None


def _begun(value: Any, name: str = "") -> Any:
    """Return a value as one that may be continued."""
    if isinstance(value, dict):
        begun: dict[str, Any] = {}
        _merge(begun, value)
        return begun
    if isinstance(value, list):
        return [_begun(item) for item in value]
    if isinstance(value, str) and name and name not in _WHOLE:
        return _Text(value)
    return value

"""Filters on the attributes of files. Pure.

Source: OpenAI's API reference, "ComparisonFilter" and "CompoundFilter".
"""

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any, Final

import orjson

from services.common.errors import GatewayError, invalid

Scalar = str | int | float | bool
Attributes = Mapping[str, Scalar]
# Returns whether a file with these attributes is searched.
Filter = Callable[[Attributes], bool]

MAX_BYTES: Final = 16 << 10
MAX_COMPARISONS: Final = 100
MAX_DEPTH: Final = 8
MAX_KEY: Final = 64
MAX_VALUE: Final = 512
MAX_ATTRIBUTES: Final = 16
MAX_VALUES: Final = 1_000
_ORDERS: Final = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
_COMPARISONS: Final = ("eq", "ne", *_ORDERS, "in", "nin")
_COMPOUNDS: Final = ("and", "or")


def parse_filter(json: bytes) -> Filter:
    """Parse a filter.

    Raises:
        GatewayError: invalid, with the path of the field, which begins with `filters`.
    """
    if len(json) > MAX_BYTES:
        raise invalid("filters", f"filters: must have at most {MAX_BYTES:,} bytes")
    try:
        value = orjson.loads(json)
    except orjson.JSONDecodeError:
        raise invalid("filters", "filters: must be a JSON object") from None
    return _Parser().filter(value, "filters", 1)


def check_attributes(json: bytes, path: str) -> bytes:
    """Return the attributes of a file as they are stored.

    Raises:
        GatewayError: invalid, with the path of the field.
    """
    if not json:
        return b""
    try:
        value = orjson.loads(json)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict) or len(value) > MAX_ATTRIBUTES:
        raise invalid(path, f"{path}: must be an object of at most {MAX_ATTRIBUTES} attributes")
    for key, one in value.items():
        if not 1 <= len(key) <= MAX_KEY:
            raise invalid(path, f"{path}: names must have 1 to {MAX_KEY} characters")
        if not _is_scalar(one):
            raise _not_scalar(f"{path}.{key}")
    return orjson.dumps(value) if value else b""


class _Parser:
    """Parses one filter, and counts its comparisons."""

    def __init__(self) -> None:
        self._count = 0

    def filter(self, value: Any, path: str, depth: int) -> Filter:
        """Parse a comparison or a compound."""
        if not isinstance(value, dict):
            raise invalid(path, f"{path}: must be an object")
        kind = value.get("type")
        if kind in _COMPOUNDS:
            return self._compound(value, path, depth)
        if kind not in _COMPARISONS:
            kinds = ", ".join((*_COMPARISONS, *_COMPOUNDS))
            raise invalid(f"{path}.type", f"{path}.type: must be one of {kinds}")
        self._count += 1
        if self._count > MAX_COMPARISONS:
            raise invalid(path, f"{path}: a filter has at most {MAX_COMPARISONS} comparisons")
        key = value.get("key")
        if not (isinstance(key, str) and 1 <= len(key) <= MAX_KEY):
            name = f"{path}.key"
            raise invalid(name, f"{name}: must be a string of 1 to {MAX_KEY} characters")
        return _comparison(kind, key, value.get("value"), f"{path}.value")

    def _compound(self, value: Mapping[str, Any], path: str, depth: int) -> Filter:
        path = f"{path}.filters"
        if depth > MAX_DEPTH:
            raise invalid(path, f"{path}: filters are nested at most {MAX_DEPTH} deep")
        given = value.get("filters")
        if not isinstance(given, list) or not given:
            raise invalid(path, f"{path}: must be an array of at least one filter")
        if len(given) > MAX_COMPARISONS:
            raise invalid(path, f"{path}: must have at most {MAX_COMPARISONS} filters")
        parts = [
            self.filter(part, f"{path}[{index}]", depth + 1) for index, part in enumerate(given)
        ]
        if value["type"] == "and":
            return lambda attributes: all(part(attributes) for part in parts)
        return lambda attributes: any(part(attributes) for part in parts)


def _comparison(kind: str, key: str, value: Any, path: str) -> Filter:
    if kind in ("in", "nin"):
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_VALUES:
            raise invalid(path, f"{path}: must be an array of 1 to {MAX_VALUES} values")
        for index, one in enumerate(value):
            if not _is_scalar(one):
                raise _not_scalar(f"{path}[{index}]")
        among = frozenset(map(_typed, value))
        is_in = kind == "in"
        return lambda attributes: (key in attributes and _typed(attributes[key]) in among) is is_in
    if not _is_scalar(value):
        raise _not_scalar(path)
    typed = _typed(value)
    if kind in ("eq", "ne"):
        is_equal = kind == "eq"
        return lambda attributes: (
            (key in attributes and _typed(attributes[key]) == typed) is is_equal
        )
    order = _ORDERS[kind]
    return lambda attributes: (
        key in attributes
        and _typed(attributes[key])[0] is typed[0]
        and bool(order(attributes[key], value))
    )


def _typed(value: Scalar) -> tuple[type, Scalar]:
    """Return a value with its kind: true is not equal to 1, but 1 is to 1.0."""
    if isinstance(value, bool):
        return bool, value
    return (str, value) if isinstance(value, str) else (float, value)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_VALUE
    return isinstance(value, int | float)


def _not_scalar(path: str) -> GatewayError:
    return invalid(
        path,
        f"{path}: must be a string of at most {MAX_VALUE} characters, a number, or true or false",
    )

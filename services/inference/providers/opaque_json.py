"""Opaque JSON of callers: read, checked, and written into the body of a request. Pure."""

import json as python_json
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from services.common.errors import invalid

Json = dict[str, Any]


def read_object(json: bytes | str, path: str) -> Json:
    """Parse the JSON object at `path`.

    Raises:
        GatewayError: invalid, if the JSON is not an object.
    """
    try:
        value = orjson.loads(json)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise invalid(path, f"{path}: must be a JSON object")
    return value


def as_checked(json: bytes, value: Json) -> Json | orjson.Fragment:
    """Return the JSON of a parsed object, to be sent unchanged, or else the object.

    In JSON with a member twice, another parser may read the other value: such JSON is written
    again. In any other JSON, numbers of any size stay as they are.

    Args:
        json: the JSON.
        value: the object that was parsed from it.
    """
    try:
        if orjson.dumps(value) != json:
            python_json.loads(json, object_pairs_hook=_without_repeated)
    except (orjson.JSONEncodeError, ValueError, RecursionError):
        return value
    return orjson.Fragment(json)


def _without_repeated(members: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in members}) < len(members):
        raise ValueError("a repeated member")


def write_body(body: Json) -> bytes:
    """Serialize the body of a request.

    Opaque JSON of gRPC callers may be nested more deeply than can be serialized; the facade rejects
    such bodies before.

    Raises:
        GatewayError: invalid, if the body is nested too deeply.
    """
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        if "ecursion" not in str(error):
            raise
        raise invalid("", "the request is nested too deeply") from None


def value_at(fields: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field, or of one below it (`generationConfig.speech`); None without."""
    if path in fields:
        return fields[path]
    value: Any = fields
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def unknown_paths(fields: Mapping[str, Any], covered: Iterable[str]) -> Iterator[str]:
    """Yield the paths of an opaque object's fields that have no canonical counterpart.

    Args:
        fields: the object.
        covered: paths of fields that have one, as `Opaque.covered_paths`; gRPC callers choose them.
    """
    ordered = sorted(covered)
    exact = frozenset(ordered)
    waiting = deque([("", fields)])
    while waiting:
        place, holder = waiting.popleft()
        for name, value in holder.items():
            path = place + name
            if value is None or path in exact:
                continue
            if isinstance(value, dict) and _has_prefix(ordered, f"{path}."):
                waiting.append((f"{path}.", value))
            else:
                yield path


def _has_prefix(ordered: Sequence[str], prefix: str) -> bool:
    """Return whether one of the sorted texts begins with a prefix."""
    place = bisect_left(ordered, prefix)
    return place < len(ordered) and ordered[place].startswith(prefix)

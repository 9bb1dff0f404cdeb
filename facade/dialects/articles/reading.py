"""Parsing of requests: from bytes to validated fields.

Each rule is checked in one place. This module checks that the body is a JSON object (40001), that
required fields are present (40004), that paths are lists of indices (40002), and the types of other
fields with a proto field of their own: ids, names and numbers (40003). The service checks the rest:
which fields exclude each other, how many are required, and all fields that are sent as JSON
(blocks, leaves, styles, references).

Locations are JSON pointers (RFC 6901).
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from facade.dialects.articles.errors import Code, request_error
from facade.dialects.validation import words
from services.common.errors import GatewayError

# Maximum length of a caller-defined name in an error.
_LONGEST_NAME = 128
_PATHS = ("path", "leafPath")

_Body = TypeVar("_Body", bound=BaseModel)


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises:
        GatewayError: 40001; 40003 for a string with half of a surrogate pair.
    """
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        _check_surrogates(body)
        raise request_error(Code.BODY, "", f"is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise request_error(Code.BODY, "", "must be a JSON object")
    return value


def read(model: type[_Body], fields: dict[str, Any]) -> _Body:
    """Validate the fields of a request.

    Raises:
        GatewayError: 40002, 40003 or 40004, naming the first invalid field.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise _to_gateway_error(error.errors(include_url=False, include_input=False)[0]) from None


def to_json(value: object, at: str) -> bytes:
    """Serialize a parsed JSON value.

    Raises:
        GatewayError: 40003, if it is nested too deeply to be serialized.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise request_error(Code.SCHEMA, at, "is nested too deeply") from None


def pointer(location: Sequence[int | str]) -> str:
    """Return a location as a JSON pointer."""
    steps = (str(step)[:_LONGEST_NAME] for step in location)
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def _to_gateway_error(detail: ErrorDetails) -> GatewayError:
    location = detail["loc"]
    if detail["type"] == "missing":
        return request_error(Code.FIELDS, pointer(location), "is required")
    if location[0] in _PATHS:
        takes = "must be a non-empty list of indices (integers of at least 0)"
        return request_error(Code.PATH, pointer(location), takes)
    return request_error(Code.SCHEMA, pointer(location), words(detail))


def _check_surrogates(body: bytes) -> None:
    """Check for half of a surrogate pair, which JSON can express and UTF-8 cannot.

    Raises:
        GatewayError: 40003, if the body is otherwise valid.
    """
    try:
        place = _find_lone_surrogate(json.loads(body, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return
    if place is not None:
        raise request_error(Code.SCHEMA, pointer(place[::-1]), "contains half of a surrogate pair")


def _find_lone_surrogate(value: object) -> list[int | str] | None:
    """Return the location of half of a surrogate pair in a value, the last step first."""
    if isinstance(value, str):
        return None if value.isascii() or _printable(value) == value else []
    items: Iterable[tuple[int | str, object]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for step, inner in items:
        if isinstance(step, str) and _find_lone_surrogate(step) is not None:
            return []
        place = _find_lone_surrogate(inner)
        if place is not None:
            place.append(step)
            return place
    return None


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

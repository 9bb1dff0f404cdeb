"""Validation of bodies by their wire types; pydantic's errors as the one error of a response.

Wire types follow one convention: each member of a union carries a `Tag` whose name
begins with `#` (`Annotated[str, Tag("#string")]`). Such names never reach a caller,
so a path is that of the caller's own JSON: `messages[3].content[0].source.data`.
"""

import json
from collections.abc import Sequence
from typing import TypeVar

import orjson
from pydantic import BeforeValidator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from gateway.conversation.v1.conversation_pb2 import Dialect, Opaque
from services.common.errors import GatewayError, invalid
from services.common.json_scan import MAX_OPAQUE_VALUES, exceeds

# Marks names of union members in the places that pydantic reports.
TAG = "#"

# The tag of an object that has no `type` to choose a union's member by.
UNTYPED = "#untyped"

# Fields of an object whose every field is checked: each one at fault is an error in memory.
MAX_CHECKED_FIELDS = 10_000

# Characters of a name of the caller's making that an error repeats.
_LONGEST_NAME = 128

# Bytes of a body up to which it may be read twice.
_QUICK_BYTES = 1 << 20
# What may stand before a number, and digits: of each kind one sign.
_NUMBERS = bytes.maketrans(b",[ -\t\r\n" + b"123456789", b":" * 7 + b"0" * 9)
_LARGE_NUMBER = b":" + b"0" * 19

Location = Sequence[int | str]
_T = TypeVar("_T")

_WORDS = {
    "missing": "is required",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be an array",
    "union_tag_not_found": "must be an object",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "extra_forbidden": "is not a known field",
    "finite_number": "must be a finite number",
    "none_required": "must be null",
    "recursion_loop": "is nested too deeply",
}
_WORDS_WITH_LIMIT = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be below {lt}",
    "literal_error": "must be {expected}",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} items",
    "value_error": "{error}",
}


def read(adapter: TypeAdapter[_T], body: bytes) -> _T:
    """Check a request body against its wire type.

    Raises:
        GatewayError: invalid, naming the first field at fault, or where the JSON breaks off.
    """
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        raise to_gateway_error(error) from None


def read_quickly(adapter: TypeAdapter[_T], body: bytes) -> tuple[_T, bool]:
    """Check a request body as `read` does, in two thirds of the time where a function tells unions.

    Such a function is called with Python values, which pydantic makes of the JSON anew for each
    union around them. Here they are made once, of bodies in which nothing is lost by that; what
    else is to be known of their numbers is known then too.

    Returns:
        What was read, and whether each number in it is one that JSON can say, of 64 bits.
    """
    # orjson makes floats of larger integers, and takes none that are infinite.
    if len(body) <= _QUICK_BYTES and _LARGE_NUMBER not in body.translate(_NUMBERS):
        try:
            return adapter.validate_python(orjson.loads(body)), True
        except (orjson.JSONDecodeError, ValidationError):
            pass  # what is wrong with it is told as of every body
    return read(adapter, body), False


def check(adapter: TypeAdapter[_T], value: object, path: str) -> _T:
    """Check a part of a body that was read already and stands at `path`.

    Raises:
        GatewayError: invalid, naming the first field at fault.
    """
    try:
        # By way of JSON, since strict checks of Python values refuse what JSON has no type for.
        return adapter.validate_json(_write(value, path))
    except ValidationError as error:
        raise to_gateway_error(error, path) from None


def to_gateway_error(error: ValidationError, prefix: str = "") -> GatewayError:
    """Return the error for what pydantic found wrong in the value at `prefix`."""
    # Without inputs, which may have megabytes.
    details = _chosen(error.errors(include_url=False, include_input=False))
    first = details[0]
    if first["type"] == "json_invalid":
        return invalid(prefix, f"the body is not valid JSON: {first['ctx']['error']}")
    location = [*first["loc"]]
    if _is_untyped(first):
        location.append("type")
    path = to_path(location, prefix)
    if first["type"] == "extra_forbidden":
        # The caller's own name comes last, whatever it begins with and however long it is.
        path = to_path(location[:-1], prefix)
        name = str(location[-1])[:_LONGEST_NAME]
        path = f"{path}.{name}" if path else name
    said = " or ".join(dict.fromkeys(words(detail) for detail in details))
    return invalid(path, f"{path or 'the body'}: {said.replace(' or must be ', ' or ')}")


def few_fields(value: object) -> object:
    """Return `value`, unless it is an object with very many fields.

    Raises:
        ValueError: it has more than `MAX_CHECKED_FIELDS`.
    """
    if isinstance(value, dict) and len(value) > MAX_CHECKED_FIELDS:
        raise ValueError(f"must have at most {MAX_CHECKED_FIELDS} fields")
    return value


# For types of objects whose errors have no bound of their own: pydantic stops at the first
# wrong item of a list, and reports every wrong field of an object.
FewFields = BeforeValidator(few_fields)


def to_path(location: Location, prefix: str = "") -> str:
    """Write a place as callers do: `messages[3].content[0]`."""
    path = prefix
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith(TAG):
            path += f".{step}" if path else step
    return path


def to_json(value: object, path: str) -> bytes:
    """Write a value that came from JSON as JSON again, to be passed on as it is.

    Raises:
        GatewayError: invalid, when a number in it is infinite or none, or when it holds more
            than `MAX_OPAQUE_VALUES` values: providers' adapters parse it in one go.
    """
    written = _write(value, path)
    if exceeds(written, MAX_OPAQUE_VALUES):
        raise invalid(
            path,
            f"{path or 'fields that are passed on unread'}: must have at most "
            f"{MAX_OPAQUE_VALUES} values",
        )
    return written


def _write(value: object, path: str) -> bytes:
    """Write a value that came from JSON as JSON again, numbers of any size included.

    Raises:
        GatewayError: invalid, when a number in it is infinite or none, or an integer is larger
            than any double, which no other reader of it would take.
    """
    is_large = False
    try:
        written = orjson.dumps(value)
        # orjson writes numbers that JSON cannot say as null.
        if b"null" not in written:
            return written
    except TypeError:
        is_large = True  # An integer beyond 64 bits.
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if is_large:
            orjson.loads(text)
    except ValueError:
        raise invalid(path, f"{path or 'the body'}: must hold finite numbers only") from None
    return text.encode()


def to_opaque(dialect: Dialect.ValueType, value: object, path: str) -> Opaque:
    """Keep a value that the canonical model has no name for.

    Raises:
        GatewayError: invalid, as `to_json`.
    """
    return Opaque(dialect=dialect, json=to_json(value, path))


def _chosen(details: Sequence[ErrorDetails]) -> Sequence[ErrorDetails]:
    """Pick the first error; where it is a union's, those of the member that was meant.

    Each member of a union reports on its own. The one that was meant is the one whose
    errors lie deepest; where all refuse the value itself, all of them tell what it takes.
    """
    told, start = details, 0
    while (union := _first_tag(told[0]["loc"], start)) is not None:
        place = told[0]["loc"][:union]
        told = [detail for detail in told if detail["loc"][:union] == place]
        members = [detail for detail in told if len(detail["loc"]) > union]
        deep = [detail for detail in members if len(detail["loc"]) > union + 1]
        if not deep:
            return members
        tag = deep[0]["loc"][union]
        told = [detail for detail in members if detail["loc"][union] == tag]
        start = union + 1
    return told[:1]


def _first_tag(location: Location, start: int) -> int | None:
    for index, step in enumerate(location[start:], start):
        if isinstance(step, str) and step.startswith(TAG):
            return index
    return None


def _is_untyped(detail: ErrorDetails) -> bool:
    return detail["type"] == "union_tag_invalid" and detail["ctx"]["tag"] == UNTYPED


def words(detail: ErrorDetails) -> str:
    """Say what a value must be, of one thing that pydantic found wrong."""
    kind = detail["type"]
    context = detail.get("ctx", {})
    if _is_untyped(detail):
        return "is required, a string"
    if kind in ("string_too_short", "too_short"):
        return "must not be empty" if context["min_length"] == 1 else detail["msg"]
    if template := _WORDS_WITH_LIMIT.get(kind):
        return template.format(**context)
    return _WORDS.get(kind, detail["msg"])

"""Validate bodies by their wire types; translate pydantic's errors into one error.

Wire types follow one convention: each member of a union carries a `Tag` whose name begins with `#`
(`Annotated[str, Tag("#string")]`). These tags are removed from paths, which are those of the
caller's JSON: `messages[3].content[0].source.data`.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import orjson
from pydantic import BeforeValidator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from gateway.conversation.v1.conversation_pb2 import Dialect, Opaque
from services.common.errors import GatewayError, invalid
from services.common.text.json_scan import MAX_OPAQUE_VALUES, exceeds

# Prefix of union member names in pydantic's error locations.
TAG = "#"

# Tag of an object without a `type`, which selects no union member.
UNTYPED = "#untyped"

# Maximum fields of an object whose fields are all validated: each error takes memory.
MAX_CHECKED_FIELDS = 10_000

# Maximum levels of arrays and objects in a body: pydantic's parser has this limit.
_MAX_LEVELS = 200
# Maximum levels that orjson serializes. A value nested in `_MADE_DEEPER` more arrays exceeds them
# exactly if it exceeds `_MAX_LEVELS` itself.
_WRITTEN_LEVELS = 254
_MADE_DEEPER = _WRITTEN_LEVELS - _MAX_LEVELS
# Prefix of the parser's error for too many levels.
_RECURSION = "recursion limit exceeded"
_TOO_DEEP = f"is nested more than {_MAX_LEVELS} levels deep"

# Maximum length of a caller-defined name in an error.
_LONGEST_NAME = 128

# Maximum size of a body that may be parsed twice.
_QUICK_BYTES = 1 << 20
# Characters before a number, and digits, each reduced to one character.
_NUMBERS = bytes.maketrans(b",[ -\t\r\n" + b"123456789", b":" * 7 + b"0" * 9)
_LARGE_NUMBER = b":" + b"0" * 19
# Any run of 19 digits has at least two of the bytes at this distance.
_APART = 9
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_DIGITS_APART = re.compile(rb"00+")

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
    """Validate a request body by its wire type.

    Raises:
        GatewayError: invalid, naming the first invalid field, or the position of a JSON syntax
            error.
    """
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        raise to_gateway_error(error) from None


def read_quickly(adapter: TypeAdapter[_T], body: bytes) -> tuple[_T, bool]:
    """Validate a request body like `read`, but faster.

    Pydantic converts JSON to Python values again for each union with a discriminator function.
    Here the body is converted once, unless that would lose information. With such unions this takes
    two thirds of the time.

    Returns:
        The validated body, and whether all of its numbers are finite and fit into 64 bits.
    """
    value = exact_json(body)
    return validate(adapter, value, body), value is not None


def exact_json(body: bytes) -> Any:
    """Return the JSON value of a body; None if that would lose information, or it is not JSON.

    All numbers of the value are finite and fit into 64 bits, and it is nested no deeper than
    `read` allows.
    """
    if len(body) > _QUICK_BYTES or _may_have_large_numbers(body):
        return None
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    # Few bodies have so many arrays and objects at all.
    if body.count(b"[") + body.count(b"{") <= _MAX_LEVELS or _is_nested_within_limit(value):
        return value
    return None


def _is_nested_within_limit(value: object) -> bool:
    for _ in range(_MADE_DEEPER):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True


def too_deep(path: str) -> GatewayError:
    """Return the error for a value at `path` that is nested deeper than `read` allows."""
    return invalid(path, f"{path} {_TOO_DEEP}")


def validate(adapter: TypeAdapter[_T], value: Any, body: bytes) -> _T:
    """Validate the `exact_json` of a body, or the body if that is None, by a wire type.

    Raises:
        GatewayError: as `read`.
    """
    if value is not None:
        try:
            return adapter.validate_python(value)
        except ValidationError:
            pass  # `read` reports the error
    return read(adapter, body)


def _may_have_large_numbers(body: bytes) -> bool:
    """Return False if all numbers of a body have fewer than 19 digits in a row.

    orjson converts larger integers to floats, and rejects infinite numbers.
    """
    # Few texts have adjacent digits in a sample of every ninth byte; ids do. Only the bytes around
    # those are checked exactly.
    sample = body[::_APART].translate(_DIGITS)
    if b"00" not in sample:
        return False
    near = [
        body[max(0, (digits.start() - 1) * _APART) : digits.end() * _APART]
        for digits in _DIGITS_APART.finditer(sample)
    ]
    return _LARGE_NUMBER in b'"'.join(near).translate(_NUMBERS)


def check(adapter: TypeAdapter[_T], value: object, path: str) -> _T:
    """Validate a parsed part of a body at `path`.

    Raises:
        GatewayError: invalid, naming the first invalid field.
    """
    # Validated as JSON, as strict validation of Python values rejects types that JSON does not
    # have.
    return check_json(adapter, write_json(value, path), path)


def check_json(adapter: TypeAdapter[_T], json: bytes, path: str) -> _T:
    """Validate the JSON of a part of a body at `path`.

    Raises:
        GatewayError: invalid, naming the first invalid field.
    """
    try:
        return adapter.validate_json(json)
    except ValidationError as error:
        raise to_gateway_error(error, path) from None


def to_gateway_error(error: ValidationError, prefix: str = "") -> GatewayError:
    """Return the error for a validation error of the value at `prefix`."""
    # Without inputs, which may be large.
    details = _chosen(error.errors(include_url=False, include_input=False))
    first = details[0]
    if first["type"] == "json_invalid":
        if first["ctx"]["error"].startswith(_RECURSION):
            return invalid(prefix, f"the body {_TOO_DEEP}")
        return invalid(prefix, f"the body is not valid JSON: {first['ctx']['error']}")
    location = [*first["loc"]]
    if _is_untyped(first):
        location.append("type")
    path = to_path(location, prefix)
    if first["type"] == "extra_forbidden":
        # The last item is the caller's own name, whatever its prefix and length.
        path = to_path(location[:-1], prefix)
        name = str(location[-1])[:_LONGEST_NAME]
        path = f"{path}.{name}" if path else name
    problem = " or ".join(dict.fromkeys(words(detail) for detail in details))
    return invalid(path, f"{path or 'the body'}: {problem.replace(' or must be ', ' or ')}")


def few_fields(value: object) -> object:
    """Return `value`, unless it is an object with too many fields.

    Raises:
        ValueError: it has more than `MAX_CHECKED_FIELDS`.
    """
    if isinstance(value, dict) and len(value) > MAX_CHECKED_FIELDS:
        raise ValueError(f"must have at most {MAX_CHECKED_FIELDS} fields")
    return value


# For object types with unlimited errors: pydantic stops at the first invalid item of a list, but
# reports every invalid field of an object.
FewFields = BeforeValidator(few_fields)


def to_path(location: Location, prefix: str = "") -> str:
    """Return a location as a path: `messages[3].content[0]`."""
    path = prefix
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith(TAG):
            path += f".{step}" if path else step
    return path


def to_json(value: object, path: str) -> bytes:
    """Serialize a parsed JSON value, to be passed on unchanged.

    Raises:
        GatewayError: invalid, if a number is infinite or NaN, or if there are more than
            `MAX_OPAQUE_VALUES` values, as providers' adapters parse it at once.
    """
    written = write_json(value, path)
    if exceeds(written, MAX_OPAQUE_VALUES):
        raise invalid(
            path,
            f"{path or 'fields that are passed through'}: must have at most "
            f"{MAX_OPAQUE_VALUES} values",
        )
    return written


def write_json(value: object, path: str) -> bytes:
    """Serialize a parsed JSON value with numbers of any size.

    Raises:
        GatewayError: invalid, if a number is infinite or NaN, or an integer exceeds the range of
            doubles, which other parsers would reject.
    """
    is_large = False
    try:
        written = orjson.dumps(value)
        # orjson writes NaN and infinity as null.
        if b"null" not in written:
            return written
    except TypeError:
        is_large = True  # An integer beyond 64 bits.
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if is_large:
            orjson.loads(text)
    except ValueError:
        raise invalid(path, f"{path or 'the body'}: must contain only finite numbers") from None
    return text.encode()


def to_opaque(dialect: Dialect.ValueType, value: object, path: str) -> Opaque:
    """Keep an unknown value as JSON.

    Raises:
        GatewayError: invalid, as `to_json`.
    """
    return Opaque(dialect=dialect, json=to_json(value, path))


def _chosen(details: Sequence[ErrorDetails]) -> Sequence[ErrorDetails]:
    """Return the first error; for a union, that of the intended member.

    Each member of a union reports its own errors. The intended member is the one with the deepest
    error location; if all reject the value itself, their expectations are combined.
    """
    chosen, start = details, 0
    while (union := _first_tag(chosen[0]["loc"], start)) is not None:
        place = chosen[0]["loc"][:union]
        chosen = [detail for detail in chosen if detail["loc"][:union] == place]
        members = [detail for detail in chosen if len(detail["loc"]) > union]
        deep = [detail for detail in members if len(detail["loc"]) > union + 1]
        if not deep:
            return members
        tag = deep[0]["loc"][union]
        chosen = [detail for detail in members if detail["loc"][union] == tag]
        start = union + 1
    return chosen[:1]


def _first_tag(location: Location, start: int) -> int | None:
    for index, step in enumerate(location[start:], start):
        if isinstance(step, str) and step.startswith(TAG):
            return index
    return None


def _is_untyped(detail: ErrorDetails) -> bool:
    return detail["type"] == "union_tag_invalid" and detail["ctx"]["tag"] == UNTYPED


def words(detail: ErrorDetails) -> str:
    """Describe the expected value of a validation error."""
    kind = detail["type"]
    context = detail.get("ctx", {})
    if _is_untyped(detail):
        return "is required and must be a string"
    if kind in ("string_too_short", "too_short"):
        return "must not be empty" if context["min_length"] == 1 else detail["msg"]
    if template := _WORDS_WITH_LIMIT.get(kind):
        return template.format(**context)
    return _WORDS.get(kind, detail["msg"])

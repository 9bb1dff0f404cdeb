"""Checks of JSON against the types of documents, with errors that point to the invalid field."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import is_typeddict

from services.articles.tree.errors import EditError, join_pointer
from services.articles.tree.values import schema_error

# More fields than an object of any type has.
_MAX_FIELDS = 100
_QUOTED = re.compile(r"'([^']*)'")
_MESSAGES = {
    "missing": "is required",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "bool_type": "must be true or false",
    "list_type": "must be an array",
    "dict_type": "must be an object",
    "float_type": "must be a number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "value_error": "{error}",
}


def check(kind: Any, value: object, pointer: str) -> None:
    """Check a value parsed from JSON against one of the types of documents.

    Raises:
        EditError: 40003 at the first field that is unknown, or else at the first wrong value.
    """
    if _errors(kind, value) is None:
        return
    # Each unknown field becomes an error object in memory, so all but a few are left out.
    value = _trimmed(value)
    error = _errors(kind, value)
    assert error is not None
    details = error.errors(include_url=False, include_input=False)
    unknown = (detail for detail in details if detail["type"] == "extra_forbidden")
    raise _edit_error(kind, next(unknown, details[0]), value, pointer) from None


def _errors(kind: Any, value: object) -> ValidationError | None:
    try:
        _adapter(kind).validate_python(value)
    except ValidationError as error:
        return error
    return None


def _trimmed(value: Any) -> Any:
    if isinstance(value, list):
        return [_trimmed(item) for item in value]
    if not isinstance(value, dict):
        return value
    first_fields = islice(value.items(), _MAX_FIELDS)
    return {key: field if key == "children" else _trimmed(field) for key, field in first_fields}


@cache
def fields_of(kind: type) -> frozenset[str]:
    """Return the names of the fields that an object of a type may have."""
    return frozenset(kind.__annotations__)


@cache
def object_type(kind: type, field: str) -> type:
    """Return the object type of a field, which may be optional or an array of such objects."""
    type_of_object = _object_type(get_type_hints(kind)[field])
    assert type_of_object is not None
    return type_of_object


def _object_type(hint: Any) -> type | None:
    if is_typeddict(hint):
        kind: type = hint
        return kind
    return next(
        (type_of_object for part in get_args(hint) if (type_of_object := _object_type(part))), None
    )


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _edit_error(kind: type, detail: ErrorDetails, value: object, pointer: str) -> EditError:
    steps = _steps(detail, value)
    error_pointer = pointer
    for step in steps:
        error_pointer = join_pointer(error_pointer, step)
    if detail["type"] == "extra_forbidden":
        for step in steps[:-1]:
            if isinstance(step, str):
                kind = object_type(kind, step)
        field_names = ", ".join(sorted(fields_of(kind)))
        return schema_error(error_pointer, f"unknown field; known fields: {field_names}")
    if detail["type"] == "literal_error":
        options = _QUOTED.findall(detail["ctx"]["expected"])
        return schema_error(error_pointer, f"must be one of {', '.join(options)}")
    template = _MESSAGES.get(detail["type"])
    if template is None:
        return schema_error(error_pointer, detail["msg"])
    return schema_error(error_pointer, template.format(**detail.get("ctx", {})))


def _steps(detail: ErrorDetails, value: object) -> Sequence[int | str]:
    """Return the path of an error in a value, without the union members that pydantic inserts."""
    steps: list[int | str] = []
    for step in detail["loc"]:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        elif detail["type"] != "missing":
            continue
        steps.append(step)
    return steps

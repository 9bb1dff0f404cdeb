"""Checks on single JSON values that a caller sent: each gives the value or refuses."""

import math
from collections.abc import Collection, Mapping

from services.articles.tree.errors import Code, EditError, join_pointer


def schema_error(pointer: str, problem: str) -> EditError:
    """Return the refusal of a value that breaks its schema."""
    return EditError(Code.SCHEMA, pointer, problem)


def string(value: object, pointer: str, limit: int, *, empty: bool = True) -> str:
    """Take a string of at most `limit` characters, without NUL and lone surrogates."""
    if not isinstance(value, str):
        raise schema_error(pointer, "must be a string")
    if not empty and not value:
        raise schema_error(pointer, "must not be empty")
    if len(value) > limit:
        raise schema_error(pointer, f"must have at most {limit} characters, has {len(value)}")
    if "\0" in value:
        raise schema_error(pointer, "must not contain NUL")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise schema_error(pointer, "must not contain a lone surrogate") from None
    return value


def boolean(value: object, pointer: str) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise schema_error(pointer, "must be true or false")
    return value


def integer(value: object, pointer: str, low: int, high: int) -> int:
    """Take a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise schema_error(pointer, f"must be a whole number from {low} to {high}")
    return value


def number(value: object, pointer: str) -> int | float:
    """Take a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise schema_error(pointer, "must be a number")
    return value


def choice(value: object, pointer: str, options: Collection[str]) -> str:
    """Take one of a few strings."""
    if not isinstance(value, str) or value not in options:
        raise schema_error(pointer, f"must be one of {', '.join(options)}")
    return value


def array(value: object, pointer: str) -> list[object]:
    """Take an array."""
    if not isinstance(value, list | tuple):
        raise schema_error(pointer, "must be an array")
    return list(value)


def mapping(
    value: object, pointer: str, allowed: Collection[str] | None = None
) -> Mapping[str, object]:
    """Take an object, and refuse any key that is not `allowed`."""
    if not isinstance(value, Mapping):
        raise schema_error(pointer, "must be an object")
    if allowed is not None:
        for key in value:
            if key not in allowed:
                known = ", ".join(sorted(allowed))
                raise schema_error(
                    join_pointer(pointer, str(key)), f"is not known here; known are {known}"
                )
    return value

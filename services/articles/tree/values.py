"""Checks on single JSON values that a caller sent: each gives the value or refuses."""

import math
from collections.abc import Collection, Mapping

from services.articles.tree.refusal import Code, Refusal, inside


def wrong(pointer: str, problem: str) -> Refusal:
    """Return the refusal of a value that breaks its schema."""
    return Refusal(Code.SCHEMA, pointer, problem)


def string(value: object, pointer: str, limit: int, *, empty: bool = True) -> str:
    """Take a string of at most `limit` characters, without NUL and lone surrogates."""
    if not isinstance(value, str):
        raise wrong(pointer, "must be a string")
    if not empty and not value:
        raise wrong(pointer, "must not be empty")
    if len(value) > limit:
        raise wrong(pointer, f"must have at most {limit} characters, has {len(value)}")
    if "\0" in value:
        raise wrong(pointer, "must not contain NUL")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise wrong(pointer, "must not contain a lone surrogate") from None
    return value


def boolean(value: object, pointer: str) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise wrong(pointer, "must be true or false")
    return value


def integer(value: object, pointer: str, low: int, high: int) -> int:
    """Take a whole number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise wrong(pointer, f"must be a whole number from {low} to {high}")
    return value


def number(value: object, pointer: str) -> int | float:
    """Take a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise wrong(pointer, "must be a number")
    return value


def choice(value: object, pointer: str, options: Collection[str]) -> str:
    """Take one of a few strings."""
    if not isinstance(value, str) or value not in options:
        raise wrong(pointer, f"must be one of {', '.join(options)}")
    return value


def array(value: object, pointer: str) -> list[object]:
    """Take an array."""
    if not isinstance(value, list | tuple):
        raise wrong(pointer, "must be an array")
    return list(value)


def mapping(
    value: object, pointer: str, allowed: Collection[str] | None = None
) -> Mapping[str, object]:
    """Take an object, and refuse any key that is not `allowed`."""
    if not isinstance(value, Mapping):
        raise wrong(pointer, "must be an object")
    if allowed is not None:
        for key in value:
            if key not in allowed:
                known = ", ".join(sorted(allowed))
                raise wrong(inside(pointer, str(key)), f"is not known here; known are {known}")
    return value

"""Checks of single JSON values that the types of documents do not cover."""

from collections.abc import Collection, Mapping

from services.articles.tree.errors import EditError, EditErrorCode, join_pointer


def schema_error(pointer: str, problem: str) -> EditError:
    """Return the error for a value that does not match its schema."""
    return EditError(EditErrorCode.SCHEMA, pointer, problem)


def string(value: object, pointer: str, limit: int, *, empty: bool = True) -> str:
    """Return a value, checked to be a string of at most `limit` characters without NUL."""
    if not isinstance(value, str):
        raise schema_error(pointer, "must be a string")
    if not empty and not value:
        raise schema_error(pointer, "must not be empty")
    if len(value) > limit:
        raise schema_error(pointer, f"must have at most {limit} characters, has {len(value)}")
    if "\0" in value:
        raise schema_error(pointer, "must not contain NUL")
    return value


def array(value: object, pointer: str) -> list[object]:
    """Return a value, checked to be an array."""
    if not isinstance(value, list | tuple):
        raise schema_error(pointer, "must be an array")
    return list(value)


def mapping(
    value: object, pointer: str, allowed: Collection[str] | None = None
) -> Mapping[str, object]:
    """Return a value, checked to be an object whose keys are all `allowed`."""
    if not isinstance(value, Mapping):
        raise schema_error(pointer, "must be an object")
    if allowed is not None:
        for key in value:
            if key not in allowed:
                field_names = ", ".join(sorted(allowed))
                raise schema_error(
                    join_pointer(pointer, str(key)), f"unknown field; known fields: {field_names}"
                )
    return value

"""The one way in which this package says no."""

from enum import IntEnum


class Code(IntEnum):
    """What callers see as `code`: the HTTP status times 100, and a running number."""

    PATH = 40002
    SCHEMA = 40003
    FIELDS = 40004
    NO_BLOCK = 40403
    NO_REFERENCE = 40404
    NO_LEAF = 40405
    REFERENCE_EXISTS = 40902


class EditError(Exception):
    """An edit that cannot be: nothing has changed.

    Attributes:
        code: see `Code`.
        pointer: RFC 6901 pointer into the request's body, such as `/blocks/0/children/2/text`.
        message: for people; begins with the pointer.
    """

    def __init__(self, code: Code, pointer: str, problem: str) -> None:
        self.code = code
        self.pointer = pointer
        self.message = f"{pointer}: {problem}"
        super().__init__(self.message)


def join_pointer(pointer: str, key: str | int) -> str:
    """Extend a JSON pointer by one step."""
    if isinstance(key, int):
        return f"{pointer}/{key}"
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"

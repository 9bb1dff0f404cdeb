"""Errors of edits, with JSON pointers to the invalid part of an edit."""

from enum import IntEnum


class EditErrorCode(IntEnum):
    """Numbers that callers get as `code`: the HTTP status times 100, plus a running number."""

    BODY = 40001
    PATH = 40002
    SCHEMA = 40003
    FIELDS = 40004
    NO_MATCH = 40005
    NO_BLOCK = 40403
    NO_REFERENCE = 40404
    NO_LEAF = 40405
    REFERENCE_EXISTS = 40902
    CHANGED_SINCE = 40903
    SUGGESTION_STALE = 40907


class EditError(Exception):
    """Error raised for an edit that cannot be applied; the document is unchanged.

    Attributes:
        code: see `EditErrorCode`.
        pointer: JSON pointer (RFC 6901) into the edit, such as `/blocks/0/children/2/text`; ""
            for the whole edit.
        problem: human-readable description of the error at the pointer.
        message: pointer and problem.
    """

    def __init__(self, code: EditErrorCode, pointer: str, problem: str) -> None:
        self.code = code
        self.pointer = pointer
        self.problem = problem
        self.message = f"{pointer}: {problem}"
        super().__init__(self.message)


def join_pointer(pointer: str, key: str | int) -> str:
    """Return a JSON pointer extended by one step."""
    if isinstance(key, int):
        return f"{pointer}/{key}"
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"

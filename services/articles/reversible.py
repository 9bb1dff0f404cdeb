"""The edits that a user can undo and redo, by the entries of the log."""

import re
from collections.abc import Iterable
from typing import NamedTuple

_STORED = re.compile(rb'\{"op":"([a-z-]{1,30})"(?:,"of":(\d{1,19})\b)?')
# The bytes of an operation in which its name, and the revision that it reverses, are.
HEAD_BYTES = 80


class EntryHead(NamedTuple):
    """What the beginning of an operation in the log says.

    Attributes:
        revision: the revision that it made.
        name: the name of the operation.
        reversed_revision: for `undo` and `redo`, the revision that it reverses; otherwise 0.
    """

    revision: int
    name: str
    reversed_revision: int = 0


def read_head(revision: int, operation: bytes) -> EntryHead:
    """Parse the beginning of an operation as the log stores it."""
    match = _STORED.match(operation)
    if match is None:
        return EntryHead(revision, "")
    return EntryHead(revision, match[1].decode(), int(match[2] or 0))


class Reversible(NamedTuple):
    """The revision that a user would undo next, and the one to redo; 0 if there is none."""

    undo: int
    redo: int


def reversible(entries: Iterable[EntryHead]) -> Reversible:
    """Return what a user can undo and redo next.

    An edit ends what can be redone, as in any editor.

    Args:
        entries: the user's entries, the oldest first.
    """
    edits: list[int] = []
    undone: list[int] = []
    for entry in entries:
        match entry.name:
            case "undo":
                if edits and edits[-1] == entry.reversed_revision:
                    edits.pop()
                undone.append(entry.revision)
            case "redo":
                if undone and undone[-1] == entry.reversed_revision:
                    undone.pop()
                edits.append(entry.revision)
            case _:
                edits.append(entry.revision)
                undone.clear()
    return Reversible(edits[-1] if edits else 0, undone[-1] if undone else 0)

"""Undoing an edit of the log, and redoing what was undone.

The log stores a reversal with the revision of the edit that it reverses, so that the edits that a
user can undo and redo follow from the log.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import Struct

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.nodes import Json
from services.articles.tree.operations.base import Change, Operation
from services.articles.tree.operations.stored import from_json, register, to_json


class Undo(Struct, frozen=True):
    """Reverse an edit of the log.

    Attributes:
        revision: the revision that the edit made.
        operation: the edit's inverse.
    """

    name: ClassVar[str] = "undo"
    revision: int
    operation: Operation

    def apply(self, document: Document) -> Change:
        """Apply the inverse."""
        return self.operation.apply(document)

    def to_json(self) -> dict[str, Json]:
        """Return the fields, the revision first."""
        return {"of": self.revision, "operation": to_json(self.operation)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(stored["of"], from_json(stored["operation"]))


class Redo(Undo, frozen=True):
    """Reverse a reversal of the log."""

    name: ClassVar[str] = "redo"


register(Undo, Redo)


class Reverse(Struct, frozen=True):
    """Reverse an edit unless others have changed the same blocks since.

    Attributes:
        reversal: the reversal for the log.
        edit: the edit that is reversed.
    """

    reversal: Undo
    edit: Operation

    def apply(self, document: Document) -> Change:
        """Apply the reversal.

        Raises:
            EditError: 40903, a block has changed since: the edit, applied again, would not make the
                document what it is.
        """
        try:
            change = self.reversal.apply(document)
            again = self.edit.apply(change.document).document
        except EditError:
            again = None
        if again is None or not _has_same_blocks(again, document):
            problem = "the same block has been changed since; read the document again"
            raise EditError(EditErrorCode.CHANGED_SINCE, "", problem)
        return Change(change.document, change.inverse, operation=self.reversal)


def _has_same_blocks(one: Document, other: Document) -> bool:
    """Return whether two documents are equal, apart from the order of their blocks."""
    return (
        len(one.blocks) == len(other.blocks)
        and one.style == other.style
        and one.references == other.references
        and one.properties == other.properties
        and {block.id: block for block in one.blocks} == {block.id: block for block in other.blocks}
    )

"""Operations as the log stores them, and several of them as one."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

from msgspec import Struct

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, join_pointer
from services.articles.tree.nodes import Json
from services.articles.tree.operations.base import (
    Change,
    DocumentEdit,
    EditOutcome,
    Operation,
)
from services.articles.tree.operations.bibliography import (
    AddReference,
    DeleteReference,
    RestoreReference,
    UpdateReference,
)
from services.articles.tree.operations.blocks import DeleteBlocks, InsertBlocks, RestoreElements
from services.articles.tree.operations.conversions import ReplaceBlocks
from services.articles.tree.operations.leaves import Cite, SetLeafStyle
from services.articles.tree.operations.moves import MoveElements
from services.articles.tree.operations.properties import SetProperties
from services.articles.tree.operations.styles import SetArticleStyle, SetBlockStyle
from services.articles.tree.operations.text import AppendText, ReplaceText, Truncate


def to_json(operation: Operation) -> dict[str, Json]:
    """Return an operation as JSON: its name as `op`, and its fields."""
    return {"op": operation.name, **operation.to_json()}


def from_json(stored: Mapping[str, Any]) -> Operation:
    """Parse the output of `to_json`; nothing is checked before the operation is applied."""
    return _OPERATIONS[stored["op"]].from_json(stored)


def register(*operations: type[Operation]) -> None:
    """Register operations that contain others, so that `from_json` can parse them."""
    _OPERATIONS.update({operation.name: operation for operation in operations})


def stored_form(edit: DocumentEdit, change: Change) -> Operation:
    """Return the operation that the log stores for an edit, whose change is given."""
    return change.operation or cast(Operation, edit)


class OperationSequence(Struct, frozen=True):
    """Operations in their order, all or none.

    Attributes:
        operations: the operations.
    """

    name: ClassVar[str] = "sequence"
    operations: tuple[Operation, ...]

    def apply(self, document: Document) -> Change:
        """Apply all operations or none."""
        return ApplyEdits(self.operations).apply(document)

    def to_json(self) -> dict[str, Json]:
        """Return the operations."""
        return {"operations": [to_json(operation) for operation in self.operations]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(tuple([from_json(operation) for operation in stored["operations"]]))


class ApplyEdits(Struct, frozen=True):
    """Edits in their order, all or none; each sees the results of those before.

    Attributes:
        edits: the edits.
    """

    edits: tuple[DocumentEdit, ...]

    def apply(self, document: Document) -> Change:
        """Apply all edits or none; pointers of errors begin with the position of an edit."""
        operations: list[Operation] = []
        inverses: list[Operation] = []
        outcomes: list[EditOutcome] = []
        copied_characters = 0
        for index, edit in enumerate(self.edits):
            try:
                change = edit.apply(document)
            except EditError as error:
                pointer = join_pointer("/edits", index) + error.pointer
                raise EditError(error.code, pointer, error.problem) from None
            document = change.document
            operations.append(stored_form(edit, change))
            inverses.append(change.inverse)
            outcomes.append(EditOutcome(change.ids, change.omitted))
            copied_characters += change.copied_characters
        return Change(
            document,
            OperationSequence(tuple(reversed(inverses))),
            operation=OperationSequence(tuple(operations)),
            of_edits=tuple(outcomes),
            copied_characters=copied_characters,
        )


_OPERATIONS: dict[str, type[Operation]] = {
    operation.name: operation
    for operation in (
        *(InsertBlocks, DeleteBlocks, RestoreElements, ReplaceText, AppendText, Truncate),
        *(MoveElements, ReplaceBlocks),
        *(Cite, SetLeafStyle, SetBlockStyle, SetArticleStyle, SetProperties),
        *(AddReference, UpdateReference, DeleteReference, RestoreReference, OperationSequence),
    )
}

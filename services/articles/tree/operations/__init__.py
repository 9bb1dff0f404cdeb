"""Operations: the edits of a document as values.

`operation.apply(document)` returns a `Change` or raises `EditError`; `to_json` and `from_json`
convert an operation to its form in the log and back.
"""

from collections.abc import Mapping
from typing import Any

from services.articles.tree.nodes import Json
from services.articles.tree.operations.base import Change, DocumentEdit, Operation
from services.articles.tree.operations.bibliography import (
    AddReference,
    DeleteReference,
    RestoreReference,
    UpdateReference,
)
from services.articles.tree.operations.blocks import DeleteBlocks, InsertBlocks, RestoreElements
from services.articles.tree.operations.leaves import Cite, SetLeafStyle
from services.articles.tree.operations.styles import SetArticleStyle, SetBlockStyle
from services.articles.tree.operations.text import AppendText, ReplaceText, Truncate
from services.articles.tree.operations.text_edits import EditText, Replacement

__all__ = [
    "AddReference",
    "AppendText",
    "Change",
    "Cite",
    "DeleteBlocks",
    "DeleteReference",
    "DocumentEdit",
    "EditText",
    "InsertBlocks",
    "Operation",
    "ReplaceText",
    "Replacement",
    "RestoreElements",
    "RestoreReference",
    "SetArticleStyle",
    "SetBlockStyle",
    "SetLeafStyle",
    "Truncate",
    "UpdateReference",
    "from_json",
    "to_json",
]

_OPERATIONS: dict[str, type[Operation]] = {
    operation.name: operation
    for operation in (
        *(
            InsertBlocks,
            DeleteBlocks,
            RestoreElements,
            ReplaceText,
            AppendText,
            Truncate,
            Cite,
            SetLeafStyle,
        ),
        *(SetBlockStyle, SetArticleStyle, AddReference, UpdateReference, DeleteReference),
        RestoreReference,
    )
}


def to_json(operation: Operation) -> dict[str, Json]:
    """Return an operation as JSON: its name as `op`, and its fields."""
    return {"op": operation.name, **operation.to_json()}


def from_json(stored: Mapping[str, Any]) -> Operation:
    """Parse the output of `to_json`; nothing is checked before the operation is applied."""
    return _OPERATIONS[stored["op"]].from_json(stored)

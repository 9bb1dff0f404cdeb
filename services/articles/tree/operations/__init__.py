"""Operations: the edits of a document as values.

`operation.apply(document)` returns a `Change` or raises `EditError`; `to_json` and `from_json`
convert an operation to its form in the log and back.
"""

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
from services.articles.tree.operations.conversions import ConvertBlocks
from services.articles.tree.operations.imports import ImportDocument
from services.articles.tree.operations.leaves import Cite, SetLeafStyle
from services.articles.tree.operations.markdown import WriteMarkdown
from services.articles.tree.operations.moves import BlockPlace, DuplicateBlock, MoveBlock
from services.articles.tree.operations.properties import SetProperties
from services.articles.tree.operations.reference_imports import ImportReferences
from services.articles.tree.operations.reversals import Redo, Reverse, Undo
from services.articles.tree.operations.stored import (
    ApplyEdits,
    OperationSequence,
    from_json,
    stored_form,
    to_json,
)
from services.articles.tree.operations.styles import SetArticleStyle, SetBlockStyle
from services.articles.tree.operations.tables import EditTable
from services.articles.tree.operations.text import AppendText, ReplaceText, Truncate
from services.articles.tree.operations.text_edits import EditText, Replacement

__all__ = [
    "AddReference",
    "AppendText",
    "ApplyEdits",
    "BlockPlace",
    "Change",
    "Cite",
    "ConvertBlocks",
    "DeleteBlocks",
    "DeleteReference",
    "DocumentEdit",
    "DuplicateBlock",
    "EditOutcome",
    "EditTable",
    "EditText",
    "ImportDocument",
    "ImportReferences",
    "InsertBlocks",
    "MoveBlock",
    "Operation",
    "OperationSequence",
    "Redo",
    "ReplaceText",
    "Replacement",
    "RestoreElements",
    "RestoreReference",
    "Reverse",
    "SetArticleStyle",
    "SetBlockStyle",
    "SetLeafStyle",
    "SetProperties",
    "Truncate",
    "Undo",
    "UpdateReference",
    "WriteMarkdown",
    "from_json",
    "stored_form",
    "to_json",
]

"""Edits of tables: rows, columns, merged cells."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.document import Document
from services.articles.tree.nodes import Element
from services.articles.tree.operations.base import Change, check_size, find_element
from services.articles.tree.operations.blocks import RestoreElements
from services.articles.tree.parsing import NewId, with_checked_children
from services.articles.tree.table_edits import TableEdit
from services.articles.tree.texts import count_characters
from services.articles.tree.values import schema_error


class EditTable(Struct, frozen=True):
    """Change the grid of a table.

    Attributes:
        block_id: id of the table.
        change: makes the change.
        new_id: returns an id that no element ever had.
    """

    block_id: str
    change: Callable[[TableEdit], None]
    new_id: NewId

    def apply(self, document: Document) -> Change:
        """Change the table; the ids of the change are those of new rows, or of new cells."""
        path, old = find_element(document, self.block_id)
        if old.type != "table":
            raise schema_error("/blockId", f"must be a table, not a block of type {old.type}")
        edit = TableEdit(old, self.new_id)
        self.change(edit)
        new: Element = with_checked_children(replace(old, content=edit.content), edit.rows, "")
        check_size(document, len(path), (old,), (new,), "")
        operation = RestoreElements((new,))
        changed = document.replaced(path, new)
        return Change(
            changed,
            RestoreElements((old,)),
            tuple(edit.ids),
            operation,
            copied_characters=count_characters((old, new)),
        )

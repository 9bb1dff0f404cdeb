"""Operations on whole blocks: insert, delete, and restoring earlier states."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct

from services.articles.tree.document import Document, Path
from services.articles.tree.errors import EditError, EditErrorCode, join_pointer
from services.articles.tree.nodes import (
    BLOCK_TYPES,
    EMPTY_LEAF,
    HOLDS,
    Element,
    Json,
    Node,
    element_from_json,
    element_to_json,
)
from services.articles.tree.operations.base import (
    Change,
    Operation,
    check_cites,
    check_labels,
    check_size,
    find_element,
    restored,
)
from services.articles.tree.parsing import with_checked_children
from services.articles.tree.rows import without_rows
from services.articles.tree.values import schema_error
from services.common.articles import limits


class InsertBlocks(Struct, frozen=True):
    """Insert blocks before the node at a path, or after its last sibling.

    Attributes:
        path: the path of the first inserted block.
        blocks: at least one, in normal form, with ids that the document never had.
    """

    name: ClassVar[str] = "insert"
    path: Path
    blocks: tuple[Element, ...]

    def apply(self, document: Document) -> Change:
        """Insert all or none."""
        for index, block in enumerate(self.blocks):
            check_cites(document, block, join_pointer("/blocks", index))
        check_labels(document, self.blocks, lambda index: join_pointer("/blocks", index))
        check_size(document, len(self.path), (), self.blocks, "/blocks")
        if len(self.path) == 1:
            changed = self._at_top(document)
        else:
            changed = self._below(document)
        ids = tuple([block.id for block in self.blocks])
        return Change(changed, DeleteBlocks(ids), ids)

    def _at_top(self, document: Document) -> Document:
        position = self._place(len(document.blocks))
        for index, block in enumerate(self.blocks):
            if block.type not in BLOCK_TYPES:
                pointer = join_pointer(join_pointer("/blocks", index), "type")
                raise schema_error(
                    pointer, f"{block.type} cannot be at the top level of a document"
                )
        if len(document.blocks) + len(self.blocks) > limits.TOP_LEVEL_BLOCKS:
            raise schema_error(
                "/blocks", f"a document can have at most {limits.TOP_LEVEL_BLOCKS} top-level blocks"
            )
        return document.spliced(position, position, self.blocks)

    def _below(self, document: Document) -> Document:
        holder = document.node_at(self.path[:-1])
        if holder is None:
            raise EditError(EditErrorCode.PATH, "/path", "path through a block that does not exist")
        if not isinstance(holder, Element):
            raise EditError(EditErrorCode.PATH, "/path", "path through a text leaf")
        held_type = HOLDS.get(holder.type)
        if held_type is None or holder.type == "table-row":
            raise schema_error("/path", f"{holder.type} does not accept inserted blocks")
        for index, block in enumerate(self.blocks):
            if block.type != held_type:
                pointer = join_pointer(join_pointer("/blocks", index), "type")
                raise schema_error(pointer, f"must be {held_type} inside {holder.type}")
        position = self._place(len(holder.children))
        children: Sequence[Node] = holder.children
        if holder.type == "label" and children == (EMPTY_LEAF,):
            position, children = 0, ()
        new = (*children[:position], *self.blocks, *children[position:])
        return document.replaced(self.path[:-1], with_checked_children(holder, new, "/blocks"))

    def _place(self, siblings: int) -> int:
        if self.path[-1] > siblings:
            raise EditError(
                EditErrorCode.PATH, "/path", f"the last index must be at most {siblings}"
            )
        return self.path[-1]

    def to_json(self) -> dict[str, Json]:
        """Return path and blocks."""
        return {"path": list(self.path), "blocks": [element_to_json(b) for b in self.blocks]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        blocks = [element_from_json(block) for block in stored["blocks"]]
        return cls(tuple(stored["path"]), tuple(blocks))


class DeleteBlocks(Struct, frozen=True):
    """Delete adjacent elements: one for a caller's edit, one or more for the inverse of an insert.

    Attributes:
        block_ids: ids of the elements in document order.
    """

    name: ClassVar[str] = "delete"
    block_ids: tuple[str, ...]

    def apply(self, document: Document) -> Change:
        """Delete all or none; a cell of a table is never deleted alone.

        The cells of a table that span a deleted row and others shrink.
        """
        path, first = find_element(document, self.block_ids[0])
        if first.type == "table-cell":
            raise schema_error(
                "/blockId",
                "a cell cannot be deleted; replace its text, or delete the row or the table",
            )
        holder, start = path[:-1], path[-1]
        stop = start + len(self.block_ids)
        removed = [document.node_at((*holder, index)) for index in range(start, stop)]
        elements = [node for node in removed if isinstance(node, Element)]
        if tuple(element.id for element in elements) != self.block_ids:
            raise EditError(EditErrorCode.NO_BLOCK, "/blockId", "the blocks are no longer adjacent")
        if not holder:
            return Change(document.spliced(start, stop, ()), InsertBlocks(path, tuple(elements)))
        old = document.node_at(holder)
        assert isinstance(old, Element)
        children = (*old.children[:start], *old.children[stop:])
        inverse: Operation = InsertBlocks(path, tuple(elements))
        if old.type == "table":
            rows = without_rows(old.elements, start, stop)
            if rows != children:
                children, inverse = rows, RestoreElements((old,))
        new = with_checked_children(old, children, "/blockId")
        if new.content.get("align") != old.content.get("align"):
            # A table without rows has no columns to align.
            inverse = RestoreElements((old,))
        return Change(document.replaced(holder, new), inverse)

    def to_json(self) -> dict[str, Json]:
        """Return the ids."""
        return {"blockIds": list(self.block_ids)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(tuple(stored["blockIds"]))


class RestoreElements(Struct, frozen=True):
    """Restore earlier states of elements: the inverse of a change inside them.

    Attributes:
        elements: earlier states of elements that are in the document.
    """

    name: ClassVar[str] = "restore"
    elements: tuple[Element, ...]

    def apply(self, document: Document) -> Change:
        """Restore all or none."""
        changed, replaced = restored(document, self.elements)
        return Change(changed, RestoreElements(replaced))

    def to_json(self) -> dict[str, Json]:
        """Return the states."""
        return {"elements": [element_to_json(element) for element in self.elements]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(tuple([element_from_json(element) for element in stored["elements"]]))

"""Operations that make blocks of one type of blocks of another."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.conversions import converted
from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.nodes import Element, Json, element_from_json, element_to_json
from services.articles.tree.operations.base import (
    Change,
    check_cites,
    check_labels,
    check_size,
    find_element,
)
from services.articles.tree.parsing import NewId
from services.articles.tree.texts import count_characters
from services.articles.tree.values import schema_error
from services.common.articles import limits


class ReplaceBlocks(Struct, frozen=True):
    """Replace adjacent top-level blocks by others, which may have their ids.

    Attributes:
        block_ids: ids of the blocks in document order.
        blocks: at least one, in normal form.
    """

    name: ClassVar[str] = "replace-blocks"
    block_ids: tuple[str, ...]
    blocks: tuple[Element, ...]

    def apply(self, document: Document) -> Change:
        """Replace all or none."""
        start, old = adjacent_blocks(document, self.block_ids)
        for block in self.blocks:
            check_cites(document, block, "/blockIds")
        check_labels(document, self.blocks, lambda index: "/blockIds", self.block_ids)
        check_size(document, 1, old, self.blocks, "/blockIds")
        if len(document.blocks) - len(old) + len(self.blocks) > limits.TOP_LEVEL_BLOCKS:
            problem = f"a document can have at most {limits.TOP_LEVEL_BLOCKS} top-level blocks"
            raise schema_error("/blockIds", problem)
        ids = tuple([block.id for block in self.blocks])
        changed = document.spliced(start, start + len(old), self.blocks)
        return Change(changed, ReplaceBlocks(ids, tuple(old)), ids)

    def to_json(self) -> dict[str, Json]:
        """Return ids and blocks."""
        blocks = [element_to_json(block) for block in self.blocks]
        return {"blockIds": list(self.block_ids), "blocks": blocks}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        blocks = [element_from_json(block) for block in stored["blocks"]]
        return cls(tuple(stored["blockIds"]), tuple(blocks))


class ConvertBlocks(Struct, frozen=True):
    """Convert adjacent top-level blocks to another type.

    Attributes:
        block_ids: ids of the blocks in document order.
        kind: the type.
        new_id: returns an id that no element ever had.
    """

    block_ids: tuple[str, ...]
    kind: str
    new_id: NewId

    def apply(self, document: Document) -> Change:
        """Convert all or none; the ids of the change are those of the resulting blocks."""
        _, old = adjacent_blocks(document, self.block_ids)
        replacement = ReplaceBlocks(self.block_ids, converted(old, self.kind, self.new_id))
        return replace(
            replacement.apply(document),
            operation=replacement,
            copied_characters=2 * count_characters(old),
        )


def adjacent_blocks(document: Document, block_ids: Sequence[str]) -> tuple[int, Sequence[Element]]:
    """Return the position of adjacent top-level blocks, and the blocks.

    Raises:
        EditError: one is not in the document, not at the top, or not after the one before.
    """
    path, _ = find_element(document, block_ids[0], "/blockIds/0")
    if len(path) > 1:
        raise schema_error("/blockIds/0", "must be a block at the top level of the document")
    stop = min(path[0] + len(block_ids), len(document.blocks))
    blocks = [document.blocks[at] for at in range(path[0], stop)]
    for index, block_id in enumerate(block_ids):
        pointer = f"/blockIds/{index}"
        if index >= len(blocks) or blocks[index].id != block_id:
            find_element(document, block_id, pointer)
            raise EditError(EditErrorCode.SCHEMA, pointer, "must be the block after the one before")
    return path[0], blocks

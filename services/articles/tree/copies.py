"""The edit that makes an empty document a copy of another, or of the template in it."""

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.document import Document
from services.articles.tree.operations.base import Change, Operation
from services.articles.tree.operations.blocks import InsertBlocks
from services.articles.tree.operations.moves import copied
from services.articles.tree.operations.reference_imports import AddReferences
from services.articles.tree.operations.stored import OperationSequence
from services.articles.tree.operations.styles import SetArticleStyle
from services.articles.tree.parsing import NewId
from services.articles.tree.texts import count_characters


class CopyDocument(Struct, frozen=True):
    """Make an empty document a copy.

    Attributes:
        operations: what the log stores.
        copied_characters: characters of the blocks.
    """

    operations: OperationSequence
    copied_characters: int

    def apply(self, document: Document) -> Change:
        """Apply the operations."""
        change = self.operations.apply(document)
        return replace(change, copied_characters=self.copied_characters, of_edits=())


def copy_of(source: Document, new_id: NewId, *, copies_all: bool) -> CopyDocument | None:
    """Return the edit that copies the style of a document, blocks, and references.

    Args:
        source: the document.
        new_id: returns an id that no element ever had.
        copies_all: whether to copy all blocks and references; otherwise those top-level blocks that
            are marked as templates, and the references that they cite.

    Returns:
        The edit, or None if no block is marked as a template.
    """
    blocks = list(source.blocks)
    references = list(source.references.values())
    if not copies_all:
        blocks = [block for block in blocks if block.style.get("isTemplate")]
        if not blocks:
            return None
        cited = {reference_id for block in blocks for reference_id in block.cites}
        references = [reference for reference in references if reference["id"] in cited]
    operations: list[Operation] = []
    if source.style:
        operations.append(SetArticleStyle(source.style))
    if references:
        operations.append(AddReferences(tuple(references)))
    if blocks:
        copies = tuple([copied(block, new_id) for block in blocks])
        operations.append(InsertBlocks((0,), copies))
    return CopyDocument(OperationSequence(tuple(operations)), count_characters(blocks))

"""Insertion of a document in another format, with its references."""

from msgspec import Struct

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError
from services.articles.tree.operations.base import Change
from services.articles.tree.operations.markdown import WriteMarkdown
from services.articles.tree.operations.reference_imports import ImportReferences
from services.articles.tree.operations.stored import ApplyEdits
from services.articles.tree.values import schema_error


class ImportDocument(Struct, frozen=True):
    """Add the references of a document, then insert its blocks.

    Attributes:
        references: the references.
        blocks: the blocks, which may cite them.
        pointer: the field of the request that holds the document.
    """

    references: ImportReferences
    blocks: WriteMarkdown
    pointer: str

    def apply(self, document: Document) -> Change:
        """Do both or nothing; an error points to the document, or to its position."""
        if not self.blocks.blocks and not self.references.references:
            raise schema_error(self.pointer, "must have some text")
        try:
            return ApplyEdits((self.references, self.blocks)).apply(document)
        except EditError as error:
            pointer = "/position" if error.pointer.endswith("/position") else self.pointer
            raise EditError(error.code, pointer, error.problem) from None

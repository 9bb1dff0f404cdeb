"""Operations on references: add, update, delete, restore."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.nodes import (
    Element,
    Json,
    Leaf,
    element_from_json,
    element_to_json,
)
from services.articles.tree.operations.base import (
    Change,
    map_leaves,
    restored,
    unknown_reference_error,
    without_cite,
)
from services.articles.tree.references import Reference
from services.articles.tree.style import apply_style_patch, inverse_patch
from services.articles.tree.values import schema_error
from services.common.articles import limits


class AddReference(Struct, frozen=True):
    """Add a reference after the others.

    Attributes:
        reference: a reference with an id that no reference of the document has.
    """

    name: ClassVar[str] = "add-reference"
    reference: Reference

    def apply(self, document: Document) -> Change:
        """Add the reference."""
        identifier = str(self.reference["id"])
        _check_free(document, identifier)
        changed = replace(document, references={**document.references, identifier: self.reference})
        return Change(changed, DeleteReference(identifier), (identifier,))

    def to_json(self) -> dict[str, Json]:
        """Return the reference."""
        return {"reference": self.reference}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(stored["reference"])


def _check_free(document: Document, identifier: str) -> None:
    if identifier in document.references:
        problem = "a reference with this id already exists in the document"
        raise EditError(EditErrorCode.REFERENCE_EXISTS, "/reference/id", problem)
    if len(document.references) >= limits.REFERENCES:
        raise schema_error(
            "/reference", f"a document can have at most {limits.REFERENCES} references"
        )


class UpdateReference(Struct, frozen=True):
    """Change fields of a reference.

    Attributes:
        reference_id: id of the reference.
        patch: a merge patch of the other fields; null removes a field.
    """

    name: ClassVar[str] = "update-reference"
    reference_id: str
    patch: Reference

    def apply(self, document: Document) -> Change:
        """Merge the patch into the reference, which must exist."""
        old = document.references.get(self.reference_id)
        if old is None:
            raise unknown_reference_error("/reference/id")
        new = apply_style_patch(old, self.patch)
        changed = replace(document, references={**document.references, self.reference_id: new})
        return Change(changed, UpdateReference(self.reference_id, inverse_patch(old, self.patch)))

    def to_json(self) -> dict[str, Json]:
        """Return id and patch."""
        return {"referenceId": self.reference_id, "patch": self.patch}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(stored["referenceId"], stored["patch"])


class DeleteReference(Struct, frozen=True):
    """Remove a reference and every citation of it.

    Attributes:
        reference_id: id of the reference.
    """

    name: ClassVar[str] = "delete-reference"
    reference_id: str

    def apply(self, document: Document) -> Change:
        """Remove the reference, which must exist."""
        reference = document.references.get(self.reference_id)
        if reference is None:
            raise unknown_reference_error("/referenceId")
        index = list(document.references).index(self.reference_id)
        remaining = {k: v for k, v in document.references.items() if k != self.reference_id}

        def clear(leaf: Leaf) -> Leaf:
            return without_cite(leaf, self.reference_id)

        citing = tuple(document.blocks.citing(self.reference_id))
        cleared = {block.id: map_leaves(block, clear) for block in citing}
        changed = replace(document, blocks=document.blocks.updated(cleared), references=remaining)
        return Change(changed, RestoreReference(reference, index, citing))

    def to_json(self) -> dict[str, Json]:
        """Return the id."""
        return {"referenceId": self.reference_id}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(stored["referenceId"])


class RestoreReference(Struct, frozen=True):
    """Restore a deleted reference and its citations: the inverse of a deletion.

    Attributes:
        reference: the deleted reference.
        at: its position among the references.
        elements: earlier states of the blocks that cited it.
    """

    name: ClassVar[str] = "restore-reference"
    reference: Reference
    at: int
    elements: tuple[Element, ...]

    def apply(self, document: Document) -> Change:
        """Restore all or nothing."""
        identifier = str(self.reference["id"])
        _check_free(document, identifier)
        entries = list(document.references.items())
        entries.insert(self.at, (identifier, self.reference))
        changed, _ = restored(replace(document, references=dict(entries)), self.elements)
        return Change(changed, DeleteReference(identifier), (identifier,))

    def to_json(self) -> dict[str, Json]:
        """Return the fields."""
        return {
            "reference": self.reference,
            "at": self.at,
            "elements": [element_to_json(element) for element in self.elements],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        elements = [element_from_json(element) for element in stored["elements"]]
        return cls(stored["reference"], stored["at"], tuple(elements))

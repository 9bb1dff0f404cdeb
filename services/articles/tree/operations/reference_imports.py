"""Addition of the references of a bibliography."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from services.articles.bibliography.entries import Omission
from services.articles.tree.document import Document
from services.articles.tree.nodes import Json
from services.articles.tree.operations.base import Change
from services.articles.tree.operations.bibliography import DeleteReference
from services.articles.tree.operations.stored import OperationSequence, register
from services.articles.tree.references import Reference
from services.articles.tree.values import schema_error
from services.common.articles import limits


class AddReferences(Struct, frozen=True):
    """Add references after the others.

    Attributes:
        references: references with different ids, which no reference of the document has.
    """

    name: ClassVar[str] = "add-references"
    references: tuple[Reference, ...]

    def apply(self, document: Document) -> Change:
        """Add all or none."""
        if len(document.references) + len(self.references) > limits.REFERENCES:
            raise schema_error(
                "/text", f"a document can have at most {limits.REFERENCES} references"
            )
        new = {str(reference["id"]): reference for reference in self.references}
        changed = replace(document, references={**document.references, **new})
        deletions = tuple([DeleteReference(identifier) for identifier in reversed(new)])
        return Change(changed, OperationSequence(deletions), tuple(new))

    def to_json(self) -> dict[str, Json]:
        """Return the references."""
        return {"references": list(self.references)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(tuple(stored["references"]))


register(AddReferences)


class ImportReferences(Struct, frozen=True):
    """Add those references of a bibliography whose ids the document does not have.

    Attributes:
        references: the references, with different ids.
        omitted: what could not be read.
    """

    references: tuple[Reference, ...]
    omitted: tuple[Omission, ...]

    def apply(self, document: Document) -> Change:
        """Add them; what is left out is in the change."""
        new = []
        omitted = list(self.omitted)
        for reference in self.references:
            identifier = str(reference["id"])
            if identifier in document.references:
                same = document.references[identifier] == reference
                which = "this reference" if same else "another reference with this id"
                omitted.append(Omission(identifier, f"the document has {which} already"))
            else:
                new.append(reference)
        addition = AddReferences(tuple(new))
        return replace(addition.apply(document), operation=addition, omitted=tuple(omitted))

"""The operation on what is known of a document as a whole: a merge patch (RFC 7396)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.document import Document
from services.articles.tree.nodes import Json
from services.articles.tree.operations.base import Change
from services.articles.tree.style import apply_style_patch, inverse_patch


class SetProperties(Struct, frozen=True):
    """Change date, keywords, language and direction.

    Attributes:
        patch: properties; null removes one.
    """

    name: ClassVar[str] = "properties"
    patch: Mapping[str, Json]

    def apply(self, document: Document) -> Change:
        """Merge the patch."""
        changed = replace(document, properties=apply_style_patch(document.properties, self.patch))
        return Change(changed, SetProperties(inverse_patch(document.properties, self.patch)))

    def to_json(self) -> dict[str, Json]:
        """Return the patch."""
        return {"patch": self.patch}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(stored["patch"])

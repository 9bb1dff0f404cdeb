"""Operations on styles, of a block or the article: merge patches (RFC 7396)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.document import Document
from services.articles.tree.nodes import Json
from services.articles.tree.operations.base import Change, find_element
from services.articles.tree.style import (
    Style,
    apply_style_patch,
    check_article_style,
    check_element_style,
    inverse_patch,
)


class SetBlockStyle(Struct, frozen=True):
    """Change an element's own style.

    Attributes:
        block_id: id of the element.
        patch: an ElementStyle in which null removes a property.
    """

    name: ClassVar[str] = "style-block"
    block_id: str
    patch: Style

    def apply(self, document: Document) -> Change:
        """Merge the patch, which must fit the element's type."""
        path, old = find_element(document, self.block_id)
        check_element_style(old.type, self.patch, "")
        new = replace(old, style=apply_style_patch(old.style, self.patch))
        inverse = SetBlockStyle(self.block_id, inverse_patch(old.style, self.patch))
        return Change(document.replaced(path, new), inverse)

    def to_json(self) -> dict[str, Json]:
        """Return id and patch."""
        return {"blockId": self.block_id, "patch": self.patch}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(stored["blockId"], stored["patch"])


class SetArticleStyle(Struct, frozen=True):
    """Change the style of the article.

    Attributes:
        patch: an ArticleStyle in which null removes a property.
    """

    name: ClassVar[str] = "style-article"
    patch: Style

    def apply(self, document: Document) -> Change:
        """Merge the patch."""
        check_article_style(self.patch, "/style")
        changed = replace(document, style=apply_style_patch(document.style, self.patch))
        return Change(changed, SetArticleStyle(inverse_patch(document.style, self.patch)))

    def to_json(self) -> dict[str, Json]:
        """Return the patch."""
        return {"patch": self.patch}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(stored["patch"])

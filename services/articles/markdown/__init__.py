"""Blocks and documents as Markdown: CommonMark with the tables and strikethrough of GFM.

`ElementRenderer` and `render_document` are the API. `escape` escapes text, `inline` renders leaves,
`lines` the lines of a paragraph, `tables` tables (as HTML if GFM cannot express them), `blocks`
each block type.
"""

from collections.abc import Mapping
from typing import NamedTuple

from services.articles.markdown.blocks import MarkdownContext, block_markdown
from services.articles.tree.document import Document
from services.articles.tree.nodes import Element

__all__ = ["Rendered", "Renderer", "render_document"]


class Rendered(NamedTuple):
    """A rendered top-level block.

    Attributes:
        id: id of the block.
        type: type of the block.
        text: its Markdown; "" if there is nothing to show.
    """

    id: str
    type: str
    text: str


class ElementRenderer:
    """Renderer for elements of one document; citations are numbered once for all of them."""

    def __init__(self, document: Document) -> None:
        numbers: Mapping[str, int] = document.numbers()
        self._context = MarkdownContext(document.style, numbers)

    def block(self, element: Element) -> str:
        """Return the Markdown of one element."""
        return block_markdown(element, self._context)


def render_document(document: Document) -> tuple[list[Rendered], str]:
    """Return the rendered top-level blocks, and the Markdown of the whole document."""
    renderer = ElementRenderer(document)
    rendered = [Rendered(block.id, block.type, renderer.block(block)) for block in document.blocks]
    return rendered, "\n\n".join(block.text for block in rendered if block.text)

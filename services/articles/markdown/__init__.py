"""Blocks and documents as Markdown: CommonMark with the tables and strikethrough of GFM.

`ElementRenderer`, `joined` and `render_document` are the API. `escape` escapes text, `inline`
renders leaves, `lines` the lines of a paragraph, `tables` tables (as HTML if GFM cannot express
them), `blocks` each block type.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from services.articles.markdown.blocks import MarkdownContext, block_markdown
from services.articles.markdown.citations import ShownReferences
from services.articles.tree.document import Document
from services.articles.tree.nodes import Element

__all__ = ["ElementRenderer", "Rendered", "joined", "render_document"]


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


# Between two lists with markers of one kind, which parsers would read as one list.
_LIST_END = "<!-- -->"


class ElementRenderer:
    """Renderer for elements of one document; citations are numbered once for all of them.

    Args:
        document: the document.
        with_images: whether images are shown; otherwise they render to "".
        with_keys: whether citations show ids of references, not numbers.
    """

    def __init__(
        self, document: Document, *, with_images: bool = True, with_keys: bool = False
    ) -> None:
        shown = ShownReferences(document, with_keys=with_keys)
        self._context = MarkdownContext(document.style, shown, with_images)

    def block(self, element: Element) -> str:
        """Return the Markdown of one element."""
        return block_markdown(element, self._context)

    def blocks(self, elements: Iterable[Element]) -> list[Rendered]:
        """Return elements with their Markdown."""
        return [Rendered(element.id, element.type, self.block(element)) for element in elements]


def joined(blocks: Iterable[Rendered]) -> str:
    """Return the Markdown of blocks as one text, with a comment between adjacent lists."""
    shown = [block for block in blocks if block.text]
    parts = [block.text for block in shown[:1]]
    for before, block in pairwise(shown):
        if before.type == block.type == "list" and _is_ordered(before) == _is_ordered(block):
            parts.append(_LIST_END)
        parts.append(block.text)
    return "\n\n".join(parts)


def _is_ordered(rendered_list: Rendered) -> bool:
    return not rendered_list.text.startswith("-")


def render_document(document: Document) -> tuple[list[Rendered], str]:
    """Return the rendered top-level blocks, and the Markdown of the whole document."""
    rendered = ElementRenderer(document).blocks(document.blocks)
    return rendered, joined(rendered)

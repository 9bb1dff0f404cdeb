"""Nodes of pandoc's tree as inline Markdown."""

from collections.abc import Iterable

from services.articles.markdown.citations import ShownReferences
from services.articles.markdown.inline import inline
from services.articles.pandoc import citations
from services.articles.pandoc.syntax import Node
from services.articles.pandoc.to_leaves import LeafReader
from services.articles.tree.document import Document
from services.articles.tree.nodes import Leaf
from services.articles.tree.normalise import normal_leaves

_NOTHING_SHOWN = ShownReferences(Document())


def leaves_markdown(leaves: Iterable[Leaf]) -> str:
    """Return leaves without citations and references as Markdown on one line."""
    return " ".join(inline(normal_leaves(leaves), _NOTHING_SHOWN).split())


def inline_markdown(nodes: Iterable[Node]) -> str:
    """Return inline nodes, without citations, as Markdown on one line."""
    return leaves_markdown(LeafReader([]).leaves(nodes))


def plain_references(document: Document) -> list[str]:
    """Return the cited references of a document, numbered, without a style."""
    cited = [document.references[one] for one in document.numbers()]
    return [inline_markdown(entry["c"]) for entry in citations.plain_list(cited)]

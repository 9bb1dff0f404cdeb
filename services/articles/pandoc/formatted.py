"""Citations and references in a style: the tree that pandoc formats, and what it made of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from services.articles.pandoc import citations, syntax
from services.articles.pandoc.inlines import InlineWriter, with_citations
from services.articles.pandoc.markdown import inline_markdown
from services.articles.pandoc.syntax import Node
from services.articles.pandoc.to_leaves import LeafReader
from services.articles.tree.document import Document
from services.articles.tree.nodes import Citation, Element, Leaf, walk
from services.articles.tree.nodes import Node as Child
from services.articles.tree.normalise import normal_children

_ENTRY = "ref-"
# Classes of the number of a reference, and of the text after it.
_NUMBER = "csl-left-margin"
_TEXT = "csl-right-inline"


class DocumentCitation(NamedTuple):
    """A citation in a document, before it is formatted."""

    block_id: str
    reference_ids: tuple[str, ...]
    node: Node


class Formatted(NamedTuple):
    """The citations and references of a document in a style.

    Attributes:
        citations: texts of its citations.
        bibliography: ids of its references, each with its text in Markdown.
    """

    citations: list[tuple[Leaf, ...]]
    bibliography: list[tuple[str, str]]


def citations_in(document: Document) -> list[DocumentCitation]:
    """Return the citations of a document in order."""
    return list(_citations(document))


def _citations(document: Document) -> Iterator[DocumentCitation]:
    writer = InlineWriter(document)
    for block in document.blocks:
        for element in walk(block) if block.cites else ():
            for cited in _cited_in((*element.leaves, *element.caption)):
                ids = tuple([one.id for one in cited])
                yield DocumentCitation(element.id, ids, writer.cite(cited))


def _cited_in(leaves: Sequence[Leaf]) -> Iterator[tuple[Citation, ...]]:
    for part in with_citations(leaves):
        if not isinstance(part, Leaf):
            yield part
        elif part.note:
            yield from _cited_in(part.note)


def tree_to_format(
    document: Document, cited: list[DocumentCitation], locale: str = "", *, with_all: bool
) -> Node:
    """Return a tree with a paragraph for each citation, and a place for the references.

    Args:
        document: the document.
        cited: its citations.
        locale: the language of the references, "" for that of the style.
        with_all: whether to list references that are not cited, too.
    """
    metadata = {"references": citations.references_meta(document.references.values())}
    if with_all:
        metadata["nocite"] = citations.all_cited()
    if locale:
        metadata["lang"] = syntax.meta(locale)
    blocks = [syntax.para([one.node]) for one in cited]
    return syntax.document(metadata, [*blocks, citations.styled_list()])


def read_formatted(root: Node) -> Formatted:
    """Return what pandoc made of `tree_to_format`."""
    texts, entries = [], []
    for block in root["blocks"]:
        if block["t"] == "Para":
            texts.append(tuple(LeafReader([]).leaves(_without_cites(block["c"]))))
            continue
        for identifier, content in _listed(block):
            entries.append((identifier, " ".join(_texts(content))))
    return Formatted(texts, entries)


def read_entries(root: Node) -> dict[str, list[Node]]:
    """Return the texts of references, without their numbers, in what pandoc made of a tree."""
    lists = [block for block in root["blocks"] if block["t"] == "Div"]
    return {
        identifier: list(_without_numbers(content))
        for block in lists
        for identifier, content in _listed(block)
    }


def _listed(block: Node) -> Iterator[tuple[str, list[Any]]]:
    """Yield the ids and the blocks of the references in a list."""
    for entry in block["c"][1]:
        (identifier, _, _), content = entry["c"]
        yield identifier.removeprefix(_ENTRY), content


def _without_numbers(blocks: list[Mapping[str, Any]]) -> Iterator[Node]:
    for block in blocks:
        if block["t"] == "Div":
            yield from _without_numbers(block["c"][1])
            continue
        for node in block["c"]:
            classes = node["c"][0][1] if node["t"] == "Span" else []
            if _NUMBER in classes:
                continue
            if _TEXT in classes:
                yield from node["c"][1]
            else:
                yield node


def with_formatted_citations(document: Document, formatted: Formatted) -> list[Element]:
    """Return the blocks of a document with texts in place of their citations."""
    texts = iter(formatted.citations)
    return [_formatted(block, texts) if block.cites else block for block in document.blocks]


def _formatted(element: Element, texts: Iterator[tuple[Leaf, ...]]) -> Element:
    children: list[Child] = [*_replaced(element.leaves, texts)]
    caption = tuple(_replaced(element.caption, texts))
    children += [_formatted(child, texts) for child in element.elements]
    return replace(element, children=normal_children(element.type, children), caption=caption)


def _replaced(leaves: Sequence[Leaf], texts: Iterator[tuple[Leaf, ...]]) -> Iterator[Leaf]:
    for part in with_citations(leaves):
        if not isinstance(part, Leaf):
            yield from next(texts)
        elif part.note:
            yield replace(part, cite=None, note=tuple(_replaced(part.note, texts)))
        else:
            yield replace(part, cite=None)


def _without_cites(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        if node["t"] == "Cite":
            yield from node["c"][1]
        else:
            yield node


def _texts(blocks: list[Mapping[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if block["t"] == "Div":
            yield from _texts(block["c"][1])
        else:
            yield inline_markdown(_spaced(block["c"]))


def _spaced(nodes: list[Node]) -> Iterator[Node]:
    """Yield nodes with a space between the number of an entry and its text."""
    for index, node in enumerate(nodes):
        if index and node["t"] == "Span" == nodes[index - 1]["t"]:
            yield syntax.node("Space")
        yield node

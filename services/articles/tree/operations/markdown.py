"""Insertion of a text in Markdown."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from services.articles.bibliography.entries import Omission
from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.nodes import Element, Leaf, Node
from services.articles.tree.normalise import normal_children
from services.articles.tree.operations.base import Change
from services.articles.tree.operations.blocks import InsertBlocks
from services.common.articles import limits

_CITATION = re.compile(r"\[([^\[\]]*)\]")
_KEY = re.compile(r"([^@]*?)(-?)@(?:\{([^}]+)\}|([^\s,;]+))(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WriteMarkdown:
    """Insert the blocks of a text.

    Attributes:
        position: position of the first block among those at the top; None for the end.
        blocks: the blocks, with leaves of type `citation`.
        omitted: parts of the text that documents do not hold.
    """

    position: int | None
    blocks: tuple[Element, ...]
    omitted: tuple[Omission, ...]

    def apply(self, document: Document) -> Change:
        """Insert all blocks; in an empty document, a first heading of level 1 is the title."""
        omitted = list(self.omitted)
        blocks = _Citations(document, omitted).resolved(self.blocks)
        if not len(document.blocks) and blocks[0].type == "h1":
            blocks = (replace(blocks[0], type="title"), *blocks[1:])
        position = len(document.blocks) if self.position is None else self.position
        insertion = InsertBlocks((position,), blocks)
        try:
            change = insertion.apply(document)
        except EditError as error:
            pointer = "/position" if error.code is EditErrorCode.PATH else "/markdown"
            raise EditError(error.code, pointer, error.problem) from None
        lost = tuple(omitted[: limits.OMISSIONS])
        return replace(change, operation=insertion, omitted=lost)


class _Citations:
    """Finds the references that a text cites, in the document that it is written to."""

    def __init__(self, document: Document, omitted: list[Omission]) -> None:
        self._references = document.references
        self._omitted = omitted
        self._by_number: Mapping[str, str] = {
            str(number): reference_id for reference_id, number in document.numbers().items()
        }

    def resolved(self, blocks: tuple[Element, ...]) -> tuple[Element, ...]:
        return tuple([self._element(block) for block in blocks])

    def _element(self, element: Element) -> Element:
        children: list[Node] = []
        for child in element.children:
            if isinstance(child, Element):
                children.append(self._element(child))
            elif child.type == "citation":
                children += self._leaves(child)
            else:
                children.append(child)
        if all(new is old for new, old in zip(children, element.children, strict=False)):
            return element
        return element.with_children(normal_children(element.type, children))

    def _leaves(self, leaf: Leaf) -> Iterator[Leaf]:
        """Yield leaves without words that cite; a citation that is not resolved is text."""
        for citation in _CITATION.finditer(leaf.text):
            inner = citation[1]
            cites: list[str] = []
            if inner.isdecimal():
                cites = [self._by_number[inner]] if inner in self._by_number else []
                if not cites:
                    self._lose(inner, "the document cites no reference with this number")
            else:
                cites = self._keys(inner)
            if cites:
                yield from [Leaf("", cite=cite) for cite in cites]
            else:
                yield replace(leaf, type="default", text=citation[0])

    def _keys(self, inner: str) -> list[str]:
        cites = []
        words = []
        for part in inner.split(";"):
            key = _KEY.fullmatch(part)
            name = (key[3] or key[4]) if key else ""
            if name not in self._references:
                name = name.rstrip(".:?!")
            if key is None or name not in self._references:
                self._lose(
                    f"@{name[:64]}", "the document has no such reference; it is here as text"
                )
                return []
            cites.append(name)
            words += [word for each in (key[1], key[5]) if (word := each.strip(" ,"))]
        if words:
            self._lose(inner[:200], "the words beside a citation")
        return cites

    def _lose(self, place: str, reason: str) -> None:
        self._omitted.append(Omission(place, reason))

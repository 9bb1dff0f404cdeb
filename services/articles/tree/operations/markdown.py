"""Insertion of a text in Markdown."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from services.articles.bibliography.entries import Omission
from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.inline_rules import KEYED, NUMBERED, plain_text, split_citations
from services.articles.tree.nodes import (
    OBJECT,
    Citation,
    Element,
    Json,
    Leaf,
    Node,
    normal_cite,
)
from services.articles.tree.normalise import normal_children, normal_leaves
from services.articles.tree.operations.base import Change, Operation
from services.articles.tree.operations.blocks import InsertBlocks
from services.articles.tree.operations.properties import SetProperties
from services.articles.tree.operations.stored import OperationSequence
from services.common.articles import limits

# Labels of locators, as in "p. 3" or "chap. 2".
_LOCATOR = re.compile(
    r"(?:(?:[Cc]h(?:ap|apter)?s?|pp?|pages?|[Ss]ec(?:tion)?s?|[Ff]ig(?:ure)?s?|[Tt]ab(?:le)?s?|[Ee]qs?|vols?"
    r"|nos?|[Aa]pp|[Tt]hms?|[Ll]emma|paras?|arts?|vv?|ll?|nn?|§+|¶+)\b\.?\s*)?"
    r"[\divxlcIVXLC]+(?:[-–:.][\divxlcIVXLC]+)*(?:(?:,|\s*&|\s+and)\s*\d+(?:[-–]\d+)*)*"  # noqa: RUF001  # en dashes, of ranges
    r"(?=[\s,;]|$)"
)


class WriteMarkdown(Struct, frozen=True):
    """Insert the blocks of a text.

    Attributes:
        position: position of the first block among those at the top; None for the end.
        blocks: the blocks, with leaves of type `citation`.
        omitted: parts of the text that documents do not hold.
        properties: properties of the document that the text sets.
        pointers: JSON pointers of the files that the request names beside the text, by their ids.
    """

    position: int | None
    blocks: tuple[Element, ...]
    omitted: tuple[Omission, ...]
    properties: Mapping[str, Json] = field(default_factory=dict)
    pointers: Mapping[str, str] = field(default_factory=dict)

    def apply(self, document: Document) -> Change:
        """Insert all blocks; in an empty document, a first heading of level 1 is the title."""
        omitted = list(self.omitted)
        blocks = _with_free_labels(self.blocks, document, omitted)
        blocks = _Citations(document, blocks, omitted).resolved(blocks)
        if not len(document.blocks) and blocks and blocks[0].type == "h1":
            if (label := blocks[0].label) is not None:
                omitted.append(Omission(f"#{label}", "a title has no label"))
            title = replace(_without_label(blocks[0]), type="title", style={})
            blocks = (title, *blocks[1:])
        position = len(document.blocks) if self.position is None else self.position
        edits: list[Operation] = [InsertBlocks((position,), blocks)] if blocks else []
        if self.properties:
            edits.append(SetProperties(self.properties))
        edit = edits[0] if len(edits) == 1 else OperationSequence(tuple(edits))
        try:
            change = edit.apply(document)
        except EditError as error:
            pointer = "/position" if error.code is EditErrorCode.PATH else "/markdown"
            raise EditError(error.code, pointer, error.problem) from None
        ids = tuple([block.id for block in blocks])
        lost = tuple(omitted[: limits.OMISSIONS])
        return replace(change, operation=edit, omitted=lost, ids=ids, of_edits=())


def _with_free_labels(
    blocks: tuple[Element, ...], document: Document, omitted: list[Omission]
) -> tuple[Element, ...]:
    """Return blocks without the labels that blocks of the document have."""
    made = []
    for block in blocks:
        if block.label is not None and document.blocks.labelled(block.label) is not None:
            omitted.append(Omission(f"#{block.label}", "a block of the document has this label"))
            block = _without_label(block)
        made.append(block)
    return tuple(made)


def _without_label(block: Element) -> Element:
    content = {key: value for key, value in block.content.items() if key != "label"}
    return replace(block, content=content)


class _Citations:
    """Finds the references and blocks that a text names, in the document that it is written to."""

    def __init__(
        self, document: Document, blocks: tuple[Element, ...], omitted: list[Omission]
    ) -> None:
        self._document = document
        self._references = document.references
        self._omitted = omitted
        self._labels = {block.label for block in blocks}
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
            else:
                children += self._resolved_leaf(child)
        caption = [made for leaf in element.caption for made in self._resolved_leaf(leaf)]
        if caption:
            element = replace(element, caption=normal_leaves(caption))
        if len(children) == len(element.children) and all(
            new is old for new, old in zip(children, element.children, strict=True)
        ):
            return element
        return element.with_children(normal_children(element.type, children))

    def _resolved_leaf(self, leaf: Leaf) -> list[Leaf]:
        if leaf.type == "citation":
            return self._leaves(leaf)
        if leaf.type == "note":
            note = [made for child in leaf.note for made in self._resolved_leaf(child)]
            return [replace(leaf, note=normal_leaves(note))]
        if leaf.type == "ref" and not self._has_label(leaf.ref or ""):
            self._lose(f"#{leaf.ref}", "no block has this label; the reference shows ?? until then")
        return [leaf]

    def _has_label(self, label: str) -> bool:
        return label in self._labels or self._document.blocks.labelled(label) is not None

    def _leaves(self, leaf: Leaf) -> list[Leaf]:
        """Return leaves without words that cite; a citation that is not resolved is text."""
        source = leaf.text
        if source.startswith("@"):
            key, _, beside = source[1:].partition(" [")
            return self._narrative(leaf, _bare_key(key), beside[:-1])
        inner = source[1:-1]
        parts = split_citations(inner)
        if len(parts) == 1 and (key := inner.strip()).startswith("@"):
            if (label := _bare_key(key[1:])) not in self._references and self._has_label(label):
                return [_ref(leaf, label)]
        cite = self._citations(parts)
        return self._as_text(leaf) if cite is None else [Leaf("", cite=normal_cite(cite))]

    def _narrative(self, leaf: Leaf, key: str, beside: str) -> list[Leaf]:
        if key not in self._references:
            if self._has_label(key):
                after = [replace(leaf, type="default", text=f" [{plain_text(beside)}]")]
                return [_ref(leaf, key), *(after if beside else [])]
            self._lose(
                f"@{key[:64]}", "the document has no such reference or label; it is here as text"
            )
            return self._as_text(leaf)
        first, *others = split_citations(beside)
        further = self._citations(others) if others else ()
        if further is None:
            return self._as_text(leaf)
        locator, suffix = self._words_after(first)
        citation = Citation(key, "", locator, suffix, True)
        return [Leaf("", cite=(citation, *further))]

    @staticmethod
    def _as_text(leaf: Leaf) -> list[Leaf]:
        return [replace(leaf, type="default", text=plain_text(leaf.text))]

    def _citations(self, parts: Sequence[str]) -> tuple[Citation, ...] | None:
        """Return the citations in a pair of brackets; None if one is of no reference."""
        citations = []
        for part in parts[: limits.CITATIONS]:
            keyed = KEYED.fullmatch(part.strip())
            if keyed is not None:
                prefix, reference_id, beside = keyed[1], _bare_key(keyed[3]), keyed[4]
                if reference_id not in self._references:
                    reason = "the document has no such reference; it is here as text"
                    self._lose(f"@{reference_id[:64]}", reason)
                    return None
            else:
                numbered = NUMBERED.fullmatch(part.strip())
                assert numbered is not None
                prefix, beside = numbered[1] or "", numbered[3] or ""
                if numbered[2] not in self._by_number:
                    reason = "the document cites no reference with this number"
                    self._lose(numbered[2], reason)
                    return None
                reference_id = self._by_number[numbered[2]]
            locator, suffix = self._words_after(beside)
            citations.append(Citation(reference_id, self._words(prefix), locator, suffix))
        if len(parts) > limits.CITATIONS:
            self._lose(f"@{citations[-1].id[:64]}", f"citations after {limits.CITATIONS} together")
        return tuple(citations)

    def _words_after(self, beside: str) -> tuple[str, str]:
        """Return locator and suffix of the words after a reference.

        A comma is between them, as when they are shown.
        """
        words = self._words(beside)
        locator = _LOCATOR.match(words)
        rest = words[locator.end() :] if locator is not None else words
        if locator is None or (rest and not rest.startswith(", ")):
            return "", words
        return locator[0], rest.removeprefix(", ")

    def _words(self, markdown: str) -> str:
        words = " ".join(plain_text(markdown).split()).strip(" ,")
        if len(words) > limits.AFFIX:
            self._lose(words[:64], f"words beside a citation after {limits.AFFIX} characters")
        return words[: limits.AFFIX]

    def _lose(self, place: str, reason: str) -> None:
        self._omitted.append(Omission(place, reason))


def _ref(leaf: Leaf, label: str) -> Leaf:
    return replace(leaf, type="ref", text=OBJECT, ref=label)


def _bare_key(key: str) -> str:
    return key[1:-1] if key.startswith("{") else key

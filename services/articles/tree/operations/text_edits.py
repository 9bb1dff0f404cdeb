"""Edits of text by what it says: one text becomes another, wherever that is.

The log stores the blocks that result, so that later changes of the search change no document.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.inline_markdown import InlineText
from services.articles.tree.nodes import Element, Json, Leaf
from services.articles.tree.normalise import normal_children
from services.articles.tree.operations.base import Change, find_element
from services.articles.tree.operations.blocks import RestoreElements
from services.articles.tree.texts import CONTENT_TEXTS, PICTURE_TEXTS, content_texts, snippet, texts
from services.articles.tree.values import schema_error
from services.common.articles import limits

# Places that an error names.
_MOST_PLACES = 10
_CONTENT_LIMITS = {"equation": limits.EQUATION, "code": limits.CODE}


@dataclass(frozen=True, slots=True)
class Replacement:
    """A text, and what takes its place.

    Attributes:
        pointer: JSON pointer to the replacement.
        old: the text to find, as it was sent: plain text, or the code of a block.
        new: what takes its place, as it was sent.
        old_inline: `old`, parsed as Markdown.
        new_inline: `new`, parsed as Markdown.
        is_for_all: whether every occurrence is replaced; otherwise there must be only one.
    """

    pointer: str
    old: str
    new: str
    old_inline: InlineText
    new_inline: InlineText
    is_for_all: bool = False


class _Place(NamedTuple):
    element_id: str
    snippet: str


@dataclass(frozen=True, slots=True)
class EditText:
    """Replace texts in a document or in a block, in order; each sees the results of those before.

    Attributes:
        replacements: what is replaced.
        block_id: the block to search; None for all.
    """

    replacements: tuple[Replacement, ...]
    block_id: str | None = None

    def apply(self, document: Document) -> Change:
        """Replace all or nothing; the ids of the change are those of the changed elements.

        Raises:
            EditError: 40403; 40005, a text occurs nowhere, or more than once.
        """
        roots: Sequence[Element] = list(document.blocks)
        if self.block_id is not None:
            roots = [find_element(document, self.block_id)[1]]
        edited = {root.id: root for root in roots}
        for replacement in self.replacements:
            search = _search_for(replacement, [*edited.values()])
            for root_id, root in edited.items():
                edited[root_id] = search.replaced_in(root)
        changed = [(root, edited[root.id]) for root in roots if edited[root.id] != root]
        new = RestoreElements(tuple(after for _, after in changed))
        inverse = RestoreElements(tuple(before for before, _ in changed))
        ids = tuple([root.id for root, _ in changed])
        return Change(new.apply(document).document, inverse, ids, new)


def _search_for(replacement: Replacement, roots: Sequence[Element]) -> "_Search":
    """Return the search that finds the text once, or at all if it may occur more often.

    Raises:
        EditError: 40005.
    """
    places: list[_Place] = []
    for search in _searches(replacement):
        places = [place for root in roots for place in search.places(root)]
        if places and (len(places) == 1 or replacement.is_for_all):
            return search
        if places:
            break
    pointer = f"{replacement.pointer}/old"
    if places:
        problem = f"occurs {len(places)} times; send more of the text around it, or all: true"
    else:
        problem = "occurs nowhere"
        places = _similar(replacement.old_inline.text, roots)
    shown = "; ".join(f"{place.element_id}: {place.snippet!r}" for place in places[:_MOST_PLACES])
    if shown:
        problem += f". {'Similar: ' if problem == 'occurs nowhere' else 'Places: '}{shown}"
    raise EditError(EditErrorCode.NO_MATCH, pointer, problem)


def _searches(replacement: Replacement) -> "Iterator[_Search]":
    yield _Search(replacement.old_inline, replacement.new_inline, replacement)
    if replacement.old_inline.text != replacement.old:
        plain = InlineText((Leaf(replacement.old),)), InlineText((Leaf(replacement.new),))
        yield _Search(*plain, replacement)


def _similar(text: str, roots: Sequence[Element]) -> list[_Place]:
    """Return places with the text in other letters or spaces, or else with its longest word."""
    words = text.casefold().split()
    if not words:
        return []
    for wanted in (" ".join(words), max(words, key=len)):
        places = []
        for root in roots:
            for element_id, content in texts(root):
                if (at := content.casefold().find(wanted)) >= 0:
                    places.append(_Place(element_id, snippet(content, at, len(wanted))))
                    if len(places) == _MOST_PLACES:
                        return places
        if places:
            return places
    return []


class _Search:
    """Finds a text in elements, and replaces it."""

    def __init__(self, old: InlineText, new: InlineText, replacement: Replacement) -> None:
        self._text = old.text
        self._replacement = replacement
        self._splice = _Splice.between(old, new)

    def places(self, element: Element) -> Iterator[_Place]:
        """Yield every occurrence below an element."""
        for element_id, text in self._searched(element):
            wanted = self._text
            if element_id is None:
                element_id, wanted = element.id, self._replacement.old
            at = text.find(wanted)
            while at >= 0:
                yield _Place(element_id, snippet(text, at, len(wanted)))
                at = text.find(wanted, at + len(wanted))
        for child in element.elements:
            yield from self.places(child)

    def _searched(self, element: Element) -> Iterator[tuple[str | None, str]]:
        for text in content_texts(element.content):
            yield None, text
        if leaves := element.leaves:
            yield element.id, "".join(leaf.text for leaf in leaves)

    def replaced_in(self, element: Element) -> Element:
        """Return an element with every occurrence replaced; the same object without any."""
        content = self._content(element.content)
        leaves = element.leaves
        new_leaves = self._splice.apply(leaves, self._text)
        elements = element.elements
        new_elements = tuple([self.replaced_in(child) for child in elements])
        is_same = all(new is old for new, old in zip(new_elements, elements, strict=True))
        if content is element.content and new_leaves is leaves and is_same:
            return element
        children = normal_children(element.type, (*new_leaves, *new_elements))
        return replace(element, content=content, children=children)

    def _content(self, content: Mapping[str, Json]) -> Mapping[str, Json]:
        old, new = self._replacement.old, self._replacement.new
        if not any(old in text for text in content_texts(content)):
            return content
        changed = dict(content)
        for key in CONTENT_TEXTS:
            if key in changed:
                changed[key] = self._within(key, str(changed[key]).replace(old, new))
        if "image" in changed:
            pictures: Any = changed["image"]
            changed["image"] = [
                {
                    key: value.replace(old, new) if key in PICTURE_TEXTS else value
                    for key, value in picture.items()
                }
                for picture in pictures
            ]
        return changed

    def _within(self, key: str, text: str) -> str:
        most = _CONTENT_LIMITS.get(key, limits.LEAF_TEXT)
        if len(text) > most:
            pointer = f"{self._replacement.pointer}/new"
            raise schema_error(pointer, f"the {key} would have more than {most} characters")
        return text


class _Splice(NamedTuple):
    """The part of a text that differs from the text that takes its place.

    Attributes:
        start: number of equal characters at the beginning.
        end: number of equal characters at the end.
        leaves: what takes the place of the characters between.
        keeps_marks: whether these get the marks of what was there.
    """

    start: int
    end: int
    leaves: tuple[Leaf, ...]
    keeps_marks: bool

    @classmethod
    def between(cls, old: InlineText, new: InlineText) -> "_Splice":
        """Return the difference of two texts and their marks."""
        old_characters, new_characters = _characters(old), _characters(new)
        shorter = min(len(old_characters), len(new_characters))
        start = 0
        while start < shorter and old_characters[start] == new_characters[start]:
            start += 1
        end = 0
        while end < shorter - start and old_characters[-1 - end] == new_characters[-1 - end]:
            end += 1
        between = tuple(_cut(new.leaves, start, len(new_characters) - end))
        return cls(start, end, between, not old.is_marked)

    def apply(self, leaves: tuple[Leaf, ...], text: str) -> tuple[Leaf, ...]:
        """Return leaves with every occurrence of the text replaced."""
        whole = "".join(leaf.text for leaf in leaves)
        at = whole.find(text)
        if at < 0:
            return leaves
        result: list[Leaf] = []
        done = 0
        while at >= 0:
            first, last = at + self.start, at + len(text) - self.end
            result += _cut(leaves, done, first)
            replaced = list(_cut(leaves, first, last))
            base = _base(leaves, first, last)
            result += [self._marked(leaf, base) for leaf in self.leaves]
            # No citation is lost with the words that it stood at.
            cites = {leaf.cite: replace(leaf, text="") for leaf in replaced if leaf.cite}
            if self.leaves and base.cite:
                cites.pop(base.cite, None)
            result += cites.values()
            done = last
            at = whole.find(text, at + len(text))
        # Empty leaves at the end too.
        result += _cut(leaves, done, len(whole) + 1)
        return tuple(result)

    def _marked(self, leaf: Leaf, base: Leaf) -> Leaf:
        if not self.keeps_marks:
            return replace(leaf, cite=base.cite)
        if leaf.same_marks(Leaf("")):
            return replace(base, text=leaf.text)
        return replace(
            leaf,
            bold=leaf.bold or base.bold,
            italic=leaf.italic or base.italic,
            decoration=leaf.decoration or base.decoration,
            color=leaf.color or base.color,
            cite=base.cite,
        )


def _characters(text: InlineText) -> list[tuple[str, Leaf]]:
    pairs = []
    for leaf in text.leaves:
        marks = replace(leaf, text="")
        pairs += [(character, marks) for character in leaf.text]
    return pairs


def _base(leaves: Sequence[Leaf], first: int, last: int) -> Leaf:
    """Return the leaf whose marks a text between two positions gets."""
    position = 0
    # An insertion belongs to the text before it.
    wanted = first if last > first else max(0, first - 1)
    for leaf in leaves:
        position += len(leaf.text)
        if position > wanted:
            return leaf
    return leaves[-1]


def _cut(leaves: Sequence[Leaf], first: int, last: int) -> Iterator[Leaf]:
    """Yield the parts of leaves between two positions; an empty leaf belongs to what follows."""
    position = 0
    for leaf in leaves:
        following = position + len(leaf.text)
        if not leaf.text:
            if first <= position < last:
                yield leaf
        elif following > first and position < last:
            part = leaf.text[max(0, first - position) : last - position]
            yield leaf if part == leaf.text else replace(leaf, text=part)
        position = following

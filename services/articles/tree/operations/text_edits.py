"""Edits of text by what it says: one text becomes another, wherever that is.

The log stores the blocks that result, so that later changes of the search change no document.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import accumulate
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode, join_pointer
from services.articles.tree.inline_markdown import InlineText
from services.articles.tree.nodes import Element, Json, Leaf
from services.articles.tree.normalise import normal_children, normal_leaves
from services.articles.tree.operations.base import Change, find_element
from services.articles.tree.operations.blocks import RestoreElements
from services.articles.tree.splices import Splice
from services.articles.tree.texts import (
    CONTENT_TEXTS,
    PICTURE_TEXTS,
    content_texts,
    joined_texts,
    snippet,
    texts,
)
from services.articles.tree.values import schema_error
from services.common.articles import limits

# Places that an error names.
_MOST_PLACES = 10
_CONTENT_LIMITS = {"equation": limits.EQUATION, "code": limits.CODE}
# Words that are compared with one that occurs nowhere, and characters of such a word.
_MOST_COMPARED = 2_000
_TYPED_WORD = 4
_LONGEST_WORD = 40
_WORD = re.compile(r"\w{2,42}")
_WITHOUT_DELIMITERS = str.maketrans("", "", "*~`$")
# Between the texts of blocks: no text has it.
_END = "\0"


class Replacement(Struct, frozen=True):
    """A text, and what takes its place.

    Attributes:
        pointer: JSON pointer to the replacement.
        old: the text to find in formulas, listings, names and titles of pictures.
        new: what takes its place there.
        splices: how it is replaced in leaves: read as Markdown, then as plain text.
        is_for_all: whether every occurrence is replaced; otherwise there must be only one.
    """

    pointer: str
    old: str
    new: str
    splices: tuple[Splice, ...]
    is_for_all: bool = False

    @classmethod
    def of(
        cls, pointer: str, old: str, new: str, parsed: tuple[InlineText, InlineText], *, all: bool
    ) -> "Replacement":
        """Return the replacement of a text by another, each also parsed as Markdown."""
        splices = [Splice.between(*parsed)]
        if parsed[0].text != old:
            plain = InlineText((Leaf(old),)), InlineText((Leaf(new),) if new else ())
            splices.append(Splice.between(*plain))
        return cls(pointer, old, new, tuple(splices), all)


class _Place(NamedTuple):
    element_id: str
    snippet: str


class EditText(Struct, frozen=True):
    """Replace texts in a document or in a block, in order; each sees the results of those before.

    Attributes:
        replacements: what is replaced.
        block_id: the block to search; None for all.
    """

    replacements: tuple[Replacement, ...]
    block_id: str | None = None

    def apply(self, document: Document) -> Change:
        """Replace all or nothing; the ids of the change are those of the changed blocks.

        Raises:
            EditError: 40403; 40005, a text occurs nowhere, or more than once.
        """
        roots: Sequence[Element] = list(document.blocks)
        if self.block_id is not None:
            roots = [find_element(document, self.block_id)[1]]
        edited = _SearchedBlocks(roots)
        growth = 0
        for replacement in self.replacements:
            growth += _replace(replacement, edited)
            if growth > limits.TEXT_GROWTH:
                problem = f"all edits must insert at most {limits.TEXT_GROWTH} characters"
                raise schema_error(join_pointer(replacement.pointer, "new"), problem)
        changed = [
            (before, after)
            for before, after in zip(roots, edited.blocks, strict=True)
            if before is not after and before != after
        ]
        new = RestoreElements(tuple([after for _, after in changed]))
        inverse = RestoreElements(tuple([before for before, _ in changed]))
        ids = tuple([block.id for block, _ in changed])
        return Change(new.apply(document).document, inverse, ids, new)


class _SearchedBlocks:
    """Blocks with all of their texts in one, in which a text is found at once.

    Attributes:
        blocks: the blocks.
    """

    def __init__(self, blocks: Sequence[Element]) -> None:
        self.blocks = list(blocks)
        self._texts = [joined_texts(block, _END) for block in blocks]
        self._join()

    def _join(self) -> None:
        self._whole = _END.join(self._texts)
        self._starts = [0, *accumulate(len(text) + 1 for text in self._texts)]

    def positions(self, text: str, *, folded: bool = False) -> list[int]:
        """Return the positions of the blocks in which a text is, in any case if `folded`."""
        whole, starts = self._whole, self._starts
        if folded:
            texts_folded = [each.casefold() for each in self._texts]
            whole = _END.join(texts_folded)
            starts = [0, *accumulate(len(each) + 1 for each in texts_folded)]
        positions = []
        at = whole.find(text)
        while at >= 0:
            positions.append(bisect_right(starts, at) - 1)
            at = whole.find(text, starts[positions[-1] + 1])
        return positions

    def word_like(self, word: str) -> str:
        """Return the word, in lower case, that is most like another one; "" if none is."""
        if not _TYPED_WORD <= len(word) <= _LONGEST_WORD:
            return ""
        ends = (word[:2], word[-2:])
        words = {
            each
            for each in _WORD.findall(self._whole.casefold())
            if abs(len(each) - len(word)) <= 2 and (each[:2] == ends[0] or each[-2:] == ends[1])
        }
        close = get_close_matches(word, sorted(words)[:_MOST_COMPARED], n=1, cutoff=0.8)
        return close[0] if close else ""

    def put(self, changed: Mapping[int, Element]) -> None:
        """Replace blocks, by their positions."""
        for position, block in changed.items():
            self.blocks[position] = block
            self._texts[position] = joined_texts(block, _END)
        self._join()


def _replace(replacement: Replacement, edited: _SearchedBlocks) -> int:
    """Replace a text in blocks; return the number of characters inserted.

    Raises:
        EditError: 40005; 40003, it would insert too many.
    """
    for splice in replacement.splices:
        candidates = sorted({*edited.positions(splice.text), *edited.positions(replacement.old)})
        search = _Search(splice, replacement)
        count = sum(search.count(edited.blocks[position]) for position in candidates)
        if count == 1 or (count and replacement.is_for_all):
            growth = count * len(replacement.new)
            # Before, so that no edit can fill the memory.
            if growth <= limits.TEXT_GROWTH:
                edited.put({at: search.replaced_in(edited.blocks[at]) for at in candidates})
            return growth
        if count:
            places = [
                place for position in candidates for place in search.places(edited.blocks[position])
            ]
            problem = f"occurs {count} times; send more of the text around it, or all: true"
            raise _no_match(replacement, f"{problem}. Places: ", places)
    places = _similar(replacement.splices[0].text, edited)
    raise _no_match(replacement, "occurs nowhere" + (". Similar: " if places else ""), places)


def _no_match(replacement: Replacement, problem: str, places: Sequence[_Place]) -> EditError:
    shown = "; ".join(f"{place.element_id}: {place.snippet!r}" for place in places[:_MOST_PLACES])
    pointer = join_pointer(replacement.pointer, "old")
    return EditError(EditErrorCode.NO_MATCH, pointer, problem + shown)


def _similar(text: str, edited: _SearchedBlocks) -> list[_Place]:
    """Return places with the text in other letters, spaces or marks, or else with a word of it.

    The word is the longest one, or one that is almost written like it.
    """
    words = text.casefold().split()
    unmarked = text.casefold().translate(_WITHOUT_DELIMITERS).split()
    if not unmarked:
        return []
    longest = max(unmarked, key=len)
    for similar in (" ".join(words), " ".join(unmarked), longest, edited.word_like(longest)):
        if similar and (places := list(_folded_places(similar, edited))):
            return places
    return []


def _folded_places(text: str, edited: _SearchedBlocks) -> Iterator[_Place]:
    for position in edited.positions(text, folded=True)[:_MOST_PLACES]:
        for element_id, content in texts(edited.blocks[position]):
            if (at := content.casefold().find(text)) >= 0:
                yield _Place(element_id, snippet(content, at, len(text)))


def _texts_of(element: Element) -> Iterator[tuple[Leaf, ...]]:
    """Yield the leaves of each text of an element: its own, its caption, and notes in them."""
    for leaves in (element.leaves, element.caption):
        if leaves:
            yield leaves
            yield from [leaf.note for leaf in leaves if leaf.note]


class _Search:
    """Finds a text in elements, and replaces it."""

    def __init__(self, splice: Splice, replacement: Replacement) -> None:
        self._splice = splice
        self._old = replacement.old
        self._new = replacement.new
        self._pointer = join_pointer(replacement.pointer, "new")

    def count(self, element: Element) -> int:
        """Return the number of occurrences below an element."""
        count = sum(text.count(self._old) for text in content_texts(element.content))
        count += sum(self._splice.count(leaves) for leaves in _texts_of(element))
        return count + sum(self.count(child) for child in element.elements)

    def places(self, element: Element) -> Iterator[_Place]:
        """Yield places below an element, one for each of its texts."""
        for text in content_texts(element.content):
            if (at := text.find(self._old)) >= 0:
                yield _Place(element.id, snippet(text, at, len(self._old)))
        for leaves in _texts_of(element):
            text = "".join([leaf.text for leaf in leaves])
            if (at := text.find(self._splice.text)) >= 0:
                yield _Place(element.id, snippet(text, at, len(self._splice.text)))
        for child in element.elements:
            yield from self.places(child)

    def replaced_in(self, element: Element) -> Element:
        """Return an element with every occurrence replaced; the same object without any."""
        content = self._content(element.content)
        leaves = element.leaves
        new_leaves = self._replaced(leaves)
        caption = self._replaced(element.caption)
        elements = element.elements
        new_elements = tuple([self.replaced_in(child) for child in elements])
        is_same = all(new is old for new, old in zip(new_elements, elements, strict=True))
        is_same = is_same and caption is element.caption
        if content is element.content and new_leaves is leaves and is_same:
            return element
        children = normal_children(element.type, (*new_leaves, *new_elements))
        if caption is not element.caption:
            caption = normal_leaves(caption)
        return replace(element, content=content, children=children, caption=caption)

    def _replaced(self, leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
        if any(leaf.note for leaf in leaves):
            inside = [self._splice.apply(leaf.note) for leaf in leaves]
            leaves = tuple(
                [
                    leaf if note is leaf.note else replace(leaf, note=self._checked(note))
                    for leaf, note in zip(leaves, inside, strict=True)
                ]
            )
        return self._splice.apply(leaves)

    def _checked(self, note: Sequence[Leaf]) -> tuple[Leaf, ...]:
        if any(leaf.type == "note" for leaf in note):
            raise schema_error(self._pointer, "a note cannot contain a note")
        return normal_leaves(note)

    def _content(self, content: Mapping[str, Json]) -> Mapping[str, Json]:
        if not any(self._old in text for text in content_texts(content)):
            return content
        changed = dict(content)
        for key in CONTENT_TEXTS:
            if key in changed:
                changed[key] = self._text(key, str(changed[key]))
        if "image" in changed:
            pictures: Any = changed["image"]
            changed["image"] = [
                {
                    key: self._text(key, value) if key in PICTURE_TEXTS else value
                    for key, value in picture.items()
                }
                for picture in pictures
            ]
        return changed

    def _text(self, key: str, text: str) -> str:
        text = text.replace(self._old, self._new)
        most = _CONTENT_LIMITS.get(key, limits.LEAF_TEXT)
        if len(text) > most:
            problem = f"the {key} would have more than {most} characters"
            raise schema_error(self._pointer, problem)
        return text

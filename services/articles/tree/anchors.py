"""Anchors of comments: a passage of a text, found again after edits around it.

An anchor stores the passage with some text around it, and no position that edits would have to keep
up to date: it is found when it is read, and found again once an edit that removed it is undone. If
the same words occur more than once, those with most of the same text around them are the passage,
and among equals those nearest to where it was, from the beginning or the end.
"""

from collections.abc import Iterator
from typing import Any, Self

from msgspec import Struct

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.inline_markdown import parse_inline
from services.articles.tree.nodes import Element, walk
from services.articles.tree.operations.base import find_element
from services.articles.tree.texts import own_text, snippet

# Characters around a passage that are compared.
_CONTEXT = 64
# Occurrences of a passage that are compared, on each side of the place where it was.
_NEAREST = 32
# Places that an error names.
_MOST_PLACES = 10


class Anchor(Struct, frozen=True):
    """A passage in the text of an element.

    Attributes:
        element_id: the element.
        quote: the passage.
        before: text before it.
        after: text after it.
        start: where it began.
        end: number of characters from there to the end of the text.
    """

    element_id: str
    quote: str
    before: str
    after: str
    start: int
    end: int

    @classmethod
    def at(cls, element: Element, quote: str, start: int) -> Self:
        """Return the anchor of a passage at a position in the text of an element."""
        text = own_text(element)
        stop = start + len(quote)
        before = text[max(0, start - _CONTEXT) : start]
        after = text[stop : stop + _CONTEXT]
        return cls(element.id, quote, before, after, start, len(text) - start)

    def place(self, document: Document) -> int | None:
        """Return where the passage is in the text of its element, or None if it is gone."""
        element = document.element(self.element_id)
        if element is None:
            return None
        text = own_text(element)
        hints = (self.start, len(text) - self.end)
        places = {place for hint in hints for place in _nearest(text, self.quote, hint)}
        return max(places, key=lambda place: self._likeness(text, place, hints), default=None)

    def _likeness(self, text: str, place: int, hints: tuple[int, ...]) -> tuple[int, int, int]:
        stop = place + len(self.quote)
        before = text[max(0, place - _CONTEXT) : place]
        after = text[stop : stop + _CONTEXT]
        same = _common(before[::-1], self.before[::-1]) + _common(after, self.after)
        return same, -min(abs(place - hint) for hint in hints), -place

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return {
            "element_id": self.element_id,
            "quote": self.quote,
            "before": self.before,
            "after": self.after,
            "start": self.start,
            "end": self.end,
        }


def find_passage(
    document: Document, block_id: str, quote: str, offset: int | None = None
) -> Anchor:
    """Return the anchor of a passage in an element, or in one below it.

    Args:
        document: the document.
        block_id: the element.
        quote: the passage, as plain text or as inline Markdown.
        offset: where it is in its text; needed if it occurs more than once.

    Raises:
        EditError: 40403; 40005, it occurs nowhere, or several times.
    """
    _, block = find_element(document, block_id)
    plain = parse_inline(quote).text
    for words in dict.fromkeys((quote, plain) if plain else (quote,)):
        places = [
            (element, place)
            for element in walk(block)
            for place in _occurrences(own_text(element), words)
            if offset in (None, place)
        ]
        if len(places) == 1:
            [(element, place)] = places
            return Anchor.at(element, words, place)
        if places:
            shown = "; ".join(
                f"{element.id} at {place}: {snippet(own_text(element), place, len(words))!r}"
                for element, place in places[:_MOST_PLACES]
            )
            problem = "occurs several times; send its offset, and the id of its element"
            raise EditError(EditErrorCode.NO_MATCH, "/quote", f"{problem}. Places: {shown}")
    where = "in this block" if offset is None else f"at offset {offset} in this block"
    raise EditError(EditErrorCode.NO_MATCH, "/quote", f"does not occur {where}")


def _occurrences(text: str, words: str) -> Iterator[int]:
    at = text.find(words)
    while at >= 0:
        yield at
        at = text.find(words, at + 1)


def _nearest(text: str, words: str, around: int) -> Iterator[int]:
    """Yield some occurrences of words on each side of a position."""
    start = max(0, min(around, len(text)))
    at = start - 1
    for _ in range(_NEAREST):
        at = text.find(words, at + 1)
        if at < 0:
            break
        yield at
    stop = start + len(words) - 1
    for _ in range(_NEAREST):
        at = text.rfind(words, 0, stop)
        if at < 0:
            break
        yield at
        stop = at + len(words) - 1


def _common(one: str, other: str) -> int:
    """Return the number of equal characters at the beginning of two texts."""
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count

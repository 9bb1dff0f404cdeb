"""The texts in elements: of leaves, notes, captions, formulas, listings, names, and pictures."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services.articles.tree.nodes import LEAVES_ONLY_TYPES, OBJECT, Element, Json, Leaf

# Fields of the content of elements that are texts.
CONTENT_TEXTS = ("equation", "code", "name")
PICTURE_TEXTS = ("alt", "title")
# Characters of a snippet before and after a place.
_AROUND = 30


def texts(element: Element) -> Iterator[tuple[str, str]]:
    """Yield the texts in and below an element, each with the id of its element."""
    for text in content_texts(element.content):
        yield element.id, text
    for leaves in (element.leaves, element.caption):
        if leaves:
            yield element.id, "".join([leaf.text for leaf in leaves])
            yield from [
                (element.id, "".join([each.text for each in leaf.note]))
                for leaf in leaves
                if leaf.note
            ]
    for child in element.elements:
        yield from texts(child)


def own_text(element: Element) -> str:
    """Return the texts in an element, without those of elements in it, as one.

    Between two texts is a NUL, which no text has.
    """
    own = [*content_texts(element.content), "".join([leaf.text for leaf in element.leaves])]
    return "\0".join(own) if len(own) > 1 else own[0]


def count_characters(elements: Iterable[Element]) -> int:
    """Return the number of characters of all texts in and below elements."""
    return sum(len(text) for element in elements for _, text in texts(element))


def joined_texts(element: Element, separator: str) -> str:
    """Return the texts in and below an element as one."""
    if element.type in LEAVES_ONLY_TYPES and not element.content:
        # Nine of ten blocks.
        text = "".join([child.text for child in element.children if isinstance(child, Leaf)])
        if OBJECT not in text:
            return text
    return separator.join([text for _, text in texts(element)])


def content_texts(content: Mapping[str, Json]) -> Iterator[str]:
    """Yield the texts in the content of an element, which are not leaves."""
    for key in CONTENT_TEXTS:
        if key in content:
            yield str(content[key])
    pictures: Any = content.get("image") or ()
    for picture in pictures:
        for key in PICTURE_TEXTS:
            if key in picture:
                yield picture[key]


def snippet(text: str, at: int, length: int) -> str:
    """Return a part of a text with some characters around it."""
    start, end = max(0, at - _AROUND), at + length + _AROUND
    around = text[start:end].replace(OBJECT, "")
    return f"{'…' if start else ''}{around}{'…' if end < len(text) else ''}"

"""The headings of a document, and the places of a text in it."""

import re
from collections.abc import Iterator

from gateway.articles.v1.articles_pb2 import OutlineEntry, TextPlace
from services.articles.tree.document import Document
from services.articles.tree.nodes import OBJECT
from services.articles.tree.sections import is_heading
from services.articles.tree.texts import joined_texts, snippet, texts

# Characters of a heading, and of a text around a place.
_MAX_TEXT = 200


def outline(document: Document) -> list[OutlineEntry]:
    """Return the headings of a document in order.

    `words` counts those of the blocks up to the next heading, separated by white space.
    """
    entries: list[OutlineEntry] = []
    for position, block in enumerate(document.blocks):
        if is_heading(block.type):
            _, text = next(texts(block))
            text = " ".join(text.replace(OBJECT, "").split())[:_MAX_TEXT]
            entry = OutlineEntry(block_id=block.id, path=[position], type=block.type, text=text)
            entries.append(entry)
        elif entries:
            entries[-1].words += len(joined_texts(block, " ").split())
    return entries


def find(document: Document, query: str, limit: int) -> tuple[list[TextPlace], bool]:
    """Return the first places of a text, whatever its case, and whether there are more."""
    places: list[TextPlace] = []
    for place in _places(document, query):
        if len(places) == limit:
            return places, True
        places.append(place)
    return places, False


def _places(document: Document, query: str) -> Iterator[TextPlace]:
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    for block in document.blocks:
        for element_id, text in texts(block):
            for match in pattern.finditer(text):
                length = min(len(match[0]), _MAX_TEXT)
                yield TextPlace(
                    block_id=element_id,
                    offset=match.start(),
                    snippet=snippet(text, match.start(), length),
                )

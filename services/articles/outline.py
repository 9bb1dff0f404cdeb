"""The headings of a document, and the places of a text in it."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gateway.articles.v1.articles_pb2 import OutlineEntry, TextPlace
from services.articles.errors import SCHEMA, failure
from services.articles.tree.document import Document
from services.articles.tree.nodes import OBJECT
from services.articles.tree.sections import is_heading
from services.articles.tree.texts import joined_texts, snippet, texts

# Characters of a heading, and of a text around a place.
_MAX_TEXT = 200
# Bytes that the program of a regular expression and its states may have.
_REGEX_MEMORY = 8 << 20

# Yields the matches in a text.
_Matcher = Callable[[str], Iterable[Any]]


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


def find(
    document: Document, query: str, limit: int, *, is_regex: bool = False
) -> tuple[list[TextPlace], bool]:
    """Return the first places of a text, whatever its case, and whether there are more.

    Raises:
        GatewayError: 40003, the query is no regular expression, or too large a one.
    """
    places: list[TextPlace] = []
    for place in _places(document, _matcher(query, is_regex=is_regex)):
        if len(places) == limit:
            return places, True
        places.append(place)
    return places, False


def _matcher(query: str, *, is_regex: bool) -> _Matcher:
    """Return the function that finds a query in texts."""
    if not is_regex:
        return re.compile(re.escape(query), re.IGNORECASE).finditer
    # Loaded when first used. Its time is linear in the text, whatever the expression.
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = _REGEX_MEMORY
    try:
        matcher: _Matcher = re2.compile(query, options=options).finditer
    except re2.error as error:
        problem = f"is no regular expression of RE2: {str(error)[:_MAX_TEXT]}"
        raise failure(SCHEMA, "/query", problem) from None
    return matcher


def _places(document: Document, matches: _Matcher) -> Iterator[TextPlace]:
    for block in document.blocks:
        for element_id, text in texts(block):
            for match in matches(text):
                if not match[0]:
                    continue
                length = min(len(match[0]), _MAX_TEXT)
                yield TextPlace(
                    block_id=element_id,
                    offset=match.start(),
                    snippet=snippet(text, match.start(), length),
                )

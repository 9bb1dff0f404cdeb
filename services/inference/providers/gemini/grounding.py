"""Pages that Gemini's answers cite, as citations. Pure.

Google names them in a candidate's `groundingMetadata` (after a search) and `citationMetadata` (text
that repeats a source). Offsets are bytes of the text in UTF-8. Source: ai.google.dev,
"Grounding with Google Search" and `CitationMetadata`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from gateway.conversation.v1.conversation_pb2 import Citation

Json = dict[str, Any]

_GROUNDING, _CITATIONS = "groundingMetadata", "citationMetadata"
_CHUNKS, _SUPPORTS = "groundingChunks", "groundingSupports"
# Where a chunk has its page, and `citationMetadata` its sources: in Google's two APIs.
_HOLDERS = ("web", "retrievedContext", "maps")
_LISTS = ("citationSources", "citations")
_HTTP = ("http://", "https://")
_MAX_CITED = 1 << 20  # characters of a text that is cited


class _Page(NamedTuple):
    """A page that a passage cites; `end` is 0 for all of the text."""

    url: str
    title: str
    start: int = 0
    end: int = 0


class CitedText:
    """The text of an answer, kept for its citations, whose ranges are known at its end."""

    __slots__ = ("_deltas", "_length", "_number")

    def __init__(self) -> None:
        self._number = 0  # of texts in the answer
        self._length = 0  # characters
        self._deltas: list[str] = []

    def begin(self) -> None:
        """Begin a text."""
        self._number += 1

    def add(self, delta: str) -> None:
        """Add more of the text."""
        self._length += len(delta)
        if self._length <= _MAX_CITED:
            self._deltas.append(delta)

    def take_citations(self, fields: Json) -> list[Citation]:
        """Return the citations, and remove what they say from the fields.

        An answer of several texts has none, as the offsets do not say in which one they are.

        Args:
            fields: the unknown fields of the candidate; modified.
        """
        is_whole = self._number == 1 and self._length <= _MAX_CITED
        return _take_citations(fields, "".join(self._deltas)) if fields and is_whole else []


def _take_citations(fields: Json, text: str) -> list[Citation]:
    """Return the citations of a text, in text order."""
    pages = [*_take_grounding(fields), *_take_sources(fields)]
    length = len(text.encode())
    spans = [_within(page, length) for page in pages]
    characters = _characters(text, {offset for span in spans for offset in span})
    citations = [
        Citation(
            url=page.url,
            title=page.title,
            start_index=characters[start],
            end_index=characters[end],
        )
        for page, (start, end) in zip(pages, spans, strict=True)
    ]
    return sorted(citations, key=lambda one: (one.start_index, one.end_index))


def _take_grounding(fields: Json) -> Iterator[_Page]:
    grounding = fields.get(_GROUNDING)
    if not isinstance(grounding, dict):
        return
    chunks, supports = grounding.get(_CHUNKS), grounding.get(_SUPPORTS)
    if not isinstance(chunks, list) or not isinstance(supports, list | None):
        return
    pages = [_page_of(chunk) for chunk in chunks]
    if not all(pages):
        return
    # Pages that no passage cites are cited by all of the text.
    yield from [*_cited(pages, supports or ())] or filter(None, pages)
    read = (_CHUNKS, _SUPPORTS)
    _keep(fields, _GROUNDING, {name: one for name, one in grounding.items() if name not in read})


def _page_of(chunk: object) -> _Page | None:
    if not isinstance(chunk, dict):
        return None
    return next(filter(None, (_page(chunk.get(holder)) for holder in _HOLDERS)), None)


def _page(source: object) -> _Page | None:
    match source:
        case {"uri": str(url), **others} if url.startswith(_HTTP):
            title = others.get("title")
            return _Page(url, title if isinstance(title, str) else "")
    return None


def _cited(pages: Sequence[_Page | None], supports: Iterable[object]) -> Iterator[_Page]:
    for support in supports:
        match support:
            case {"groundingChunkIndices": list(indices), "segment": dict(segment)}:
                start, end = _span(segment)
                for index in indices:
                    page = pages[index] if type(index) is int and 0 <= index < len(pages) else None
                    if page is not None:
                        yield page._replace(start=start, end=end)


def _take_sources(fields: Json) -> Iterator[_Page]:
    metadata = fields.get(_CITATIONS)
    if not isinstance(metadata, dict):
        return
    left: Json = {**metadata}
    for name in _LISTS:
        sources = metadata.get(name)
        others = []
        for source in sources if isinstance(sources, list) else ():
            if page := _page(source):
                start, end = _span(source)
                yield page._replace(start=start, end=end)
            if not page or source.get("license"):
                others.append(source)
        _keep(left, name, others)
    _keep(fields, _CITATIONS, left)


def _span(holder: Json) -> tuple[int, int]:
    """Return the range of a passage; without an end it is all of the text."""
    start, end = (holder.get(name) for name in ("startIndex", "endIndex"))
    if type(end) is not int or end <= 0:
        return 0, 0
    return start if type(start) is int and start >= 0 else 0, end


def _within(page: _Page, length: int) -> tuple[int, int]:
    """Return the range of a passage in a text; all of the text if the passage is not in it."""
    start, end = page.start, min(page.end or length, length)
    return (start, end) if start < end else (0, length)


def _keep(fields: Json, name: str, value: Json | list[Any]) -> None:
    if value:
        fields[name] = value
    else:
        fields.pop(name, None)


def _characters(text: str, offsets: Iterable[int]) -> dict[int, int]:
    """Return the number of characters before each offset in bytes, in linear time."""
    data, count = text.encode(), 0
    characters = {0: 0}
    for before, offset in pairwise(sorted({0, *offsets})):
        # Continuation bytes begin no character.
        count += sum(byte & 0xC0 != 0x80 for byte in data[before:offset])
        characters[offset] = count
    return characters

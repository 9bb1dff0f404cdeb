"""Citations of the pages and files that the gateway found for an answer. Pure.

Each occurrence of the URL of a search result or a fetched page in a text gets a citation, and so
does each occurrence of the name of a file that a search found. Other sources are not cited, as only
the model knows them.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from gateway.conversation.v1.conversation_pb2 import Citation, FileResult, ServerToolResult
from gateway.inference.v1.inference_pb2 import Event

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\]|\\^{}]+", re.IGNORECASE)
# Punctuation after a URL that is not part of it.
_TRAILING = ".,;:!?*_)"
_MOST_TRAILING = 8
# A Markdown link up to its URL, with its maximum length.
_LINK = re.compile(r"\[[^\[\]]*\]\(\Z")
_MOST_LINK = 300
_MAX_QUOTE = 150  # characters
# Files that are looked for in a text, and citations of each.
_MOST_FILES = 100
_MOST_CITATIONS = 20
# Characters before a name that belong to a longer one.
_WITHIN = ("_", "-", "/", "\\")
_BLANK_LINE = "\n\n"


class _Page(NamedTuple):
    """A page that was found."""

    title: str
    text: str


class CitationWriter:
    """Adds citations to the events of an answer, each at the end of its text.

    Args:
        joins_texts: whether a blank line separates the texts before and after a search.
    """

    def __init__(self, *, joins_texts: bool) -> None:
        self._joins_texts = joins_texts
        self._pages: dict[str, _Page] = {}
        self._files: dict[str, FileResult] = {}  # by their names
        self._text: list[str] = []  # of the open block
        self._has_text = False
        self._is_apart = False  # whether the next text follows a search

    def add_result(self, result: ServerToolResult) -> None:
        """Record a tool result."""
        self._is_apart = self._joins_texts and self._has_text
        for search_result in result.search.results:
            self._pages.setdefault(
                _plain(search_result.url), _Page(search_result.title, search_result.text)
            )
        for passage in result.files.results:
            if len(self._files) < _MOST_FILES:
                self._files.setdefault(passage.filename, passage)
        if result.HasField("page"):
            page = result.page
            self._pages.setdefault(_plain(page.url), _Page(page.title, page.text))

    def follow(self, events: Sequence[Event]) -> list[Event]:
        """Return the events, with the citations of each text before its end."""
        followed: list[Event] = []
        for event in events:
            if text := event.text or event.block_start.text:
                if self._is_apart:
                    self._is_apart = False
                    text = _BLANK_LINE + text
                    event = _with_text(event, text)
                self._has_text = True
                self._text.append(text)
            elif event.HasField("block_stop") and self._text:
                text = "".join(self._text)
                cited = [*self._citations(text), *self._file_citations(text)]
                cited.sort(key=lambda citation: citation.start_index)
                followed += (Event(block=event.block, citation=citation) for citation in cited)
                self._text.clear()
            followed.append(event)
        return followed

    def _file_citations(self, text: str) -> Iterator[Citation]:
        places = set[tuple[int, int]]()
        # A name may be the end of a longer one, which is the one that is cited.
        for name in sorted(self._files, key=len, reverse=True):
            for start in islice(_occurrences(text, name), _MOST_CITATIONS):
                end = start + len(name)
                if any(begin <= start < stop for begin, stop in places):
                    continue
                places.add((start, end))
                passage = self._files[name]
                yield Citation(
                    file_id=passage.file_id,
                    title=name,
                    start_index=start,
                    end_index=end,
                    quote=passage.text[:_MAX_QUOTE],
                )

    def _citations(self, text: str) -> Iterator[Citation]:
        if not self._pages:
            return
        for match in _ADDRESS.finditer(text):
            start, end = match.span()
            url = match[0]
            for _ in range(_MOST_TRAILING):
                if _plain(url) in self._pages or url[-1] not in _TRAILING:
                    break
                url, end = url[:-1], end - 1
            url = _plain(url)
            if url not in self._pages:
                continue
            if link := _LINK.search(text, max(0, start - _MOST_LINK), start):
                start = link.start()
                end += text.startswith(")", end)
            page = self._pages[url]
            yield Citation(
                url=url,
                title=page.title,
                start_index=start,
                end_index=end,
                quote=page.text[:_MAX_QUOTE],
            )


def _occurrences(text: str, name: str) -> Iterator[int]:
    """Yield the positions of a name in a text, where it is no part of a longer word."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (before.isalnum() or before in _WITHIN or after.isalnum()):
            yield start
        start = text.find(name, end)


def _with_text(event: Event, text: str) -> Event:
    """Return a copy of an event with another text."""
    changed = Event()
    changed.CopyFrom(event)
    if event.text:
        changed.text = text
        changed.ClearField("pieces")
    else:
        changed.block_start.text = text
    return changed


def _plain(url: str) -> str:
    return url.partition("#")[0].rstrip("/")

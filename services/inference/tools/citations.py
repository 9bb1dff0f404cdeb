"""Citations of the pages that the gateway found for an answer. Pure.

Each occurrence of the URL of a search result or a fetched page in a text gets a citation. Other
sources are not cited, as only the model knows them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gateway.conversation.v1.conversation_pb2 import Citation, ServerToolResult
from gateway.inference.v1.inference_pb2 import Event

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\]|\\^{}]+", re.IGNORECASE)
# Punctuation after a URL that is not part of it.
_TRAILING = ".,;:!?*_)"
_MOST_TRAILING = 8
# A Markdown link up to its URL, with its maximum length.
_LINK = re.compile(r"\[[^\[\]]*\]\(\Z")
_MOST_LINK = 300
_MAX_QUOTE = 150  # characters
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
                cited = self._citations("".join(self._text))
                followed += (Event(block=event.block, citation=citation) for citation in cited)
                self._text.clear()
            followed.append(event)
        return followed

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

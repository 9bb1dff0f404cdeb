"""Citations of web searches for callers of OpenAI's dialect. Pure.

The text of all rounds is one message, and sources become annotations: a `url_citation` for each
place where the text contains the URL of a search result. Other sources are not cited, as only the
model knows them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Opaque, ServerToolResult
from gateway.inference.v1.inference_pb2 import Event, Further

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\]|\\^{}]+", re.IGNORECASE)
# Punctuation after a URL that is not part of it.
_TRAILING = ".,;:!?*_)"
_MOST_TRAILING = 8
# A Markdown link up to its URL, with its maximum length.
_LINK = re.compile(r"\[[^\[\]]*\]\(\Z")
_MOST_LINK = 300
_APART = "\n\n"


class ChatAnswer:
    """Adds separators and citations to the events of an answer."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._text: list[str] = []
        self._is_apart = False  # whether the next text follows a search

    def add_result(self, result: ServerToolResult) -> None:
        """Record a tool result."""
        self._is_apart = bool(self._text)
        for one in result.search.results:
            self._titles.setdefault(_plain(one.url), one.title)
        if result.HasField("page"):
            self._titles.setdefault(_plain(result.page.url), result.page.title)

    def follow(self, events: Sequence[Event]) -> list[Event]:
        """Return the events, with a blank line between texts before and after a search."""
        return [self._translated(event) for event in events]

    def annotations(self) -> list[Event]:
        """Return the event with the annotations, or none if there are no citations."""
        text = "".join(self._text)
        found = [
            _citation(start, end, url, self._titles[url]) for start, end, url in self._places(text)
        ]
        if not found:
            return []
        message = Opaque(
            dialect=conversation_pb2.DIALECT_OPENAI, json=orjson.dumps({"annotations": found})
        )
        return [Event(further=Further(message=message))]

    def _translated(self, event: Event) -> Event:
        text = event.text or event.block_start.text
        if not text:
            return event
        if self._is_apart:
            self._is_apart = False
            text = _APART + text
            changed = Event()
            changed.CopyFrom(event)
            if event.text:
                changed.text = text
                changed.ClearField("pieces")
            else:
                changed.block_start.text = text
            event = changed
        self._text.append(text)
        return event

    def _places(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield the citations in a text: start, end (in characters) and URL."""
        if not self._titles:
            return
        for match in _ADDRESS.finditer(text):
            start, end = match.span()
            url = match[0]
            for _ in range(_MOST_TRAILING):
                if _plain(url) in self._titles or url[-1] not in _TRAILING:
                    break
                url, end = url[:-1], end - 1
            url = _plain(url)
            if url not in self._titles:
                continue
            if link := _LINK.search(text, max(0, start - _MOST_LINK), start):
                start = link.start()
                end += text.startswith(")", end)
            yield start, end, url


def _plain(url: str) -> str:
    return url.partition("#")[0].rstrip("/")


def _citation(start: int, end: int, url: str, title: str) -> Mapping[str, Any]:
    cited = {"start_index": start, "end_index": end, "url": url, "title": title}
    return {"type": "url_citation", "url_citation": cited}

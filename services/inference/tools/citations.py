"""Citations of web searches for callers of chat completions and responses. Pure.

Sources become annotations: a `url_citation` for each place where a text contains the URL of a
search result. Other sources are not cited, as only the model knows them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect, Opaque, ServerToolResult
from gateway.inference.v1.inference_pb2 import Event, Further

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\]|\\^{}]+", re.IGNORECASE)
# Punctuation after a URL that is not part of it.
_TRAILING = ".,;:!?*_)"
_MOST_TRAILING = 8
# A Markdown link up to its URL, with its maximum length.
_LINK = re.compile(r"\[[^\[\]]*\]\(\Z")
_MOST_LINK = 300
_APART = "\n\n"


class Citations(Protocol):
    """Adds citations to the events of an answer."""

    def add_result(self, result: ServerToolResult) -> None:
        """Record a tool result."""

    def follow(self, events: Sequence[Event]) -> list[Event]:
        """Return the events, with what is added to them."""

    def annotations(self) -> list[Event]:
        """Return the events that come before the end of the answer."""


def citations_of(dialect: Dialect.ValueType) -> Citations | None:
    """Return what adds citations to answers in a dialect, None for one without."""
    if dialect == conversation_pb2.DIALECT_OPENAI:
        return ChatAnswer()
    return ResponseAnswer() if dialect == conversation_pb2.DIALECT_RESPONSES else None


class _Sources:
    """The pages that were found, and the places in a text where they are named."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}

    def add(self, result: ServerToolResult) -> None:
        """Record a tool result."""
        for one in result.search.results:
            self._titles.setdefault(_plain(one.url), one.title)
        if result.HasField("page"):
            self._titles.setdefault(_plain(result.page.url), result.page.title)

    def cited(self, text: str) -> list[Mapping[str, Any]]:
        """Return the citations in a text: start, end (in characters), URL and title."""
        return [
            {"start_index": start, "end_index": end, "url": url, "title": self._titles[url]}
            for start, end, url in self._places(text)
        ]

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


class ChatAnswer:
    """Adds separators and citations to the events of a chat completion.

    The text of all rounds is one message, whose annotations come at its end.
    """

    def __init__(self) -> None:
        self._sources = _Sources()
        self._text: list[str] = []
        self._is_apart = False  # whether the next text follows a search

    def add_result(self, result: ServerToolResult) -> None:
        """Record a tool result."""
        self._is_apart = bool(self._text)
        self._sources.add(result)

    def follow(self, events: Sequence[Event]) -> list[Event]:
        """Return the events, with a blank line between texts before and after a search."""
        return [self._translated(event) for event in events]

    def annotations(self) -> list[Event]:
        """Return the event with the annotations, or none if there are no citations."""
        found = [
            {"type": "url_citation", "url_citation": cited}
            for cited in self._sources.cited("".join(self._text))
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


class ResponseAnswer:
    """Adds citations to the events of a response, each at the end of its text."""

    def __init__(self) -> None:
        self._sources = _Sources()
        self._text: list[str] = []  # of the open block

    def add_result(self, result: ServerToolResult) -> None:
        """Record a tool result."""
        self._sources.add(result)

    def follow(self, events: Sequence[Event]) -> list[Event]:
        """Return the events, with the annotations of each text before its end."""
        followed: list[Event] = []
        for event in events:
            if event.HasField("block_stop") and self._text:
                followed += self._annotations(event.block)
                self._text.clear()
            elif text := event.text or event.block_start.text:
                self._text.append(text)
            followed.append(event)
        return followed

    def annotations(self) -> list[Event]:
        """Return nothing: all annotations have come with their texts."""
        return []

    def _annotations(self, block: int) -> list[Event]:
        found = [
            {"type": "url_citation", **cited} for cited in self._sources.cited("".join(self._text))
        ]
        if not found:
            return []
        told = Opaque(
            dialect=conversation_pb2.DIALECT_RESPONSES, json=orjson.dumps({"annotations": found})
        )
        return [Event(block=block, opaque=told)]


def _plain(url: str) -> str:
    return url.partition("#")[0].rstrip("/")

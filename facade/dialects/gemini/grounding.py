"""Cited pages and searches of an answer as Google's `groundingMetadata`. Pure.

Source: ai.google.dev/gemini-api/docs/google-search.
"""

from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import Citation, ToolUse

Json = dict[str, Any]

_QUERY = "query"


class Grounding:
    """Collects the citations of an answer's texts, whose offsets Google counts in bytes."""

    __slots__ = ("_before", "_chunks", "_queries", "_supports", "_text")

    def __init__(self) -> None:
        self._before = 0  # bytes of the texts before the current one
        self._text: list[str] = []  # of the current block
        self._chunks: dict[str, str] = {}  # titles by URL
        self._supports: list[Json] = []
        self._queries: list[str] = []

    def begin_text(self) -> None:
        """Begin the next text."""
        self._before += len("".join(self._text).encode())
        self._text = []

    def add_text(self, text: str) -> None:
        """Add more of the current text."""
        self._text.append(text)

    def cite(self, citation: Citation) -> None:
        """Add a citation of the current text."""
        text = "".join(self._text)
        passage = text[citation.start_index : citation.end_index]
        start = self._before + len(text[: citation.start_index].encode())
        self._chunks.setdefault(citation.url, citation.title)
        index = list(self._chunks).index(citation.url)
        segment = {
            "startIndex": start,
            "endIndex": start + len(passage.encode()),
            "text": passage,
        }
        self._supports.append({"segment": segment, "groundingChunkIndices": [index]})

    def add_call(self, call: ToolUse) -> None:
        """Add a call of one of the gateway's tools: a search has a query."""
        try:
            arguments = orjson.loads(call.input or b"{}")
        except orjson.JSONDecodeError:
            return
        query = arguments.get(_QUERY) if isinstance(arguments, dict) else None
        if isinstance(query, str):
            self._queries.append(query)

    def metadata(self) -> Json:
        """Return the fields of a candidate; none without searches and citations."""
        fields: Json = {}
        if self._queries:
            fields["webSearchQueries"] = self._queries
        if self._chunks:
            fields["groundingChunks"] = [
                {"web": {"uri": url, "title": title}} for url, title in self._chunks.items()
            ]
            fields["groundingSupports"] = self._supports
        return {"groundingMetadata": fields} if fields else {}

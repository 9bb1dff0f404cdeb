"""Streamed answers: chunks in the form of whole answers, as server-sent events or as an array."""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from facade.dialects.foreign_parts import foreign_parts_of_events
from facade.dialects.gemini.errors import error_body
from facade.dialects.gemini.grounding import Grounding
from facade.dialects.gemini.parts import (
    SIGNATURE,
    finish_fields,
    is_own,
    logprobs_json,
    native_fields,
    part_of,
    usage_json,
)
from facade.dialects.gemini.signatures import packed
from facade.dialects.stream_formats import ARRAY, DATA_ALONE, StreamFormat
from gateway.conversation.v1.conversation_pb2 import DIALECT_GEMINI, Block, Usage
from gateway.inference.v1.inference_pb2 import Event, Finish, RouteInfo
from services.common.errors import GatewayError, internal
from services.common.text.texts import MAX_NAME

Json = dict[str, Any]

_EMPTY: Final = {"text": ""}
# Names of dropped parts in the last chunk.
_MOST_DROPPED: Final = 1_000


class _Candidate:
    """One candidate of a stream: its open block, and the parts of the next chunk.

    Attributes:
        parts: parts that have not been written.
        logprobs: log probabilities of these, in the canonical form.
        finish: the end, once it has arrived.
        grounding: the citations so far.
    """

    def __init__(self, includes_thoughts: bool) -> None:
        self.parts: list[Json] = []
        self.logprobs: list[bytes] = []
        self.finish: Finish | None = None
        self.grounding = Grounding()
        self._includes_thoughts = includes_thoughts
        self._block = Block()  # the open block, without its texts
        self._kind: str | None = None
        self._texts: list[str] = []  # of a thought, or of the arguments of a call
        self._waiting: list[Block] = []  # thoughts that no part carries yet
        self._is_first = False  # whether the open text has no part yet

    def add(self, kind: str | None, event: Event) -> None:
        """Add an event of the candidate."""
        if event.logprobs:
            self.logprobs.append(event.logprobs)
        match kind:
            case "text" | "refusal":
                self._add_text(event.text or event.refusal)
            case "thinking":
                self._add_thought(event.thinking)
            case "signature":
                self._block.thinking.signature += event.signature
            case "input":
                self._texts.append(event.input)
            case "citation":
                self.grounding.cite(event.citation)
            case "block_start":
                self._open(event.block_start)
            case "block_stop":
                self._close()
            case "finish":
                self.finish = event.finish

    def _open(self, block: Block) -> None:
        self._block = Block()
        self._block.CopyFrom(block)
        self._kind = block.WhichOneof("kind")
        self._texts = []
        self._is_first = True
        match self._kind:
            case "text" | "refusal":
                self.grounding.begin_text()
                if text := block.text or block.refusal:
                    self._add_text(text)
            case "thinking" if block.thinking.text:
                self._add_thought(block.thinking.text)
            case "tool_use":
                self._texts.append(block.tool_use.input)
            case "server_tool_use":
                self._texts.append(block.server_tool_use.input)

    def _close(self) -> None:
        block, text = self._block, "".join(self._texts)
        match self._kind:
            case "text" | "refusal":
                pass
            case "thinking" | "redacted_thinking":
                if not is_own(block):
                    if self._kind == "thinking":
                        block.thinking.text = text
                    self._waiting.append(block)
            case "server_tool_use":
                block.server_tool_use.input = text
                self.grounding.add_call(block.server_tool_use)
            case "tool_use":
                block.tool_use.input = text
                self._append(part_of(block))
            case _:
                self._append(part_of(block))
        self._kind = None

    def _add_text(self, text: str) -> None:
        if not text:
            return
        self.grounding.add_text(text)
        if self._is_first:
            self._is_first = False
            self._append({**native_fields(self._block.extra), "text": text})
        elif self.parts and self.parts[-1].keys() == _EMPTY.keys():
            self.parts[-1] = {"text": self.parts[-1]["text"] + text}
        else:
            self.parts.append({"text": text})

    def _add_thought(self, text: str) -> None:
        self._texts.append(text)
        own = is_own(self._block)
        if own or self._includes_thoughts:
            others = native_fields(self._block.extra) if own and self._is_first else {}
            self._is_first = False
            self.parts.append({**others, "text": text, "thought": True})

    def _append(self, part: Json | None) -> None:
        """Add a part of the answer itself, which carries the thoughts before it."""
        if part is None:
            return
        if self._waiting:
            if signature := packed(self._waiting):
                part.setdefault(SIGNATURE, signature)
            self._waiting.clear()
        self.parts.append(part)


def whole_stream(data: bytes, stream_format: StreamFormat) -> bytes:
    """Return a stream of a single chunk."""
    return b"[%b]\n" % data if stream_format is ARRAY else b"data: %b\r\n\r\n" % data


class ContentStream:
    """Encodes the events of one answer as chunks.

    `encode` returns the bytes of one batch, for a single write. The last chunk waits for the end of
    the stream, as usage may follow until then.

    Args:
        includes_thoughts: whether the answer has the model's thoughts.
        is_array: whether the stream is a JSON array, and not server-sent events.

    Attributes:
        route: the model that serves the answer, once known.
        usage: token usage so far.
        format: the format of the stream.
    """

    def __init__(self, *, includes_thoughts: bool, is_array: bool) -> None:
        self.route = RouteInfo()
        self.usage = Usage()
        self.format = ARRAY if is_array else DATA_ALONE
        self._includes_thoughts = includes_thoughts
        self._is_array = is_array
        self._has_begun = False
        self._candidates: dict[int, _Candidate] = {}
        self._about: Json = {}  # fields of every chunk
        self._own: Json = {}  # unknown fields of the answer, for the last chunk
        self._dropped: dict[str, None] = {}  # parts of the answer that the dialect lacks

    def encode(self, events: Sequence[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""
        for name in foreign_parts_of_events(events, DIALECT_GEMINI):
            if len(self._dropped) < _MOST_DROPPED:
                self._dropped[name[:MAX_NAME]] = None
        for event in events:
            kind = event.WhichOneof("kind")
            match kind:
                case "usage":
                    self.usage = event.usage
                case "start":
                    start = event.start
                    self.route = start.route
                    self._about = {"modelVersion": start.model, "responseId": start.id}
                    self._own |= native_fields(start.extra)
                case "continued":
                    self.route = event.continued
                case "extra_fields":
                    self._own |= native_fields(event.extra_fields.answer)
                case "unknown" | "whole":
                    pass
                case _:
                    self._candidate(event.choice).add(kind, event)
        candidates = [
            self._chunk_of(number, candidate, {})
            for number, candidate in self._candidates.items()
            if candidate.parts and candidate.finish is None
        ]
        return self._chunk({"candidates": candidates}) if candidates else b""

    def finish(self) -> bytes:
        """Return the end of a complete answer; an answer without a finish reason is broken."""
        candidates = []
        for number, candidate in sorted(self._candidates.items()):
            if candidate.finish is None:
                return self.error(internal())
            ending = {**candidate.grounding.metadata(), **finish_fields(candidate.finish)}
            candidates.append(self._chunk_of(number, candidate, ending))
        if not candidates:
            return self.error(internal())
        if self._dropped:
            self._own["gateway"] = {"dropped": list(self._dropped)}
        return self._chunk({**self._own, "candidates": candidates}) + self._end()

    def keepalive(self) -> bytes:
        """Return blank lines: Google's clients ignore them, and take comments for JSON."""
        return b"\n" if self._is_array else b"\r\n\r\n"

    def error(self, error: GatewayError) -> bytes:
        """Return an error, which ends an interrupted answer."""
        return self._written(orjson.dumps(error_body(error))) + self._end()

    def _candidate(self, number: int) -> _Candidate:
        candidate = self._candidates.get(number)
        if candidate is None:
            candidate = self._candidates[number] = _Candidate(self._includes_thoughts)
        return candidate

    def _chunk_of(self, number: int, candidate: _Candidate, ending: Json) -> Json:
        parts: Sequence[Json] = candidate.parts or [_EMPTY]
        candidate.parts = []
        logprobs = _joined(candidate.logprobs)
        candidate.logprobs = []
        return {
            "content": {"parts": parts, "role": "model"},
            **logprobs,
            **ending,
            "index": number,
        }

    def _chunk(self, fields: Json) -> bytes:
        usage = usage_json(self.usage)
        return self._written(orjson.dumps({**fields, "usageMetadata": usage, **self._about}))

    def _written(self, data: bytes) -> bytes:
        if not self._is_array:
            return b"data: %b\r\n\r\n" % data
        before = b",\r\n" if self._has_begun else b"["
        self._has_begun = True
        return before + data

    def _end(self) -> bytes:
        return b"]\n" if self._is_array else b""


def _joined(pieces: Sequence[bytes]) -> Json:
    """Return the log probabilities of several events."""
    if not pieces:
        return {}
    content: list[Any] = []
    for piece in pieces:
        content += orjson.loads(piece).get("content") or ()
    return logprobs_json(orjson.dumps({"content": content}))

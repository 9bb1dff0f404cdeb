"""Streamed answers in Anthropic's format: server-sent events."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from facade.dialects.anthropic.errors import error_body
from facade.dialects.anthropic.parts import (
    block_json,
    message_id,
    native_fields,
    raw_json,
    stop_fields,
    usage_json,
)
from facade.dialects.anthropic.web_results import citation_json
from facade.dialects.stream_formats import EVENTS
from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import Event, Finish, RouteInfo, Start
from services.common.errors import GatewayError, internal

Json = dict[str, Any]

_PING = b'event: ping\ndata: {"type": "ping"}\n\n'
# Fields in the `delta` of `message_delta`; other stop fields are outside of it.
_OF_DELTA = frozenset(("stop_reason", "stop_sequence", "stop_details", "container"))
# Events written here. Unknown fields of one of these events are added to it.
_NAMED = frozenset(
    {
        *("message_start", "message_delta", "message_stop"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
    }
)
# Parts of a delta event: the head with the block index, the text before the value, and the end.
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%s'
_TEXT = b'{"type":"text_delta","text":'
_THINKING = b'{"type":"thinking_delta","thinking":'
_SIGNATURE = b'{"type":"signature_delta","signature":'
_INPUT = b'{"type":"input_json_delta","partial_json":'
_END = b"}}\n\n"
# The start of an empty text block.
_EMPTY_TEXT = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,'
    b'"content_block":{"type":"text","text":""}}\n\n'
)
# An event: its name, and its data as JSON.
_EVENT = b"event: %s\ndata: %s\n\n"


def _deltas(head: bytes, value: str, pieces: Sequence[bytes], end: bytes = _END) -> bytes:
    """Return a value as one event, or as an event per piece if there are several."""
    if not pieces:
        return head + orjson.dumps(value) + end
    between = b'"' + _END + head + b'"'
    return head + b'"' + between.join(pieces) + b'"' + end


class MessageStream:
    """Encodes the events of one answer as a stream.

    `encode` returns the bytes of one batch, for a single write. The opening event waits for usage
    in the same batch, and the closing events for the end of the stream, as usage may follow until
    then.

    Attributes:
        format: the format of the stream.
        route: the model that serves the answer, once known.
        usage: token usage so far.
    """

    format = EVENTS

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id
        self._start: Start | None = None
        self.route = RouteInfo()
        self.usage = conversation_pb2.Usage()
        self._finish: Finish | None = None
        self._refused = False
        self._index = 0
        # The start event of a text block, held until there is text: empty blocks are not shown.
        self._unopened = b""
        # Whether the block is of another dialect and not shown.
        self._hidden = False
        # Signatures are buffered, as clients replace a signature by the next delta.
        self._signature = ""
        # Unknown fields, by the event that they are added to.
        self._beside: dict[str, Json] = {}
        self._text_delta = _DELTA % (self._index, _TEXT)

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""
        out: list[bytes] = []
        for event in events:
            kind = event.WhichOneof("kind")
            if kind == "usage":
                self.usage = event.usage
            elif kind == "text" or kind == "refusal":
                if self._start is not None:
                    out.append(self._opening(self._start))
                text = event.text if kind == "text" else event.refusal
                if self._hidden:
                    continue
                if self._beside:
                    out.append(self._delta(_TEXT, text, event.pieces))
                elif text:
                    if self._unopened:
                        out.append(self._open())
                    out.append(_deltas(self._text_delta, text, event.pieces))
            elif kind != "unknown" or not self._waits(event.unknown):
                if self._start is not None:
                    out.append(self._opening(self._start))
                out.append(self._other(kind, event))
        if self._start is not None:
            out.append(self._opening(self._start))
        return b"".join(out)

    def finish(self) -> bytes:
        """Return the end of a complete answer; an answer without a finish reason is broken."""
        if self._finish is None:
            return self.error(internal())
        ending_fields = stop_fields(self._finish, self._refused)
        delta = self._beside.get("message_delta", {}).pop("delta", {})
        in_delta = _OF_DELTA | delta.keys()
        ending: Json = {}
        for name, value in ending_fields.items():
            (delta if name in in_delta else ending)[name] = value
        ending |= {"delta": delta, "usage": usage_json(self.usage)}
        return self._named("message_delta", ending) + self._named("message_stop", {})

    def keepalive(self) -> bytes:
        """Return a ping event, which clients ignore."""
        return _PING

    def error(self, error: GatewayError) -> bytes:
        """Return an error event, which ends an interrupted answer."""
        return _EVENT % (b"error", orjson.dumps(error_body(error, self._request_id)))

    def _opening(self, start: Start) -> bytes:
        self._start = None
        message = {
            **(native_fields(start.extra) if start.HasField("extra") else {}),
            "id": message_id(start.id),
            "type": "message",
            "role": "assistant",
            "model": start.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_json(self.usage),
        }
        return self._named("message_start", {"message": message})

    def _other(self, kind: str | None, event: Event) -> bytes:
        """Return the bytes of an event that is neither text nor usage."""
        match kind:
            case "start":
                self._start = event.start
                self.route = event.start.route
            case "block_start":
                return self._block_start(event.block_start)
            case "block_stop":
                return self._block_stop()
            case "finish":
                self._finish = event.finish
            case "unknown" | "continued":
                return self._aside(event)
            case _ if self._hidden:
                pass
            case "signature":
                self._signature += event.signature
            case "thinking":
                return self._delta(_THINKING, event.thinking, event.pieces)
            case "input":
                return self._delta(_INPUT, event.input, event.pieces)
            case "opaque":
                return self._opaque_delta(event.opaque)
            case "citation" if not self._unopened:
                delta = {"type": "citations_delta", "citation": citation_json(event.citation)}
                return self._block_delta(delta)
        return b""

    def _aside(self, event: Event) -> bytes:
        """Return the bytes of an event that does not change the answer."""
        if event.HasField("continued"):
            self.route = event.continued
            return b""
        return self._unknown(event.unknown)

    def _delta(self, opening: bytes, value: str, pieces: Sequence[bytes] = ()) -> bytes:
        beside = self._beside.pop("content_block_delta", None)
        if not (value or beside):
            return b""
        end = b"}," + orjson.dumps(beside)[1:-1] + b"}\n\n" if beside else _END
        return self._open() + _deltas(_DELTA % (self._index, opening), value, pieces, end)

    def _opaque_delta(self, delta: conversation_pb2.Opaque) -> bytes:
        fields = raw_json(delta)
        if fields is None:
            return b""
        return self._open() + self._block_delta(fields)

    def _block_delta(self, delta: object) -> bytes:
        return self._named("content_block_delta", {"index": self._index, "delta": delta})

    def _waits(self, event: conversation_pb2.Opaque) -> bool:
        """Hold unknown fields of a later event; return whether they are held."""
        fields = native_fields(event)
        name = fields.pop("type", None)
        if name not in _NAMED:
            return False
        if name == "message_delta":
            # Several of them are merged.
            before = self._beside.get(name, {})
            inside = {**before.get("delta", {}), **fields.get("delta", {})}
            fields = {**before, **fields, "delta": inside}
        self._beside[name] = fields
        return True

    def _named(self, name: str, fields: Json) -> bytes:
        """Return an event with its held fields."""
        data = {"type": name, **self._beside.pop(name, {}), **fields}
        return _EVENT % (name.encode(), orjson.dumps(data))

    def _unknown(self, event: conversation_pb2.Opaque) -> bytes:
        fields = native_fields(event)
        name = str(fields.get("type", ""))
        if not (name and name.isprintable()):
            return b""
        return _EVENT % (name.encode(), orjson.dumps(fields))

    def _block_start(self, block: conversation_pb2.Block) -> bytes:
        """Start an empty block, as clients expect, with its content as the first delta."""
        kind = block.WhichOneof("kind")
        if kind == "opaque":
            content_block = raw_json(block.opaque)
            self._hidden = content_block is None
            if content_block is None:
                return b""
            start = {"index": self._index, "content_block": content_block}
            return self._named("content_block_start", start)
        if kind == "text" and not (block.text or block.citations or self._beside):
            if not block.HasField("extra"):
                # The fast path of nearly all blocks.
                self._unopened = _EMPTY_TEXT % self._index
                return b""
        fields = block_json(block)
        delta, content = b"", ""
        match kind:
            case "text" | "refusal":
                self._refused = self._refused or kind == "refusal"
                delta, content, fields["text"] = _TEXT, fields["text"], ""
            case "thinking":
                self._signature, fields["signature"] = fields["signature"], ""
                delta, content, fields["thinking"] = _THINKING, fields["thinking"], ""
            case "tool_use" | "server_tool_use":
                content = (block.tool_use if kind == "tool_use" else block.server_tool_use).input
                delta, fields["input"] = _INPUT, {}
        start = {"index": self._index, "content_block": fields}
        self._unopened = self._named("content_block_start", start)
        first = self._delta(delta, content) if content else b""
        return first or (b"" if delta == _TEXT else self._open())

    def _open(self) -> bytes:
        opening, self._unopened = self._unopened, b""
        return opening

    def _block_stop(self) -> bytes:
        signature = b""
        if self._signature:
            signature = self._delta(_SIGNATURE, self._signature)
        self._beside.pop("content_block_delta", None)
        if self._hidden or self._unopened:
            self._hidden, self._unopened = False, b""
            self._beside.pop("content_block_stop", None)
            return b""
        stop = self._named("content_block_stop", {"index": self._index})
        self._signature = ""
        self._index += 1
        self._text_delta = _DELTA % (self._index, _TEXT)
        return signature + stop

"""Anthropic's answers as canonical events: whole ones, and streams as they come.

The two share how a block, the usage and the end are read, so that a whole answer and
its stream add up to the same.
"""

from collections.abc import Callable
from typing import Any, Protocol

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Opaque, Thinking, ToolUse, Usage
from gateway.inference.v1.inference_pb2 import BlockStop, Event, Finish, Start
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.content import is_content
from services.inference.providers.bounds import Bounds, dump, name_of, tokens
from services.inference.providers.failures import broken_answer, cut_off
from services.inference.providers.frames import Frames, delta_of
from services.inference.providers.sse import ServerSentEvent, read_event

Json = dict[str, Any]

_REASONS = {
    "end_turn": conversation_pb2.FINISH_REASON_END_TURN,
    "max_tokens": conversation_pb2.FINISH_REASON_MAX_TOKENS,
    "stop_sequence": conversation_pb2.FINISH_REASON_STOP_SEQUENCE,
    "tool_use": conversation_pb2.FINISH_REASON_TOOL_USE,
    "refusal": conversation_pb2.FINISH_REASON_REFUSAL,
    "pause_turn": conversation_pb2.FINISH_REASON_PAUSE_TURN,
    "model_context_window_exceeded": conversation_pb2.FINISH_REASON_CONTEXT_WINDOW,
}
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)
# Bytes of JSON that usage without a name may have; each event tells all of it again.
_MAX_USAGE = 16 << 10
# Fields of a message that a stream tells at its end.
_OF_THE_END = ("stop_details", "container", "context_management")
# Fields of a message that have a name in the canonical answer.
_OF_MESSAGES = ("id", "type", "role", "content", "model", "usage", "stop_reason", "stop_sequence")

# Of each delta with a name: the block it belongs to, and where its text is.
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
# Of each kind of block that is written a little at a time: its deltas.
_KIND_OF_DELTA = {"text": "text", "thinking": "thinking", "tool_use": "input"}


class _MalformedError(Exception):
    """The provider's JSON is not of the shape that its protocol gives it."""


class Failures(Protocol):
    """What makes a failure of a provider's words (an `Upstream`)."""

    name: str
    limits: Limits

    def in_band(self, body: bytes) -> UpstreamError:
        """Return the failure that an error object stands for."""


def events_from_whole(message: Json, upstream: Failures) -> list[Event]:
    """Return the events of a whole answer, each block whole in its `block_start`.

    Args:
        message: the answer's body.
        upstream: makes failures of what the provider says.

    Raises:
        UpstreamError: the body is no message, or one without an end.
    """
    bounds = Bounds(upstream.name, upstream.limits)
    try:
        events = [Event(start=_start(message, but=_OF_THE_END))]
        content = message.get("content")
        if not isinstance(content, list):
            raise _MalformedError("content")
        for index, raw in enumerate(content):
            bounds.part()
            block = _block(_an_object(raw, "content"))
            if block.HasField("tool_use") and not block.tool_use.input:
                block.tool_use.input = "{}"
            events.append(Event(block=index, block_start=block))
            events.append(Event(block=index, block_stop=BlockStop()))
        if not message.get("stop_reason"):
            raise _MalformedError("stop_reason")
        end = {name: message[name] for name in _OF_THE_END if message.get(name) is not None}
        counts = _Counts()
        counts.add(message)
        events.append(Event(usage=counts.usage()))
        events.append(Event(finish=_finish(message, end)))
    except _MalformedError as error:
        raise broken_answer(upstream.name, f"answered a message with a wrong `{error}`") from error
    return events


class StreamReader:
    """Reads the server-sent events of one answer.

    Attributes:
        ended: whether the provider has said that nothing follows.
        has_content: whether some of the answer has come.
        failure: what broke the answer off, or None; the events before it stay good.
    """

    def __init__(self, upstream: Failures) -> None:
        """Return a reader; `upstream` makes failures of what the provider says."""
        self.ended = self.has_content = False
        self.failure: UpstreamError | None = None
        self._upstream = upstream
        self._bounds = Bounds(upstream.name, upstream.limits)
        self._counts = _Counts()
        self._frames = Frames(_said)
        self._started = self._finished = False
        # The open block: its kind, the provider's number of it, whether it has arguments.
        self._kind = ""
        self._index: object = None
        self._has_input = False
        self._number = -1
        self._early: list[Event] = []  # without a name, before the answer began
        self._readers: dict[object, Callable[[Json, list[Event]], None]] = {
            "message_start": self._message_start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
        }

    @property
    def is_complete(self) -> bool:
        """Whether the answer has ended, so that nothing but the last event can be missing."""
        return self._finished

    def feed(self, text: bytes) -> list[Event]:
        """Return the events that the text of server-sent events makes.

        After a failure or the end there are none.
        """
        events: list[Event] = []
        frames, at = self._frames, 0
        while at < len(text) and not (self.ended or self.failure):
            pieces, at = frames.repeats(text, at)
            if pieces:
                kind = _KIND_OF_DELTA[self._kind]
                events.append(delta_of(0, self._number, kind, pieces))
                continue
            began = at
            sent, at = read_event(text, at)
            if sent is not None:
                frames.forget()
                known = len(events)
                self._take(sent, events)
                if len(events) > known:
                    self._learn(text[began:at], events[-1])
        self.has_content = self.has_content or any(map(is_content, events))
        return events

    def _take(self, sent: ServerSentEvent, events: list[Event]) -> None:
        try:
            self._read(sent, events)
        except UpstreamError as error:
            self.failure = error
        except _MalformedError as error:
            self.failure = broken_answer(
                self._upstream.name, f"streamed an event with a wrong `{error}`", sent.data
            )

    def _learn(self, sent: bytes, event: Event) -> None:
        """Learn to recognise server-sent events that differ from one in what it said alone."""
        if text := event.text or event.thinking or event.input:
            self._frames.learn(sent, text)

    def end(self) -> None:
        """Record that the stream is over.

        Raises:
            UpstreamError: it was over too early. The reason to stop makes an answer whole,
                also where the last event is missing.
        """
        if self.failure:
            raise self.failure
        if not self._finished:
            raise cut_off(self._upstream.name)

    def _read(self, sent: ServerSentEvent, events: list[Event]) -> None:
        told = _an_object(self._bounds.parse(sent.data), "data")
        kind = told.get("type", sent.event)
        if kind == "error":
            self.failure = self._upstream.in_band(sent.data)
            return
        if not isinstance(kind, str):
            raise _MalformedError("type")
        reader = self._readers.get(kind)
        if reader is None:
            if kind != "ping":
                self._unknown(told, kind, events)
            return
        if not self._started and kind != "message_start":
            raise _MalformedError("type")
        reader(told, events)

    def _unknown(self, told: Json, kind: str, events: list[Event]) -> None:
        """Keep an event that newer versions of the protocol have, or this server alone."""
        fields = {**told, "type": kind}
        # Until the answer has content its events wait.
        opaque = _opaque(fields) if self.has_content else self._kept(fields)
        (events if self._started else self._early).append(Event(unknown=opaque))

    def _message_start(self, told: Json, events: list[Event]) -> None:
        if self._started:
            raise _MalformedError("type")
        self._started = True
        message = _an_object(told.get("message"), "message")
        self._counts.add(message)
        events.append(Event(start=_start(message)))
        events.append(Event(usage=self._counts.usage()))
        events += self._early
        self._early.clear()

    def _block_start(self, told: Json, events: list[Event]) -> None:
        if self._finished:
            raise _MalformedError("type")
        self._close_block(events)
        self._bounds.part()
        block = _block(_an_object(told.get("content_block"), "content_block"))
        self._kind = block.WhichOneof("kind") or ""
        self._index = told.get("index")
        if not isinstance(self._index, int | None):
            raise _MalformedError("index")
        self._number += 1
        self._has_input = bool(block.tool_use.input)
        events.append(Event(block=self._number, block_start=block))

    def _block_delta(self, told: Json, events: list[Event]) -> None:
        if not self._kind or told.get("index") != self._index:
            raise _MalformedError("index")
        delta = _an_object(told.get("delta"), "delta")
        kind = delta.get("type")
        if not isinstance(kind, str):
            raise _MalformedError("delta.type")
        if self._kind == "opaque" or kind not in _DELTAS:
            events.append(Event(block=self._number, opaque=self._kept(delta)))
            return
        owner, field = _DELTAS[kind]
        if owner != self._kind:
            raise _MalformedError("delta.type")
        text = _text(delta, field)
        if text:
            self._say(field, text, events)
        if len(delta) > 2 and field in ("text", "thinking"):
            # Fields without a name, beside a text that is told already.
            events.append(Event(block=self._number, opaque=self._kept({**delta, field: ""})))

    def _say(self, field: str, text: str, events: list[Event]) -> None:
        if field == "text":
            events.append(Event(block=self._number, text=text))
        elif field == "thinking":
            events.append(Event(block=self._number, thinking=text))
        elif field == "signature":
            events.append(Event(block=self._number, signature=text))
        else:
            self._has_input = True
            events.append(Event(block=self._number, input=text))

    def _kept(self, fields: Json) -> Opaque:
        """Return a delta or an event that is held until the answer can be put together."""
        try:
            kept = self._bounds.keep_delta(fields)
        except ValueError as error:
            raise _MalformedError("delta") from error
        return Opaque(dialect=conversation_pb2.DIALECT_ANTHROPIC, json=kept)

    def _block_stop(self, told: Json, events: list[Event]) -> None:
        if not self._kind or told.get("index") != self._index:
            raise _MalformedError("index")
        self._close_block(events)

    def _close_block(self, events: list[Event]) -> None:
        if not self._kind:
            return
        if self._kind == "tool_use" and not self._has_input:
            # A call without arguments comes without deltas; elsewhere that is no JSON.
            events.append(Event(block=self._number, input="{}"))
        events.append(Event(block=self._number, block_stop=BlockStop()))
        self._kind = ""

    def _message_delta(self, told: Json, events: list[Event]) -> None:
        delta = _an_object(told.get("delta"), "delta")
        finish = None
        if delta.get("stop_reason") and not self._finished:
            own = ("type", "delta", "usage")
            beside = {name: value for name, value in told.items() if name not in own}
            finish = _finish(delta, beside | delta)
            self._close_block(events)
        if told.get("usage") is not None:
            self._counts.add(told)
            events.append(Event(usage=self._counts.usage()))
        if finish is not None:
            self._finished = True
            events.append(Event(finish=finish))

    def _message_stop(self, told: Json, events: list[Event]) -> None:
        if not self._finished:
            raise _MalformedError("stop_reason")
        self.ended = True


class _Counts:
    """Usage, added up from reports that each hold some of it and replace what was there."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._extra: Json = {}

    def add(self, holder: Json) -> None:
        """Take the field `usage` of a message or event."""
        told = holder.get("usage")
        for name, value in _an_object({} if told is None else told, "usage").items():
            if value is None:
                continue
            if name in _COUNTS:
                self._known[name] = _count(value)
            elif name == "output_tokens_details" and isinstance(value, dict):
                self._known["reasoning_tokens"] = _count(value.get("thinking_tokens", 0))
            else:
                self._extra[name] = value
        if self._extra and len(_dumped(self._extra, "usage")) > _MAX_USAGE:
            raise _MalformedError("usage")

    def usage(self) -> Usage:
        """Return all that is known."""
        return Usage(**self._known, extra=_opaque_or_none(self._extra))


def _start(message: Json, but: tuple[str, ...] = ()) -> Start:
    rest = {name: value for name, value in message.items() if name not in (*_OF_MESSAGES, *but)}
    return Start(
        id=_name(message, "id"), model=_name(message, "model"), extra=_opaque_or_none(rest)
    )


def _finish(holder: Json, rest: Json) -> Finish:
    """Read `stop_reason` and `stop_sequence`; what else `rest` holds is kept."""
    told = _text(holder, "stop_reason")
    reason = _REASONS.get(told, conversation_pb2.FINISH_REASON_END_TURN)
    extra = {name: value for name, value in rest.items() if name not in _OF_MESSAGES}
    if told not in _REASONS:
        extra["stop_reason"] = told
    return Finish(
        reason=reason,
        stop_sequence=_text(holder, "stop_sequence"),
        extra=_opaque_or_none(extra),
    )


def _block(told: Json) -> Block:
    """Read a content block: as it begins in a stream, or whole."""
    kind = told.get("type")
    if kind == "text":
        return Block(text=_text(told, "text"), extra=_rest(told, "text"))
    if kind == "thinking":
        thinking = Thinking(text=_text(told, "thinking"), signature=_text(told, "signature"))
        return Block(thinking=thinking, extra=_rest(told, "thinking", "signature"))
    if kind == "redacted_thinking":
        return Block(redacted_thinking=_text(told, "data"), extra=_rest(told, "data"))
    if kind == "tool_use":
        arguments = _an_object(told.get("input") or {}, "input")
        call = ToolUse(
            id=_text(told, "id"),
            name=_text(told, "name"),
            input=_dumped(arguments, "input").decode() if arguments else "",
        )
        return Block(tool_use=call, extra=_rest(told, "id", "name", "input"))
    if not isinstance(kind, str):
        raise _MalformedError("content_block.type")
    return Block(opaque=_opaque(told))


def _rest(told: Json, *named: str) -> Opaque | None:
    rest = {name: value for name, value in told.items() if name != "type" and name not in named}
    return _opaque_or_none(rest)


def _opaque_or_none(fields: Json) -> Opaque | None:
    """Keep the fields that hold something."""
    kept = {name: value for name, value in fields.items() if value is not None}
    return _opaque(kept) if kept else None


def _opaque(value: Json) -> Opaque:
    kept = _dumped(value, "fields")
    return Opaque(dialect=conversation_pb2.DIALECT_ANTHROPIC, json=kept)


def _dumped(value: Json, name: str) -> bytes:
    try:
        return dump(value)
    except ValueError as error:
        raise _MalformedError(name) from error


def _said(told: Any) -> str | None:
    """Return the string that the delta of an event says; see `frames.Said`."""
    match told:
        case {"delta": {"type": str(kind), **fields}} if kind in _DELTAS:
            said = fields.get(_DELTAS[kind][1])
            return said if isinstance(said, str) else None
    return None


def _an_object(value: Any, name: str) -> Json:
    if not isinstance(value, dict):
        raise _MalformedError(name)
    return value


def _text(holder: Json, name: str) -> str:
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _MalformedError(name)
    return value


def _name(holder: Json, name: str) -> str:
    try:
        return name_of(_text(holder, name))
    except ValueError as error:
        raise _MalformedError(name) from error


def _count(value: object) -> int:
    try:
        return tokens(value)
    except ValueError as error:
        raise _MalformedError("usage") from error

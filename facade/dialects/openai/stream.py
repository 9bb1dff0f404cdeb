"""Streamed answers as chunks of a chat completion."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import orjson

from facade.dialects.openai.errors import error_event
from facade.dialects.openai.response import (
    FINISH_REASONS,
    annotation,
    completion_id,
    native_fields,
    reasoning_fields,
    tool_call,
    usage_object,
    with_thinking,
)
from facade.dialects.openai.signed_thinking import SentThinking, is_signed
from facade.dialects.stream_formats import EVENTS
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    FinishReason,
    Thinking,
    ToolUse,
    Usage,
)
from gateway.inference.v1.inference_pb2 import Event, RouteInfo, Start
from services.common.errors import GatewayError

_DONE = b"data: [DONE]\n\n"
_KEEPALIVE = b": keep-alive\n\n"

# Maximum number of choices (the contract's `n`).
_MAX_CHOICES = 128
# Maximum size of unknown fields repeated in every chunk; larger ones are sent once.
_MAX_REPEATED = 2048
# The first delta of a choice.
_OPENING = {"role": "assistant", "content": None}
_RUNNING_ON = b',"logprobs":null,"finish_reason":null}]'


class Choice:
    """The state of one choice.

    Attributes:
        head: JSON before a delta.
        text: JSON before the string of a text delta.
        calls: its open tool calls, by block.
        has_answered: whether the message has content other than thinking.
        has_ended: whether its finish reason has been sent.
        length: characters of its texts so far.
        annotations: its citations, which are sent at its end.
        signed: its thinking that the provider needs back; None before any thinking.
    """

    __slots__ = (
        *("_before", "_has_text", "_index", "_number_of_calls", "_thinking"),
        *("annotations", "calls", "has_answered", "has_ended", "head", "length", "signed", "text"),
    )

    def __init__(self, index: int, head: bytes) -> None:
        self._index = index
        self.begin_with(head)
        self.has_answered = self.has_ended = False
        self.length = self._before = 0
        self.annotations: list[dict[str, Any]] = []
        self._thinking = Thinking()
        self.signed: SentThinking | None = None
        self._has_text = False
        self.calls: dict[int, _Call] = {}
        self._number_of_calls = 0

    def begin_with(self, head: bytes) -> None:
        """Set the JSON before deltas, from the beginning of a chunk."""
        self.head = head + b'[{"index":%d,"delta":' % self._index
        self.text = self.head + b'{"content":'

    def start_block(self, number: int, block: Block) -> dict[str, Any]:
        """Return the first delta of a block, possibly empty."""
        match block.WhichOneof("kind"):
            case "text":
                self._before = self.length
                self.length += len(block.text)
                delta = native_fields(block.extra) if block.HasField("extra") else {}
                # Before the first text, content is null rather than empty.
                if block.text or not self._has_text:
                    delta["content"] = block.text
                self._has_text = self.has_answered = True
                return delta
            case "tool_use":
                self.has_answered = True
                call = _Call(self._number_of_calls, block.tool_use)
                self.calls[number] = call
                self._number_of_calls += 1
                opening = call.opening(block)
                if self.signed is not None:
                    opening = with_thinking(opening, self.signed)
                return {"tool_calls": [opening]}
            case "refusal":
                self.has_answered = True
                return {"refusal": block.refusal} if block.refusal else {}
            case "thinking":
                self._thinking = block.thinking
                text = block.thinking.text
                fields = reasoning_fields(self._thinking, text) if text else {}
                return fields | self._begin_signed(block) if is_signed(block) else fields
            case "redacted_thinking":
                return self._begin_signed(block)
            case "opaque" if part := native_fields(block.opaque):
                self.has_answered = True
                return {"content": [part]}
            case _:
                return {}

    def delta(self, kind: str, event: Event) -> dict[str, Any]:
        """Return the delta for more of a block or its end, possibly empty."""
        match kind:
            case "text":
                self.length += len(event.text)
                return {"content": event.text}
            case "citation":
                self.annotations.append(annotation(event.citation, self._before))
                return {}
            case "thinking":
                text = event.thinking
                fields = reasoning_fields(self._thinking, text)
                return fields if self.signed is None else fields | self.signed.text(text)
            case "signature" if self.signed is not None:
                return self.signed.signature(event.signature)
            case "refusal":
                return {"refusal": event.refusal}
            case "input" if call := self.calls.get(event.block):
                return {"tool_calls": [call.more(event.input)]}
            case "block_stop" if call := self.calls.pop(event.block, None):
                return {"tool_calls": [call.more("{}")]} if call.lacks_arguments else {}
            case "opaque" if fields := native_fields(event.opaque):
                if call := self.calls.get(event.block):
                    return {"tool_calls": [call.further(fields)]}
                return fields
            case _:
                # The end of a block, or arguments of a block of another dialect.
                if kind == "block_stop" and self.signed is not None:
                    self.signed.end()
                return {}

    def _begin_signed(self, block: Block) -> dict[str, Any]:
        if self.signed is None:
            self.signed = SentThinking()
        return self.signed.begin(block)


class _Call:
    """One tool call of a choice; `index` counts the calls, not the blocks."""

    __slots__ = ("_index", "_is_freeform", "lacks_arguments")

    def __init__(self, index: int, use: ToolUse) -> None:
        self._index = index
        self._is_freeform = use.freeform
        # Clients parse the arguments at the end, so they must be at least an object.
        self.lacks_arguments = not use.input and not use.freeform

    def opening(self, block: Block) -> dict[str, Any]:
        """Return the first delta of the call, which alone has id, type and name."""
        return {"index": self._index, **tool_call(block, block.tool_use.input)}

    def further(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a delta with unknown fields."""
        return {**fields, "index": self._index}

    def more(self, text: str) -> dict[str, Any]:
        """Return a delta with more of the arguments."""
        self.lacks_arguments = False
        if self._is_freeform:
            return {"index": self._index, "custom": {"input": text}}
        return {"index": self._index, "function": {"arguments": text}}


class ChatStream:
    """Encodes the events of one answer as server-sent events, a batch at a time.

    The first chunk of each choice has the role, and the last one `finish_reason`. Choices start in
    the order of their indices, as the official client takes the position of a choice for its index.

    Args:
        created: Unix seconds, the same in every chunk.
        include_usage: whether a last chunk without choices has the usage, which is null in all
            others.

    Attributes:
        format: the format of the stream.
        choice_type: class of the state of a choice.
        finish_reasons: the names of the reasons why a choice ended.
        route: the model that serves the answer, once known.
        usage: token usage so far.
    """

    format = EVENTS
    choice_type = Choice
    finish_reasons: ClassVar[Mapping[FinishReason.ValueType, str]] = FINISH_REASONS

    def __init__(self, created: int, include_usage: bool) -> None:
        self._created = created
        self._include_usage = include_usage
        self.route = RouteInfo()
        self.usage = Usage()
        self._envelope: dict[str, Any] = {}
        self._head = b""
        self._late: dict[str, Any] = {}  # unknown fields received after the end
        self._end = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._text_tail = b"}" + _RUNNING_ON + self._end
        self._choices: list[Choice] = []

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""
        out: list[bytes] = []
        for event in events:
            kind = event.WhichOneof("kind")
            if kind == "text" and not event.logprobs:
                # The common case.
                choice, tail, text = self._choices[event.choice], self._text_tail, event.text
                choice.length += len(text)
                if pieces := event.pieces:
                    # A chunk for each escaped piece.
                    between = b'"' + tail + choice.text + b'"'
                    out += (choice.text, b'"', between.join(pieces), b'"', tail)
                else:
                    out += (choice.text, orjson.dumps(text), tail)
            elif kind == "start":
                self._start(event.start, out)
            elif kind == "usage":
                self.usage = event.usage
            elif kind == "finish":
                self._finish(event, out)
            elif kind == "block_start":
                self._block_start(event, out)
            elif kind == "block_stop":
                choice = self._choices[event.choice]
                if choice.calls or choice.signed is not None:
                    self._more(kind, event, out)
            elif kind is not None and kind != "unknown":
                self._more(kind, event, out)
        return b"".join(out)

    def finish(self) -> bytes:
        """Return the end of a complete answer: the usage, if requested, and the terminator."""
        head = _head(self._late | self._envelope) if self._late else self._head
        if self._include_usage:
            usage = orjson.dumps(usage_object(self.usage))
            return b'%s[],"usage":%s}\n\n%s' % (head, usage, _DONE)
        if not self._late:
            return _DONE
        # With a choice, as clients that did not request usage may not expect chunks without
        # choices.
        return b'%s[{"index":0,"delta":{}%s%s%s' % (head, _RUNNING_ON, self._end, _DONE)

    def keepalive(self) -> bytes:
        """Return a comment, which clients ignore."""
        return _KEEPALIVE

    def error(self, error: GatewayError) -> bytes:
        """Return the end of an interrupted answer: the error, without the terminator."""
        return error_event(error)

    def _start(self, start: Start, out: list[bytes]) -> None:
        self.route = start.route
        envelope = {
            "id": completion_id(start.id),
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": start.model,
        }
        if start.HasField("extra") and (further := native_fields(start.extra)):
            if len(start.extra.json) > _MAX_REPEATED:
                # In a chunk of its own, like Azure's content filter results.
                out += (_head(further | envelope), b"[]", self._end)
            else:
                envelope = further | envelope
        self._envelope, self._head = envelope, _head(envelope)

    def _extra_fields(self, event: Event, out: list[bytes]) -> None:
        """Write unknown fields as a chunk of their own."""
        answer, message = (
            native_fields(event.extra_fields.answer),
            native_fields(event.extra_fields.message),
        )
        if answer.keys() & self._envelope.keys():
            self._change_head(answer)
        known = self._choices[event.choice] if event.choice < len(self._choices) else None
        if known is not None and known.has_ended:
            self._late |= answer
            return
        choice, delta = self._begun(event.choice, out)
        choice.has_answered = choice.has_answered or bool(message)
        fields = {
            **native_fields(event.extra_fields.choice),
            "index": event.choice,
            "delta": delta | message,
            "logprobs": None,
            "finish_reason": None,
        }
        head = _head(answer | self._envelope) if answer else self._head
        out.append(b"%s[%s]%s" % (head, orjson.dumps(fields), self._end))

    def _change_head(self, answer: dict[str, Any]) -> None:
        """Update the fields that every chunk repeats."""
        named = ("id", "object", "created", "model")
        for name in answer.keys() & self._envelope.keys() - set(named):
            # Sent in this chunk, and no longer repeated.
            del self._envelope[name]
        self._head = _head(self._envelope)
        for choice in self._choices:
            choice.begin_with(self._head)

    def _block_start(self, event: Event, out: list[bytes]) -> None:
        choice, opening = self._begun(event.choice, out)
        delta = opening | choice.start_block(event.block, event.block_start)
        self._chunk(choice, delta, event.logprobs, out)

    def _more(self, kind: str, event: Event, out: list[bytes]) -> None:
        if kind == "extra_fields":
            self._extra_fields(event, out)
            return
        if kind == "continued":
            self.route = event.continued
            return
        choice = self._choices[event.choice]
        if kind == "thinking" and choice.signed is not None:
            choice.signed.keep(event.thinking)
        if not event.pieces:
            self._chunk(choice, choice.delta(kind, event), event.logprobs, out)
            return
        # Fields around the text are repeated for each piece.
        empty = Event(block=event.block)
        setattr(empty, kind, "")
        around = orjson.dumps(choice.delta(kind, empty)).split(b'""')
        end = around[-1] + _RUNNING_ON + self._end
        if len(around) == 2:
            head = choice.head + around[0]
            out += (head, b'"', (b'"' + end + head + b'"').join(event.pieces), b'"', end)
        elif len(around) > 2:
            # Thinking is sent in several fields.
            for piece in event.pieces:
                written = (b'"%b"' % piece).join(around[:-1])
                out += (choice.head, written, b'"', piece, b'"', end)

    def _finish(self, event: Event, out: list[bytes]) -> None:
        choice, delta = self._begun(event.choice, out)
        if choice.annotations:
            self._chunk(choice, {"annotations": choice.annotations}, b"", out)
        if choice.signed is not None:
            self._chunk(choice, choice.signed.take(), b"", out)
        choice.has_ended = True
        if not choice.has_answered:
            delta["content"] = ""
        finish = event.finish
        ended = {
            **(native_fields(finish.extra) if finish.HasField("extra") else {}),
            "index": event.choice,
            "delta": delta,
            "logprobs": orjson.loads(event.logprobs) if event.logprobs else None,
            "finish_reason": self.finish_reasons[finish.reason],
        }
        out.append(b"%s[%s]%s" % (self._head, orjson.dumps(ended), self._end))

    def _begun(self, index: int, out: list[bytes]) -> tuple[Choice, dict[str, Any]]:
        """Return a choice and the start of its delta, with the role for a new choice."""
        number_of_choices = len(self._choices)
        if index >= _MAX_CHOICES:
            raise ValueError(f"choice {index} of an answer")
        for number in range(number_of_choices, index + 1):
            choice = self.choice_type(number, self._head)
            self._choices.append(choice)
            if number < index:
                self._chunk(choice, {**_OPENING}, b"", out)
        return self._choices[index], {**_OPENING} if index >= number_of_choices else {}

    def _chunk(
        self, choice: Choice, delta: dict[str, Any], logprobs: bytes, out: list[bytes]
    ) -> None:
        if logprobs:
            # Serialized again, so that a provider's line breaks cannot end the event.
            written = orjson.dumps(orjson.loads(logprobs))
            end = b',"logprobs":%s,"finish_reason":null}]' % written
        elif delta:
            end = _RUNNING_ON
        else:
            return
        out += (choice.head, orjson.dumps(delta), end, self._end)


def _head(envelope: dict[str, Any]) -> bytes:
    """Return the beginning of a chunk, up to its choices."""
    return b'data: %s,"choices":' % orjson.dumps(envelope)[:-1]

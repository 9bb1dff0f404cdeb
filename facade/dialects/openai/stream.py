"""Answers that are still coming, as the chunks of a streamed chat completion."""

from collections.abc import Iterable
from typing import Any

import orjson

from facade.dialects.openai.errors import error_object
from facade.dialects.openai.response import (
    FINISH_REASONS,
    completion_id,
    tool_call,
    unnamed,
    usage_object,
)
from gateway.conversation.v1.conversation_pb2 import Block, ToolUse, Usage
from gateway.inference.v1.inference_pb2 import Event, Served, Start
from services.common.errors import GatewayError

_DONE = b"data: [DONE]\n\n"
_KEEPALIVE = b": keep-alive\n\n"

# The most that a request asks for (the contract's `n`).
_MAX_CHOICES = 128
# Bytes of further fields that every chunk repeats; more of them are told once.
_MAX_REPEATED = 2048
_RUNNING_ON = b',"logprobs":null,"finish_reason":null}]'


class ChatStream:
    """Turns the events of one answer into server-sent events, a batch at a time.

    Of each choice the first chunk tells the role, and the last one `finish_reason`.
    Choices begin in the order of their indices, since the official client takes the
    position of a choice for its index.

    Args:
        created: Unix seconds, the same in every chunk.
        include_usage: whether a last chunk without choices tells the usage, and all
            others carry a null in its place.

    Attributes:
        served: who serves the answer, once that is known.
        usage: the tokens so far.
    """

    def __init__(self, created: int, include_usage: bool) -> None:
        self._created = created
        self._include_usage = include_usage
        self.served = Served()
        self.usage = Usage()
        self._head = b""
        self._end = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._text_tail = b"}" + _RUNNING_ON + self._end
        self._choices: list[_Choice] = []

    def encode(self, events: Iterable[Event]) -> bytes:
        """Give the bytes of a batch of events, possibly none."""
        out: list[bytes] = []
        for event in events:
            kind = event.WhichOneof("kind")
            if kind == "text" and not event.logprobs:
                # Nearly all events are like this.
                head, tail = self._choices[event.choice].text, self._text_tail
                if pieces := event.pieces:
                    _copy(pieces, head, tail, out)
                else:
                    out += (head, orjson.dumps(event.text), tail)
            elif kind == "start":
                self._start(event.start, out)
            elif kind == "usage":
                self.usage = event.usage
            elif kind == "finish":
                self._finish(event, out)
            elif kind == "block_start":
                self._block_start(event, out)
            elif kind is not None:
                self._delta(kind, event, out)
        return b"".join(out)

    def finish(self) -> bytes:
        """Give what ends a whole answer: the usage, where it is wanted, and the terminator."""
        if not self._include_usage:
            return _DONE
        usage = orjson.dumps(usage_object(self.usage))
        return b'%s[],"usage":%s}\n\n%s' % (self._head, usage, _DONE)

    def keepalive(self) -> bytes:
        """Give a comment, which clients read past."""
        return _KEEPALIVE

    def error(self, error: GatewayError) -> bytes:
        """Give what ends an answer that broke off: the failure, and no terminator."""
        return b"data: %s\n\n" % orjson.dumps({"error": error_object(error)})

    def _start(self, start: Start, out: list[bytes]) -> None:
        self.served = start.served
        envelope = {
            "id": completion_id(start.id),
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": start.model,
        }
        if further := unnamed(start.extra):
            if len(start.extra.json) > _MAX_REPEATED:
                # In a chunk of its own, as Azure tells what its filter found.
                out += (_head(further | envelope), b"[]", self._end)
            else:
                envelope = further | envelope
        self._head = _head(envelope)

    def _block_start(self, event: Event, out: list[bytes]) -> None:
        choice, opening = self._begun(event.choice, out)
        delta = opening | choice.start_block(event.block, event.block_start)
        self._chunk(choice, delta, event.logprobs, out)

    def _delta(self, kind: str, event: Event, out: list[bytes]) -> None:
        choice = self._choices[event.choice]
        if not event.pieces:
            self._chunk(choice, choice.delta(kind, event), event.logprobs, out)
            return
        # What would stand around no text stands around each piece.
        empty = Event(block=event.block)
        setattr(empty, kind, "")
        head, text, tail = orjson.dumps(choice.delta(kind, empty)).partition(b'""')
        if text:
            _copy(event.pieces, choice.head + head, tail + _RUNNING_ON + self._end, out)

    def _finish(self, event: Event, out: list[bytes]) -> None:
        choice, delta = self._begun(event.choice, out)
        if not choice.has_answered:
            delta["content"] = ""
        ended = {
            **unnamed(event.finish.extra),
            "index": event.choice,
            "delta": delta,
            "logprobs": orjson.loads(event.logprobs) if event.logprobs else None,
            "finish_reason": FINISH_REASONS[event.finish.reason],
        }
        out.append(b"%s[%s]%s" % (self._head, orjson.dumps(ended), self._end))

    def _begun(self, index: int, out: list[bytes]) -> tuple["_Choice", dict[str, Any]]:
        """Give a choice and the opening of its delta: the role, where the choice is new."""
        known = len(self._choices)
        if index >= _MAX_CHOICES:
            raise ValueError(f"choice {index} of an answer")
        for number in range(known, index + 1):
            choice = _Choice(self._head + b'[{"index":%d,"delta":' % number)
            self._choices.append(choice)
            if number < index:
                self._chunk(choice, _opening(), b"", out)
        return self._choices[index], _opening() if index >= known else {}

    def _chunk(
        self, choice: "_Choice", delta: dict[str, Any], logprobs: bytes, out: list[bytes]
    ) -> None:
        if logprobs:
            # Written anew, so that no line break of a provider's gets into the event.
            written = orjson.dumps(orjson.loads(logprobs))
            end = b',"logprobs":%s,"finish_reason":null}]' % written
        elif delta:
            end = _RUNNING_ON
        else:
            return
        out += (choice.head, orjson.dumps(delta), end, self._end)


def _copy(pieces: Iterable[bytes], head: bytes, tail: bytes, out: list[bytes]) -> None:
    """Write a chunk for each of the insides of JSON strings."""
    out += (head, b'"', (b'"' + tail + head + b'"').join(pieces), b'"', tail)


def _head(envelope: dict[str, Any]) -> bytes:
    """Return the beginning of a chunk, up to its choices."""
    return b'data: %s,"choices":' % orjson.dumps(envelope)[:-1]


def _opening() -> dict[str, Any]:
    return {"role": "assistant", "content": None}


class _Choice:
    """What has been said of one choice.

    Attributes:
        head: what comes before a delta.
        text: what comes before the string of a delta of text.
        has_answered: whether the message has anything but thinking so far.
    """

    __slots__ = ("_calls", "_has_text", "_number_of_calls", "has_answered", "head", "text")

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.text = head + b'{"content":'
        self.has_answered = False
        self._has_text = False
        # Of each open block that is a call.
        self._calls: dict[int, _Call] = {}
        self._number_of_calls = 0

    def start_block(self, number: int, block: Block) -> dict[str, Any]:
        """Give the delta that a new block begins with, possibly an empty one."""
        match block.WhichOneof("kind"):
            case "text":
                delta = unnamed(block.extra)
                # Before the first text, content is null, which an empty text is not.
                if block.text or not self._has_text:
                    delta["content"] = block.text
                self._has_text = self.has_answered = True
                return delta
            case "tool_use":
                self.has_answered = True
                call = _Call(self._number_of_calls, block.tool_use)
                self._calls[number] = call
                self._number_of_calls += 1
                return {"tool_calls": [unnamed(block.extra) | call.opening(block.tool_use)]}
            case "refusal":
                self.has_answered = True
                return {"refusal": block.refusal} if block.refusal else {}
            case "thinking" if block.thinking.text:
                return {"reasoning_content": block.thinking.text}
            case "opaque":
                return unnamed(block.opaque)
            case _:
                # What only the provider can read.
                return {}

    def delta(self, kind: str, event: Event) -> dict[str, Any]:
        """Give the delta for more of a block, or for its end, possibly an empty one."""
        match kind:
            case "text":
                return {"content": event.text}
            case "thinking":
                return {"reasoning_content": event.thinking}
            case "refusal":
                return {"refusal": event.refusal}
            case "input" if call := self._calls.get(event.block):
                return {"tool_calls": [call.more(event.input)]}
            case "block_stop" if call := self._calls.pop(event.block, None):
                return {"tool_calls": [call.more("{}")]} if call.lacks_arguments else {}
            case "opaque":
                return unnamed(event.opaque)
            case _:
                # Signatures, and arguments of a block of another dialect.
                return {}


class _Call:
    """One tool call of a choice; `index` counts the calls, not the blocks."""

    __slots__ = ("_index", "_is_freeform", "lacks_arguments")

    def __init__(self, index: int, use: ToolUse) -> None:
        self._index = index
        self._is_freeform = use.freeform
        # Clients parse what has come by the end, so it must be an object at least.
        self.lacks_arguments = not use.input and not use.freeform

    def opening(self, use: ToolUse) -> dict[str, Any]:
        """Give the first delta of the call, the only one with id, type and name."""
        return {"index": self._index, **tool_call(use, use.input)}

    def more(self, text: str) -> dict[str, Any]:
        """Give a delta with more of the arguments."""
        self.lacks_arguments = False
        if self._is_freeform:
            return {"index": self._index, "custom": {"input": text}}
        return {"index": self._index, "function": {"arguments": text}}

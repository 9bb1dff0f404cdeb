"""The fold of a stream of events to a whole answer, and its inverse.

Whole and streamed answers are the same events, in the order that `gateway.inference.v1.Event`
documents. This is the only module that knows how events make an answer.
Pieces of text are kept in lists and joined once: the cost is linear in the size of the answer.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import Block, Opaque, Thinking, ToolUse
from gateway.inference.v1.inference_pb2 import (
    BlockStop,
    Choice,
    Event,
    ExtraFields,
    GenerateResponse,
    Start,
)
from services.inference.stream.pieces import keep
from services.inference.stream.unknown_fields import UnknownFields

# The kind of block that each kind of delta belongs to.
_BLOCK_OF_DELTA = {
    "text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
    "signature": "thinking",
    "input": "tool_use",
}

# Calls of tools that run at the provider are opaque blocks with arguments; calls of the gateway's
# own tools have their own kind.
_OTHER_CALLS = (("input", "opaque"), ("input", "server_tool_use"))

# Field of an opaque delta whose content has also arrived as an event of its own.
_SAID = {"text_delta": "text", "thinking_delta": "thinking"}


class BrokenStream(ValueError):
    """Error raised when events violate their documented order: a fault of a provider's adapter."""


class Accumulator:
    """Folds the events of one answer into a `GenerateResponse`.

    A `whole` event is the answer itself. Events are not modified.
    """

    __slots__ = ("_choices", "_extra_fields", "_start", "_usage", "_whole")

    def __init__(self) -> None:
        self._start: Start | None = None
        self._whole: GenerateResponse | None = None
        self._usage: Event | None = None
        self._extra_fields = UnknownFields(joins=False)  # of the answer as a whole
        self._choices: dict[int, _Choice] = {}

    def add(self, events: Iterable[Event]) -> None:
        """Add the next events.

        Raises:
            BrokenStream: an event is not allowed at its position.
        """
        choices = self._choices
        for event in events:
            kind = event.WhichOneof("kind")
            if kind == "start" or self._start is None:
                self._begin(kind, event)
            elif kind == "usage":
                self._usage = event
            elif kind is None:
                raise BrokenStream("an event without a kind")
            elif kind == "unknown" or kind == "continued":
                continue
            else:
                if kind == "extra_fields" and not self._take(event.extra_fields):
                    continue
                number = event.choice
                choice = choices.get(number)
                if choice is None:
                    choice = choices[number] = _Choice(number)
                choice.add(kind, event)

    def _begin(self, kind: str | None, event: Event) -> None:
        if self._whole is not None:
            raise BrokenStream(f"{kind} beside a whole answer")
        if kind == "whole":
            self._whole = event.whole
            return
        if kind != "start":
            raise BrokenStream(f"{kind} before start")
        if self._start is not None:
            raise BrokenStream("a second start")
        self._start = event.start

    def _take(self, fields: ExtraFields) -> bool:
        """Add the fields of the answer as a whole; return whether there are others."""
        if fields.HasField("answer"):
            if not self._extra_fields and self._start is not None:
                _add(self._extra_fields, self._start.extra)
            _add(self._extra_fields, fields.answer)
        return fields.HasField("choice") or fields.HasField("message")

    def response(self) -> GenerateResponse:
        """Return the answer, without `usage` if none was added.

        Raises:
            BrokenStream: the answer is incomplete.
        """
        whole = self._whole
        if whole is not None:
            return whole
        start = self._start
        if start is None:
            raise BrokenStream("no start")
        choices = self._choices
        # Numbers are distinct and never negative.
        if not choices or max(choices) >= len(choices):
            raise BrokenStream(f"choices {sorted(choices)}: not numbered from 0")
        response = GenerateResponse(id=start.id, model=start.model)
        for number in range(len(choices)):
            response.choices.append(choices[number].whole())
        if start.HasField("route"):
            response.route.CopyFrom(start.route)
        if self._extra_fields:
            self._extra_fields.put_into(response.extra)
        elif start.HasField("extra"):
            response.extra.CopyFrom(start.extra)
        if self._usage is not None:
            response.usage.CopyFrom(self._usage.usage)
        return response


class _Choice:
    """One choice: its finished blocks, and the pieces of the open block."""

    __slots__ = (
        *("_answer", "_deltas", "_extra_fields", "_has_ended", "_kind"),
        *("_last", "_logprobs", "_message", "_number", "_pieces", "_signature"),
    )

    def __init__(self, number: int) -> None:
        self._number = number
        self._answer = Choice()
        self._has_ended = False
        self._last = -1  # number of the last block
        # The open block; without a kind none is open.
        self._kind: str | None = None
        self._pieces: list[str] = []
        self._signature: list[str] = []
        self._deltas: list[Opaque] = []
        self._logprobs: list[bytes] = []
        self._extra_fields = UnknownFields(joins=False)  # of the choice
        self._message = UnknownFields(joins=True)

    def add(self, kind: str, event: Event) -> None:
        """Add an event of this choice."""
        if self._has_ended:
            raise self._broken(kind, event, "after finish")
        if logprobs := event.logprobs:
            self._logprobs.append(logprobs)
        if kind in _BLOCK_OF_DELTA:
            self._delta(kind, event)
        elif kind == "block_start":
            self._open(event)
        elif kind == "block_stop":
            self._check_open(kind, event)
            self._close()
        elif kind == "finish":
            if self._kind is not None:
                raise self._broken(kind, event, "while a block is open")
            finish = self._answer.finish
            finish.CopyFrom(event.finish)
            if self._extra_fields:
                _add(self._extra_fields, finish.extra)
                self._extra_fields.put_into(finish.extra)
            self._has_ended = True
        elif kind == "opaque":
            self._check_open(kind, event)
            self._deltas.append(event.opaque)
        elif kind == "citation":
            self._check_open(kind, event)
            self._answer.blocks[-1].citations.append(event.citation)
        elif kind == "extra_fields":
            _add(self._extra_fields, event.extra_fields.choice)
            _add(self._message, event.extra_fields.message)
        else:
            raise BrokenStream(f"{kind} beside other events")

    def whole(self) -> Choice:
        """Return the choice, once it has finished."""
        if not self._has_ended:
            raise BrokenStream(f"choice {self._number}: no finish")
        self._answer.logprobs = _merge_logprobs(self._logprobs)
        if self._message:
            self._message.put_into(self._answer.extra)
        return self._answer

    def _delta(self, kind: str, event: Event) -> None:
        self._check_open(kind, event)
        if self._kind != _BLOCK_OF_DELTA[kind] and (kind, self._kind) not in _OTHER_CALLS:
            raise self._broken(kind, event, f"in a block of kind {self._kind}")
        pieces = self._signature if kind == "signature" else self._pieces
        keep(pieces, getattr(event, kind))

    def _open(self, event: Event) -> None:
        if self._kind is not None:
            raise self._broken("block_start", event, "while a block is open")
        if event.block != self._last + 1:
            raise self._broken("block_start", event, "out of its turn")
        block = event.block_start
        kind = block.WhichOneof("kind")
        if kind is None:
            raise self._broken("block_start", event, "without a kind")
        self._kind = kind
        self._last += 1
        self._answer.blocks.append(block)

    def _close(self) -> None:
        kind, self._kind = self._kind, None
        if self._pieces or self._signature or self._deltas:
            self._fill(kind, self._answer.blocks[-1])
            self._pieces, self._signature, self._deltas = [], [], []

    def _fill(self, kind: str | None, block: Block) -> None:
        text = "".join(self._pieces)
        if kind == "text":
            block.text += text
        elif kind == "refusal":
            block.refusal += text
        elif kind == "tool_use":
            block.tool_use.input += text
        elif kind == "server_tool_use":
            block.server_tool_use.input += text
        elif kind == "thinking":
            block.thinking.text += text
            block.thinking.signature += "".join(self._signature)
        arguments = text if kind == "opaque" else ""
        if self._deltas or arguments:
            holder = block.opaque if kind == "opaque" else block.extra
            _fold_deltas(holder, self._deltas, arguments)

    def _check_open(self, kind: str, event: Event) -> None:
        if self._kind is None:
            raise self._broken(kind, event, "outside of any block")
        if event.block != self._last:
            raise self._broken(kind, event, f"while block {self._last} is open")

    def _broken(self, kind: str, event: Event, how: str) -> BrokenStream:
        return BrokenStream(f"choice {self._number}: {kind} of block {event.block} {how}")


def _add(fields: UnknownFields, part: Opaque) -> None:
    try:
        fields.add(part)
    except ValueError as error:
        raise BrokenStream("fields that are no JSON object") from error


def _merge_logprobs(pieces: Sequence[bytes]) -> bytes:
    """Join log probabilities by concatenating their lists (`content`, `refusal`).

    List items stay serialized: as objects they would take many times the memory.
    """
    if len(pieces) < 2:
        return pieces[0] if pieces else b""
    merged: dict[str, Any] = {}
    lists: dict[str, list[bytes]] = {}
    for piece in pieces:
        for key, value in _object(piece).items():
            if isinstance(value, list):
                merged[key] = None
                lists.setdefault(key, []).append(orjson.dumps(value)[1:-1])
            elif value is not None or key not in merged:
                lists.pop(key, None)
                merged[key] = value
    for key, items in lists.items():
        merged[key] = orjson.Fragment(b"[%b]" % b",".join(filter(None, items)))
    return orjson.dumps(merged)


def _fold_deltas(holder: Opaque, deltas: Sequence[Opaque], arguments: str) -> None:
    """Merge opaque deltas into the JSON of an opaque block, or into the `extra` of another block.

    Anthropic's citations are appended to the list `citations`, and its partial JSON makes
    the block's `input`. In any other delta texts and lists are appended to the field of
    the same name, and other values replace it. `type` names the delta, not the block, and
    is omitted.
    """
    dialect = deltas[0].dialect if deltas and not holder.json else holder.dialect
    content: dict[str, Any] = _object(holder.json) if holder.json else {}
    texts: dict[str, list[str]] = {}
    partial = [arguments] if arguments else []
    for delta in deltas:
        if delta.dialect != dialect:
            raise BrokenStream("deltas of two dialects in one block")
        fields = _object(delta.json)
        name = fields.pop("type", None)
        if name == "citations_delta":
            _merge(content, {"citations": [fields.get("citation")]})
        elif name == "input_json_delta":
            partial.append(str(fields.get("partial_json", "")))
        else:
            fields.pop(_SAID.get(name, ""), None)
            for key in [key for key, value in fields.items() if isinstance(value, str)]:
                texts.setdefault(key, []).append(fields.pop(key))
            _merge(content, fields)
    for key, pieces in texts.items():
        before = content.get(key)
        content[key] = (before if isinstance(before, str) else "") + "".join(pieces)
    if partial:
        content["input"] = _arguments("".join(partial))
    holder.dialect = dialect
    holder.json = orjson.dumps(content)


def _merge(into: dict[str, Any], fields: dict[str, Any]) -> None:
    for key, value in fields.items():
        before = into.get(key)
        if isinstance(before, list) and isinstance(value, list):
            before.extend(value)
        elif value is not None or key not in into:
            into[key] = value


def _object(json: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(json)
    except orjson.JSONDecodeError as error:
        raise BrokenStream("opaque bytes that are not JSON") from error
    if not isinstance(value, dict):
        raise BrokenStream("opaque JSON that is not an object")
    return value


def _arguments(text: str) -> Any:
    # A model may write invalid JSON, which is kept as text.
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def whole_of(batches: Sequence[Sequence[Event]]) -> GenerateResponse:
    """Return the answer that batches of events make up; see `Accumulator`.

    Raises:
        BrokenStream: the events are not those of a complete answer.
    """
    if len(batches) == 1 and len(batches[0]) == 1:
        (event,) = batches[0]
        if event.WhichOneof("kind") == "whole":
            return event.whole  # it may be large: no copy
    accumulator = Accumulator()
    for batch in batches:
        accumulator.add(batch)
    return accumulator.response()


def events_of(response: GenerateResponse) -> list[Event]:
    """Return a whole answer as one batch of events, the inverse of `whole_of`.

    Texts are deltas, as in a stream. Usage follows the start, as writers need it at the
    head. Log probabilities are in the first delta of their choice, or in its `finish` if
    it has no deltas.
    """
    start = Start(id=response.id, model=response.model)
    if response.HasField("route"):
        start.route.CopyFrom(response.route)
    if response.HasField("extra"):
        start.extra.CopyFrom(response.extra)
    events = [Event(start=start)]
    if response.HasField("usage"):
        events.append(Event(usage=response.usage))
    for number, choice in enumerate(response.choices):
        first = len(events)
        for index, block in enumerate(choice.blocks):
            events += _block_events(number, index, block)
        if choice.HasField("extra"):
            events.append(Event(choice=number, extra_fields=ExtraFields(message=choice.extra)))
        events.append(Event(choice=number, finish=choice.finish))
        if choice.logprobs:
            spoken = (e for e in events[first:] if e.WhichOneof("kind") in _BLOCK_OF_DELTA)
            next(spoken, events[-1]).logprobs = choice.logprobs
    return events


def _block_events(choice: int, index: int, block: Block) -> list[Event]:
    begun = Block()
    begun.CopyFrom(block)
    begun.ClearField("citations")
    deltas: dict[str, str] = {}
    match block.WhichOneof("kind"):
        case "text":
            begun.text = ""
            deltas = {"text": block.text}
        case "refusal":
            begun.refusal = ""
            deltas = {"refusal": block.refusal}
        case "thinking":
            begun.thinking.CopyFrom(Thinking(field=block.thinking.field))
            deltas = {"thinking": block.thinking.text, "signature": block.thinking.signature}
        case "tool_use":
            call = block.tool_use
            begun.tool_use.CopyFrom(ToolUse(id=call.id, name=call.name, freeform=call.freeform))
            deltas = {"input": call.input}
        case "server_tool_use":
            call = block.server_tool_use
            begun.server_tool_use.CopyFrom(ToolUse(id=call.id, name=call.name))
            deltas = {"input": call.input}
    events = [Event(choice=choice, block=index, block_start=begun)]
    for kind, piece in deltas.items():
        if piece:
            event = Event(choice=choice, block=index)
            setattr(event, kind, piece)
            events.append(event)
    events += (Event(choice=choice, block=index, citation=one) for one in block.citations)
    events.append(Event(choice=choice, block=index, block_stop=BlockStop()))
    return events

"""Parse Anthropic's answers, whole or streamed, into canonical events.

Both share the parsing of blocks, usage and the end, so that a whole answer and its stream have the
same content.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Opaque
from gateway.inference.v1.inference_pb2 import BlockStop, Event, GenerateResponse
from services.inference.providers.anthropic.carried import Translation, with_citations
from services.inference.providers.anthropic.parts import (
    OF_THE_END,
    Counts,
    FailedAnswerError,
    Json,
    MalformedError,
    an_object,
    block_of,
    finish_of,
    opaque,
    start_of,
    text_of,
)
from services.inference.providers.bounds import Bounds
from services.inference.providers.delta_templates import DeltaTemplates, delta_of
from services.inference.providers.failures import broken_answer, cut_off, failed_answer
from services.inference.providers.protocols import ErrorFactory
from services.inference.providers.sse import ServerSentEvent, read_event
from services.inference.request.thinking import KINDS
from services.inference.stream.accumulator import events_of
from services.inference.stream.patience import has_content

# By delta type: the kind of its block, and the field with the text.
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
# Deltas that begin a block if none is open.
_IMPLIED = frozenset({"text_delta", "thinking_delta"})
# By kind of streamed block: the field of its delta events.
_KIND_OF_DELTA = {"text": "text", "thinking": "thinking", "tool_use": "input"}
# Known fields by event type.
_FIELDS = {
    "message_start": frozenset({"type", "message"}),
    "content_block_start": frozenset({"type", "index", "content_block"}),
    "content_block_delta": frozenset({"type", "index", "delta"}),
    "content_block_stop": frozenset({"type", "index"}),
    "message_delta": frozenset({"type", "delta", "usage"}),
    "message_stop": frozenset({"type"}),
}
# Known fields of `message_delta`'s `delta`.
_OF_DELTA = frozenset({"stop_reason", "stop_sequence", "stop_details", "container"})


def events_from_whole(
    message: Json, errors: ErrorFactory, *, translates: bool = False, as_one: bool = False
) -> list[Event]:
    """Return the events of a whole answer.

    Args:
        message: the body of the response.
        errors: creates errors from the provider's error objects.
        translates: whether the caller's dialect is another one.
        as_one: whether to return one `whole` event, unless the answer contains thinking.

    Raises:
        UpstreamError: the body is not a message, or an incomplete one.
    """
    event = Event()
    answer = event.whole
    try:
        _read_whole(message, answer, Bounds(errors.name, errors.limits), translates)
    except MalformedError as error:
        raise broken_answer(errors.name, f"returned a message with an invalid `{error}`") from error
    except FailedAnswerError as error:
        raise failed_answer(errors.name, str(error)) from error
    thinks = any(block.WhichOneof("kind") in KINDS for block in answer.choices[0].blocks)
    return [event] if as_one and not thinks else events_of(answer)


def _read_whole(message: Json, answer: GenerateResponse, bounds: Bounds, translates: bool) -> None:
    start = start_of(message, but=OF_THE_END)
    answer.id, answer.model = start.id, start.model
    if start.HasField("extra"):
        answer.extra.CopyFrom(start.extra)
    content = message.get("content")
    if not isinstance(content, list):
        raise MalformedError("content")
    choice = answer.choices.add()
    translation = Translation() if translates else None
    call_ids: set[str] = set()
    for raw in content:
        bounds.part()
        fields = an_object(raw, "content")
        block = block_of(fields) if translation is None else with_citations(fields)
        if translation is not None:
            translation.begin(block, fields["type"])
        if block.HasField("tool_use"):
            _rename(block, call_ids)
            block.tool_use.input = block.tool_use.input or "{}"
        choice.blocks.append(block)
    if translation is not None and (last := translation.last_block(message.get("stop_details"))):
        choice.blocks.append(last)
    if not message.get("stop_reason"):
        raise MalformedError("stop_reason")
    end = {name: message[name] for name in OF_THE_END if message.get(name) is not None}
    counts = Counts()
    counts.add(message)
    answer.usage.CopyFrom(counts.usage())
    choice.finish.CopyFrom(finish_of(message, end))
    if translation is not None:
        translation.end(choice.finish)


class StreamReader:
    """Parses the server-sent events of one answer.

    Attributes:
        ended: whether the provider has sent its end event.
        has_content: whether any content has been received.
    """

    def __init__(self, errors: ErrorFactory, *, translates: bool = False) -> None:
        """Create a reader.

        Args:
            errors: creates errors from the provider's error objects.
            translates: whether the caller's dialect is another one.
        """
        self.ended = self.has_content = False
        self._errors = errors
        self._translation = Translation() if translates else None
        self._bounds = Bounds(errors.name, errors.limits)
        self._counts = Counts()
        self._templates = DeltaTemplates(_extract_delta)
        self._started = self._finished = False
        # The open block: its kind, the provider's index, whether it has arguments.
        self._kind = ""
        self._index: object = None
        self._indices: set[object] = set()  # of all blocks
        self._has_input = False
        self._input = ""
        self._call_ids: set[str] = set()
        self._number = -1
        self._early: list[Event] = []  # unknown events before the start of the answer

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete, so that only the end event can follow."""
        return self._finished

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Parse server-sent events; append the resulting events to `out`, none after the end.

        Raises:
            UpstreamError: an event reports an error, or cannot be parsed; earlier events are in
                `out`.
        """
        templates, at, already = self._templates, 0, len(out)
        while at < len(text) and not self.ended:
            pieces, at = templates.repeats(text, at)
            if pieces:
                kind = _KIND_OF_DELTA[self._kind]
                out.append(delta_of(0, self._number, kind, pieces))
                if self._translation is not None:
                    self._translation.say(out[-1].text)
                continue
            began = at
            sent, at = read_event(text, at)
            if sent is not None:
                templates.has_learnt = False
                known_events = len(out)
                self._take(sent, out)
                if len(out) > known_events:
                    self._learn(text[began:at], out[-1])
        self.has_content = self.has_content or has_content(out[already:])

    def _take(self, sent: ServerSentEvent, out: list[Event]) -> None:
        try:
            self._read(sent, out)
        except MalformedError as error:
            raise broken_answer(
                self._errors.name, f"streamed an event with an invalid `{error}`", sent.data
            ) from error
        except FailedAnswerError as error:
            raise failed_answer(self._errors.name, str(error)) from error

    def _learn(self, sent: bytes, event: Event) -> None:
        """Learn to recognise server-sent events that differ from this one only in their text."""
        if text := event.text or event.thinking or event.input:
            self._templates.learn(sent, text)

    def read_whole(self, message: Json, out: list[Event]) -> None:
        """Append to `out` the events of a whole answer; see `events_from_whole`."""
        out += events_from_whole(message, self._errors, translates=self._translation is not None)

    def end(self, out: list[Event]) -> None:
        """Handle the end of the stream.

        Raises:
            UpstreamError: the end is premature. An answer is complete with its stop reason, even if
                the end event is missing.
        """
        if not self._finished:
            raise cut_off(self._errors.name)

    def _read(self, sent: ServerSentEvent, events: list[Event]) -> None:
        fields = an_object(self._bounds.parse(sent.data), "data")
        kind = fields.get("type", sent.event)
        if kind == "error":
            raise self._errors.in_band(sent.data)
        if not isinstance(kind, str):
            raise MalformedError("type")
        reader = _READERS.get(kind)
        if reader is None:
            if kind != "ping" or fields.keys() - {"type"}:
                self._unknown(fields, kind, events)
            return
        if not self._started and kind != "message_start":
            raise MalformedError("type")
        at = len(events)
        reader(self, fields, events)
        if fields.keys() - _FIELDS[kind] and kind != "message_delta":
            beside = Event(unknown=self._beside(fields, kind))
            # Unknown fields precede their event, except that the start must come first.
            events.insert(at + (kind == "message_start"), beside)

    def _beside(self, event: Json, kind: str) -> Opaque:
        """Return the unknown fields of a known event."""
        fields = {name: value for name, value in event.items() if name not in _FIELDS[kind]}
        fields["type"] = kind
        # Fields of block events are sent with the next event; others are held, and bounded.
        waits = not (self.has_content and kind.startswith("content_block"))
        return self._kept(fields) if waits else opaque(fields)

    def _unknown(self, event: Json, kind: str, events: list[Event]) -> None:
        """Add an event of an unknown type: of a newer API version, or specific to this server."""
        fields = {**event, "type": kind}
        # Before the first content, events are held.
        unknown = opaque(fields) if self.has_content else self._kept(fields)
        (events if self._started else self._early).append(Event(unknown=unknown))

    def _message_start(self, event: Json, events: list[Event]) -> None:
        if self._started:
            raise MalformedError("type")
        self._started = True
        message = an_object(event.get("message"), "message")
        self._counts.add(message)
        events.append(Event(start=start_of(message)))
        events.append(Event(usage=self._counts.usage()))
        events += self._early
        self._early.clear()

    def _block_start(self, event: Json, events: list[Event]) -> None:
        if self._finished:
            raise MalformedError("type")
        self._close_block(events)
        self._bounds.part()
        block = block_of(an_object(event.get("content_block"), "content_block"))
        self._kind = block.WhichOneof("kind") or ""
        self._index = event.get("index")
        if not isinstance(self._index, int | None):
            raise MalformedError("index")
        self._indices.add(self._index)
        self._number += 1
        if self._translation is not None:
            self._translation.begin(block, event["content_block"]["type"])
        self._has_input = False
        if self._kind == "tool_use":
            _rename(block, self._call_ids)
            # The whole input is held, as deltas may repeat it.
            self._input, block.tool_use.input = block.tool_use.input, ""
        events.append(Event(block=self._number, block_start=block))

    def _block_delta(self, event: Json, events: list[Event]) -> None:
        delta = an_object(event.get("delta"), "delta")
        kind = delta.get("type")
        if not isinstance(kind, str):
            raise MalformedError("delta.type")
        if not self._kind and kind in _IMPLIED:
            # Some servers do not begin their blocks of text.
            block = {"type": _DELTAS[kind][0], _DELTAS[kind][1]: ""}
            self._block_start({"index": event.get("index"), "content_block": block}, events)
        if not self._is_of_open_block(event):
            raise MalformedError("index")
        translation = self._translation
        if translation is not None and self._kind == "text" and translation.takes_citation(delta):
            self._kept(delta)
            return
        if self._kind == "opaque" or kind not in _DELTAS:
            # Clients join the texts of known deltas whatever the block is.
            if kind in _DELTAS and not isinstance(delta.get(_DELTAS[kind][1]), str):
                raise MalformedError("delta")
            events.append(Event(block=self._number, opaque=self._kept(delta)))
            return
        owner, field = _DELTAS[kind]
        if owner != self._kind:
            raise MalformedError("delta.type")
        text = text_of(delta, field)
        if text or event.keys() - _FIELDS["content_block_delta"]:
            self._say(field, text, events)
        if len(delta) > 2 and field in ("text", "thinking"):
            # Unknown fields of a delta whose text has been added above.
            events.append(Event(block=self._number, opaque=self._kept({**delta, field: ""})))

    def _say(self, field: str, text: str, events: list[Event]) -> None:
        if field == "text":
            if self._translation is not None:
                self._translation.say(text)
            events.append(Event(block=self._number, text=text))
        elif field == "thinking":
            events.append(Event(block=self._number, thinking=text))
        elif field == "signature":
            events.append(Event(block=self._number, signature=text))
        else:
            self._has_input = self._has_input or bool(text)
            events.append(Event(block=self._number, input=text))

    def _kept(self, fields: Json) -> Opaque:
        """Return the JSON of a delta or event that is held until the answer is complete."""
        try:
            kept = self._bounds.keep_delta(fields)
        except ValueError as error:
            raise MalformedError("delta") from error
        return Opaque(dialect=conversation_pb2.DIALECT_ANTHROPIC, json=kept)

    def _block_stop(self, event: Json, events: list[Event]) -> None:
        if self._is_of_open_block(event):
            self._close_block(events)

    def _is_of_open_block(self, event: Json) -> bool:
        """Return whether an event is of the open block.

        Anthropic itself has numbered the deltas of a block otherwise than its start. A number of no
        block is therefore that of the open one, and the end of no block, as some servers send it,
        has no effect.
        """
        index = event.get("index")
        if not isinstance(index, int | None):
            raise MalformedError("index")
        return bool(self._kind) and (index == self._index or index not in self._indices)

    def _close_block(self, events: list[Event]) -> None:
        if not self._kind:
            return
        if self._kind == "tool_use" and not self._has_input:
            # A call without arguments has no deltas, but other dialects need valid JSON.
            events.append(Event(block=self._number, input=self._input or "{}"))
        if self._translation is not None:
            pages = self._translation.end_text()
            events += [Event(block=self._number, citation=page) for page in pages]
        events.append(Event(block=self._number, block_stop=BlockStop()))
        self._kind = ""

    def _message_delta(self, event: Json, events: list[Event]) -> None:
        delta = an_object(event.get("delta"), "delta")
        beside = {
            name: value for name, value in event.items() if name not in _FIELDS["message_delta"]
        }
        inside = {name: value for name, value in delta.items() if name not in _OF_DELTA}
        finish = None
        if delta.get("stop_reason") and not self._finished:
            finish = finish_of(delta, beside | delta)
            if self._translation is not None:
                self._translation.end(finish)
            beside.clear()
            self._close_block(events)
            if self._translation is not None:
                self._add_last(self._translation.last_block(delta.get("stop_details")), events)
        if beside or inside:
            # A whole answer cannot represent their position, or that they came later.
            within = {"delta": inside} if inside else {}
            fields = {**beside, **within, "type": "message_delta"}
            events.append(Event(unknown=self._kept(fields)))
        # Anthropic's documentation once had the usage in the delta, and some servers follow it.
        holder = event if event.get("usage") is not None else delta
        if holder.get("usage") is not None:
            self._counts.add(holder)
            events.append(Event(usage=self._counts.usage()))
        if finish is not None:
            self._finished = True
            events.append(Event(finish=finish))

    def _add_last(self, block: Block | None, events: list[Event]) -> None:
        if block is not None:
            self._number += 1
            events.append(Event(block=self._number, block_start=block))
            events.append(Event(block=self._number, block_stop=BlockStop()))

    def _message_stop(self, event: Json, events: list[Event]) -> None:
        if not self._finished:
            raise MalformedError("stop_reason")
        self.ended = True


# Unbound functions: bound methods in each reader would form a reference cycle.
_READERS: Mapping[object, Callable[[StreamReader, Json, list[Event]], None]] = {
    "message_start": StreamReader._message_start,
    "content_block_start": StreamReader._block_start,
    "content_block_delta": StreamReader._block_delta,
    "content_block_stop": StreamReader._block_stop,
    "message_delta": StreamReader._message_delta,
    "message_stop": StreamReader._message_stop,
}


def _rename(block: Block, call_ids: set[str]) -> None:
    """Replace the id of a call if an earlier one has the same; add the id to `call_ids`."""
    use = block.tool_use
    if use.id in call_ids:
        use.id = f"{use.id}_{len(call_ids)}"
    call_ids.add(use.id)


def _extract_delta(event: Any) -> str | None:
    """Return the string that the event's delta adds; see `ExtractDelta`."""
    match event:
        case {"delta": {"type": str(kind), **fields}, **rest} if (
            kind in _DELTAS and rest.keys() <= _FIELDS["content_block_delta"]
        ):
            delta = fields.get(_DELTAS[kind][1])
            return delta if isinstance(delta, str) else None
    return None

"""Streams of OpenAI's responses for callers of the same dialect, passed on unchanged. Pure.

Only what the rest of the gateway needs is parsed: start and end, texts, usage and errors. Only
response objects may be rewritten; see `response_objects`.
"""

import re
from collections.abc import Iterable
from typing import Any, Literal

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Opaque
from gateway.inference.v1.inference_pb2 import Event
from services.common.ids import IdGenerator
from services.inference.providers.base import Call
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai_responses.event_types import (
    DELTAS,
    ENDS,
    MALFORMED,
    SILENT,
    TextKind,
    check_event,
    failure_of,
)
from services.inference.providers.openai_responses.events import events_from_whole
from services.inference.providers.openai_responses.output import (
    CALLS,
    KINDS,
    finish_of,
    text_of,
)
from services.inference.providers.openai_responses.output_items import HANDLERS
from services.inference.providers.openai_responses.reader import EventReader
from services.inference.providers.openai_responses.response_objects import (
    check_object,
    read_object,
    without_state,
)
from services.inference.providers.openai_responses.usage import read_usage
from services.inference.providers.protocols import ErrorFactory
from services.inference.providers.sse import BLANK, read_event

_WITH_RESPONSE = SILENT | ENDS
_ITEM_ADDED, _ITEM_DONE = "response.output_item.added", "response.output_item.done"
# Events that announce texts, before any text.
_ANNOUNCEMENTS = frozenset({"response.content_part.added", "response.reasoning_summary_part.added"})
_SPOKEN = ("message", "reasoning")
# The start of a server-sent event as OpenAI serializes it: its type, the offset of its data, and
# its number. The end is searched separately: to match the rest would take several steps per byte.
_USUAL = re.compile(
    rb"event: (response\.[a-z_.]+)\ndata: "
    rb'()\{"type":"\1","sequence_number":(0|[1-9]\d{0,14}),'
)
# Types of events that may be combined: those that are parts of an answer.
_TOGETHER = {kind.encode(): kind for kind in HANDLERS}
# The start of an event that ends with a response object, as OpenAI serializes it.
_WITH_OBJECT = re.compile(
    rb'\{"type":"(response\.[a-z_]+)","sequence_number":(0|[1-9]\d{0,14}),"response":'
)
# The start of the `created` event, and of the event that repeats its response object.
_CREATED = b'{"type":"response.created","sequence_number":%d,'
_IN_PROGRESS = b'{"type":"response.in_progress","sequence_number":%d,'
_SSE = b"event: response.in_progress\ndata: %b\n\n"
_LF = b"\n"
# Placeholder in an event whose content is only in `native`.
_OWN = Opaque(dialect=DIALECT_RESPONSES, json=b"{}")


class NativeReader(EventReader):
    """Parses one stream and keeps the provider's own events.

    An event with a response object becomes one canonical event. Other events of a read, if
    serialized as by OpenAI, are combined into one canonical event with the text of their deltas;
    such a run ends with an output item.
    """

    def __init__(self, call: Call, errors: ErrorFactory, new_id: IdGenerator) -> None:
        super().__init__(call, errors, new_id)
        self._kind: TextKind = "text"  # of the last delta
        self._run = _Run()
        self._text = b""  # of the current read
        # The expected server-sent event after the creation, and its data to pass on.
        self._repeated = self._repeats = b""

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Parse server-sent events; append the resulting events to `out`.

        Raises:
            UpstreamError: an event reports an error, or cannot be parsed; earlier events are in
                `out`.
        """
        templates, at, size = self._templates, 0, len(text)
        self._text = text
        try:
            while at < size and not self.ended:
                if templates.has_learnt:
                    began = at
                    pieces, at = templates.repeats(text, at)
                    if pieces:
                        number = templates.number - len(pieces)
                        self._add(began, at, number, len(pieces), self._kind, out)
                        self._run.texts.append(orjson.loads(b'"%b"' % b"".join(pieces)))
                        continue
                if self._repeated and (after := self._after_repeated(text, at, out)):
                    at = after
                    continue
                usual = _USUAL.match(text, at)
                if usual is not None:
                    end = text.index(_LF, usual.end())
                    if text.startswith(_LF, end + 1):
                        templates.has_learnt = False
                        data, at = text[usual.start(2) : end], end + len(BLANK)
                        kind = _TOGETHER.get(usual[1]) if self._started else None
                        if kind is not None:
                            self._take(kind, data, usual, at, out)
                        else:
                            self._end_run(out)
                            self._take_alone(usual[1].decode(), data, out)
                        continue
                sent, at = read_event(text, at)
                self._end_run(out)
                if sent is not None:
                    templates.has_learnt = False
                    self._take_alone(sent.event, sent.data, out)
        finally:
            self._end_run(out)
            self._text = b""

    def read_whole(self, answer: Json, out: list[Event]) -> None:
        """Append to `out` the events of a whole answer, without native events."""
        out += events_from_whole(answer, self._call, self._errors, self._new_id)

    def _after_repeated(self, text: bytes, at: int, out: list[Event]) -> int:
        """Return the end of an event at `at` that repeats the creation, 0 if there is none."""
        repeated, self._repeated = self._repeated, b""
        if not text.startswith(repeated, at):
            return 0
        out.append(Event(unknown=_OWN, native=self._repeats))
        return at + len(repeated)

    def _take(
        self, kind: str, data: bytes, usual: re.Match[bytes], end: int, out: list[Event]
    ) -> None:
        """Parse an event that OpenAI serialized and that may be combined with others.

        Args:
            kind: the event's type.
            data: the event's data.
            usual: the match of the event's start.
            end: the event's end in the text of the read.
            out: a run that has ended is appended.
        """
        text = ""
        try:
            event = self._parsed(data)
            if self._bounds.is_mended:
                self._end_run(out)
                self._take_event(kind, event, data, out)
                return
            check_event(kind, event)
            if kind in DELTAS:
                text = text_of(event, "delta")
            has_content = _has_content(kind, event, text)
        except MALFORMED as error:
            raise self._broken("streamed a malformed event", data) from error
        if not self.has_content:
            self._note(has_content=has_content)
        begin, number = usual.start(), int(usual[3])
        if text:
            of_text = self._kind = DELTAS[kind]
            self._add(begin, end, number, 1, of_text, out)
            self._run.texts.append(text)
            if not event.get("logprobs"):
                self._templates.learn(self._text[begin:end], text)
            return
        self._add(begin, end, number, 1, "", out)
        if has_content:
            self._run.has_content = True
            if kind == _ITEM_DONE:
                self._bounds.part()  # the stream's writer keeps the item
                self._end_run(out)

    def _take_alone(self, name: str, data: bytes, out: list[Event]) -> None:
        """Parse an event that is not combined with others, from its type and its data."""
        try:
            head = _WITH_OBJECT.match(data)
            if head is not None and self._take_object(head, data, out):
                return
            self._take_event(name, self._parsed(data), data, out)
        except MALFORMED as error:
            raise self._broken("streamed a malformed event", data) from error

    def _take_event(self, name: str, event: Json, data: bytes, out: list[Event]) -> None:
        """Parse an event that is not combined with others, from its type and its parsed data."""
        try:
            kind = str(event.get("type", name))
            is_known = kind in HANDLERS
            if not (is_known and self._started) and (
                failure := failure_of(kind, event, data, self._errors)
            ):
                raise failure
            check_event(kind, event)
            text = text_of(event, "delta") if kind in DELTAS else ""
            has_content = is_known and _has_content(kind, event, text)
            self._note(has_content=has_content)
            known_events = len(out)
            if not self._started:
                out.append(self._start(event.get("response") or {}))
            native = orjson.dumps(event) if self._bounds.is_mended else data
            if kind in _WITH_RESPONSE:
                others = {name: value for name, value in event.items() if name != "response"}
                response = without_state(event["response"])
                native = orjson.dumps({"type": kind, **others, "response": response})
                if kind in ENDS:
                    check_object(event["response"])
                    status = kind.partition(".")[2]
                    self._finish({"status": status, **event["response"]}, out)
            elif kind == _ITEM_DONE:
                self._bounds.part()  # the stream's writer keeps the item
            if "type" not in event:
                native = orjson.dumps({"type": kind, **orjson.loads(native)})
            if has_content or len(out) == known_events:
                out.append(_event_of(DELTAS.get(kind, ""), text, has_content=has_content))
            out[known_events].native = native
        except MALFORMED as error:
            raise self._broken("streamed a malformed event", data) from error

    def _take_object(self, head: re.Match[bytes], data: bytes, out: list[Event]) -> bool:
        """Parse an event that ends with a response object, if the object is passed on unchanged.

        Return False otherwise, with no effect.
        """
        kind, json = head[1].decode(), data[head.end() : -1]
        if kind not in _WITH_RESPONSE or not data.endswith(b"}}"):
            return False
        self._bounds.check(json)
        response = read_object(json)
        if response is None or not response.is_stateless(json):
            return False
        counted = None
        if response.usage is not None:
            counted = Event()
            response.usage.counts().set_in(counted.usage)
        self._note(has_content=False)
        known_events = len(out)
        if not self._started:
            model = response.model or self._call.target.upstream
            out.append(self._started_as(response.id or self._new_id("resp_"), model))
        if kind in ENDS:
            if counted is not None:
                out.append(counted)
            parsed = orjson.loads(json)
            check_object(parsed)
            outcome = {"status": response.status, "incomplete_details": response.incomplete_details}
            items = [(item["type"], item.get("content")) for item in parsed["output"]]
            out.append(_end_of(outcome, items))
            self.ended = True
        elif len(out) == known_events:
            out.append(Event(unknown=_OWN))
        out[known_events].native = data
        number = int(head[2])
        if data.startswith(begun := _CREATED % number):
            # A response in progress is the same as when it was created.
            self._repeats = _IN_PROGRESS % (number + 1) + data[len(begun) :]
            self._repeated = _SSE % self._repeats
        return True

    def _note(self, *, has_content: bool) -> None:
        """Record whether an event has content; events before the first content are counted."""
        if has_content:
            self.has_content = True
        elif not self.has_content:
            self._bounds.part()

    def _add(
        self,
        begin: int,
        end: int,
        number: int,
        count: int,
        kind: TextKind | Literal[""],
        out: list[Event],
    ) -> None:
        """Add events to the current run, or to a new one if they do not continue it.

        Args:
            begin: their start in the text of the read.
            end: their end.
            number: the number of the first event.
            count: the number of events.
            kind: the kind of their texts; "" without texts.
            out: a run that has ended is appended.
        """
        run = self._run
        if run.count and not (
            number == run.number + run.count and (not kind or run.kind in ("", kind))
        ):
            self._end_run(out)
            run = self._run
        if not run.count:
            run.begin, run.number = begin, number
        run.end = end
        run.count += count
        if kind:
            run.kind = kind

    def _end_run(self, out: list[Event]) -> None:
        """Append the canonical event of the current run, if there is one."""
        run = self._run
        if run.count:
            event = _event_of(run.kind, "".join(run.texts), has_content=run.has_content)
            event.native, event.native_count = self._text[run.begin : run.end], run.count
            event.native_number = run.number
            out.append(event)
            self._run = _Run()

    def _finish(self, response: Json, out: list[Event]) -> None:
        if usage := response.get("usage"):
            counted = Event()
            counted.usage.SetInParent()
            read_usage(usage, counted.usage)
            out.append(counted)
        output = response.get("output")
        items = output if isinstance(output, list) else ()
        out.append(_end_of(response, [(item["type"], item.get("content")) for item in items]))
        self.ended = True


class _Run:
    """Consecutive events of one read.

    Attributes:
        begin: their start in the text of the read.
        end: their end.
        number: the number of the first event.
        count: the number of events.
        kind: the kind of their texts; "" without texts.
        texts: the texts.
        has_content: whether any of them has content.
    """

    __slots__ = ("begin", "count", "end", "has_content", "kind", "number", "texts")

    def __init__(self) -> None:
        self.begin = self.end = self.number = self.count = 0
        self.kind: TextKind | Literal[""] = ""
        self.texts: list[str] = []
        self.has_content = False


def _has_content(kind: str, event: Json, text: str) -> bool:
    """Return whether an event of a known type has content.

    Raises:
        LookupError, TypeError: the item is missing or malformed.
    """
    if kind in DELTAS:
        return text != ""
    if kind in (_ITEM_ADDED, _ITEM_DONE):
        of_item = event["item"]["type"]
        if not isinstance(of_item, str) or not of_item:
            raise TypeError("no type")
        return kind == _ITEM_DONE or of_item not in _SPOKEN
    return kind not in _ANNOUNCEMENTS


def _end_of(response: Json, items: Iterable[tuple[object, Any]]) -> Event:
    """Return the final event of an answer.

    Args:
        response: the response object; its `output` is not used.
        items: types and contents of the output items.
    """
    kinds = set[str]()
    for kind, content in items:
        if kind in CALLS:
            kinds.add("tool_use")
        elif kind == "message":
            kinds |= {KINDS.get(part.get("type"), "") for part in content or ()}
    event = Event()
    event.finish.reason, _ = finish_of(response, kinds)
    return event


def _event_of(kind: TextKind | Literal[""], text: str, *, has_content: bool) -> Event:
    """Return an event with a text, or one whose content is only in the provider's event."""
    event = Event()
    if kind and text:
        setattr(event, kind, text)
    elif has_content:
        event.opaque.CopyFrom(_OWN)
    else:
        event.unknown.CopyFrom(_OWN)
    return event

"""Answers of OpenAI's responses for callers of the same dialect, who get them as they are. Pure.

Of what they say is read what others have to know: how they begin and end, their texts and usage,
and failures. Response objects alone may be written anew; see `response_objects`.
"""

import re
from typing import Literal

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Opaque
from gateway.inference.v1.inference_pb2 import Event
from services.common.ids import IdGenerator
from services.inference.providers.base import Call
from services.inference.providers.openai_responses.event_types import (
    DELTAS,
    ENDS,
    MALFORMED,
    SILENT,
    TextKind,
    failure_of,
)
from services.inference.providers.openai_responses.output import (
    CALLS,
    KINDS,
    finish_of,
    text_of,
)
from services.inference.providers.openai_responses.output_items import HANDLERS
from services.inference.providers.openai_responses.reader import EventReader
from services.inference.providers.openai_responses.response_objects import is_unkept, unkept
from services.inference.providers.openai_responses.usage import read_usage
from services.inference.providers.protocols import Failures
from services.inference.providers.request_fields import Json
from services.inference.providers.sse import BLANK, ServerSentEvent, read_event

_WITH_RESPONSE = SILENT | ENDS
_ITEM_ADDED, _ITEM_DONE = "response.output_item.added", "response.output_item.done"
# Events that announce texts, before any has come.
_ANNOUNCEMENTS = frozenset({"response.content_part.added", "response.reasoning_summary_part.added"})
_SPOKEN = ("message", "reasoning")
# How a server-sent event begins as OpenAI writes it; it ends with its second line.
_USUAL = re.compile(
    rb"event: (response\.[a-z_.]+)\ndata: "
    rb'(?=\{"type":"\1","sequence_number":(0|[1-9]\d{0,14}),)'
)
_LF = b"\n"
# Types of the events that may come together, those that hold parts of an answer.
_TOGETHER = {kind.encode(): kind for kind in HANDLERS if kind != _ITEM_DONE}
# How an event begins whose last member is a response object, as OpenAI writes it.
_WITH_OBJECT = re.compile(
    rb'\{"type":"(response\.[a-z_]+)","sequence_number":(0|[1-9]\d{0,14}),"response":'
)
# How the creation of a response begins, and the event that repeats its response object.
_CREATED = b'{"type":"response.created","sequence_number":%d,'
_IN_PROGRESS = b'{"type":"response.in_progress","sequence_number":%d,'
_SSE = b"event: response.in_progress\ndata: %b\n\n"
# What the provider's own event says is no text.
_OWN = Opaque(dialect=DIALECT_RESPONSES, json=b"{}")


class NativeReader(EventReader):
    """Reads one stream as the provider's own events.

    Events with a response object or a whole item come one by one. Others of a read that are written
    as OpenAI writes them come together, with the texts of their deltas.
    """

    def __init__(self, call: Call, upstream: Failures, new_id: IdGenerator) -> None:
        super().__init__(call, upstream, new_id)
        self._kind: TextKind = "text"  # of the last delta
        self._run = _Run()
        self._text = b""  # of the read
        # The text of the event that may follow the creation, and that event as it is handed on.
        self._repeated = self._repeats = b""

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Add to `out` the events that the text of server-sent events stands for, if any.

        Raises:
            UpstreamError: one tells an error, or cannot be read; what came before it is in `out`.
        """
        frames, at = self._frames, 0
        self._text = text
        try:
            while at < len(text) and not self.ended:
                began = at
                pieces, at = frames.repeats(text, at)
                if pieces:
                    number, said = frames.number - len(pieces), b'"%b"' % b"".join(pieces)
                    self._add(began, at, number, len(pieces), self._kind, out)
                    self._run.texts.append(orjson.loads(said))
                    continue
                if self._repeated and (after := self._after_repeated(text, at, out)):
                    at = after
                    continue
                usual = _USUAL.match(text, at) if self._started else None
                if usual is not None and (kind := _TOGETHER.get(usual[1])) is not None:
                    end = text.index(_LF, usual.end())
                    if text.startswith(_LF, end + 1):
                        frames.forget()
                        at = end + len(BLANK)
                        self._take(kind, text, usual, at, out)
                        continue
                sent, at = read_event(text, at)
                if sent is not None:
                    frames.forget()
                    self._end_run(out)
                    self._take_alone(sent, out)
        finally:
            self._end_run(out)
            self._text = b""

    def _after_repeated(self, text: bytes, at: int, out: list[Event]) -> int:
        """Return the end of an event that says what the creation said, 0 if none is at a place."""
        repeated, self._repeated = self._repeated, b""
        if not text.startswith(repeated, at):
            return 0
        out.append(Event(unknown=_OWN, native=self._repeats))
        return at + len(repeated)

    def _take(
        self, kind: str, text: bytes, usual: re.Match[bytes], end: int, out: list[Event]
    ) -> None:
        """Read an event of a text, up to its end, that may come together with others."""
        data = text[usual.end() : end - len(BLANK)]
        try:
            event = self._parsed(data)
            said = text_of(event, "delta") if kind in DELTAS else ""
            has_content = _has_content(kind, event, said)
        except MALFORMED as error:
            raise self._broken("streamed a malformed event", data) from error
        self._note(has_content=has_content)
        of_text = DELTAS[kind] if said else ""
        begin = usual.start()
        self._add(begin, end, int(usual[2]), 1, of_text, out)
        if of_text:
            self._kind = of_text
            self._run.texts.append(said)
            if not event.get("logprobs"):
                self._frames.learn(text[begin:end], said)
        elif has_content:
            self._run.has_content = True

    def _take_alone(self, sent: ServerSentEvent, out: list[Event]) -> None:
        """Read an event that comes alone."""
        name, data = sent
        try:
            head = _WITH_OBJECT.match(data)
            event = None if head is None else self._with_object(data, head)
            if event is None:
                event, head = self._parsed(data), None
            kind = str(event.get("type", name))
            is_known = kind in HANDLERS
            if not (is_known and self._started) and (
                failure := failure_of(kind, event, data, self._upstream)
            ):
                raise failure
            said = text_of(event, "delta") if kind in DELTAS else ""
            has_content = is_known and _has_content(kind, event, said)
            self._note(has_content=has_content)
            known = len(out)
            if not self._started:
                out.append(self._start(event.get("response") or {}))
            native = data
            if kind in _WITH_RESPONSE:
                native = self._handed_on(kind, event, data, head)
                if kind in ENDS:
                    status = kind.partition(".")[2]
                    self._finish({"status": status, **event["response"]}, out)
            elif kind == _ITEM_DONE:
                self._bounds.part()  # the writer keeps it
            if has_content or len(out) == known:
                out.append(_event_of(DELTAS.get(kind, ""), said, has_content=has_content))
            out[known].native = native
        except MALFORMED as error:
            raise self._broken("streamed a malformed event", data) from error

    def _with_object(self, data: bytes, head: re.Match[bytes]) -> Json | None:
        """Return an event of which a response object is all that follows a head, if it is one.

        The object is parsed alone, so that its bytes are what they seem to be.
        """
        if not data.endswith(b"}}"):
            return None
        response = self._bounds.parse(data[head.end() : -1])
        if not isinstance(response, dict):
            return None
        kind = head[1].decode()
        return {"type": kind, "sequence_number": int(head[2]), "response": response}

    def _note(self, *, has_content: bool) -> None:
        """Note whether an event holds some of the answer; before the first one others wait."""
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
        """Add events to the run, or to a new one.

        Args:
            begin: where they begin in the text of the read.
            end: where they end.
            number: of the first one.
            count: how many they are.
            kind: of their texts; "" without any.
            out: the run that has ended is added.
        """
        run = self._run
        if run.count and not (
            begin == run.end
            and number == run.number + run.count
            and (not kind or run.kind in ("", kind))
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
        """Add the event that the run stands for, if there is one."""
        run = self._run
        if run.count:
            event = _event_of(run.kind, "".join(run.texts), has_content=run.has_content)
            event.native, event.native_count = self._text[run.begin : run.end], run.count
            event.native_number = run.number
            out.append(event)
            self._run = _Run()

    def _handed_on(
        self, kind: str, event: Json, data: bytes, head: re.Match[bytes] | None
    ) -> bytes:
        """Return an event as it is handed on; it ends with a response object after its head."""
        response, number = event["response"], event.get("sequence_number")
        if head is None or not is_unkept(data, response, head.end()):
            others = {name: value for name, value in event.items() if name != "response"}
            data = orjson.dumps({"type": kind, **others, "response": unkept(response)})
        if type(number) is int and data.startswith(begun := _CREATED % number):
            # An answer in progress is as it was when it was created.
            self._repeats = _IN_PROGRESS % (number + 1) + data[len(begun) :]
            self._repeated = _SSE % self._repeats
        return data

    def _finish(self, response: Json, out: list[Event]) -> None:
        if usage := response.get("usage"):
            counted = Event()
            counted.usage.SetInParent()
            read_usage(usage, counted.usage)
            out.append(counted)
        event = Event()
        event.finish.reason, _ = finish_of(response, _kinds_of(response.get("output")))
        out.append(event)
        self.ended = True


class _Run:
    """Events of one read that stand beside each other, whose numbers follow each other.

    Attributes:
        begin: where they begin in the text of the read.
        end: where they end.
        number: of the first one.
        count: how many they are.
        kind: of their texts; "" without any.
        texts: the texts.
        has_content: whether they hold some of the answer.
    """

    __slots__ = ("begin", "count", "end", "has_content", "kind", "number", "texts")

    def __init__(self) -> None:
        self.begin = self.end = self.number = self.count = 0
        self.kind: TextKind | Literal[""] = ""
        self.texts: list[str] = []
        self.has_content = False


def _has_content(kind: str, event: Json, said: str) -> bool:
    """Return whether an event of a known type holds some of the answer.

    Raises:
        LookupError, TypeError: it has no item.
    """
    if kind in DELTAS:
        return said != ""
    if kind in (_ITEM_ADDED, _ITEM_DONE):
        of_item = event["item"]["type"]
        if not isinstance(of_item, str):
            raise TypeError("no type")
        return kind == _ITEM_DONE or of_item not in _SPOKEN
    return kind not in _ANNOUNCEMENTS


def _kinds_of(items: object) -> set[str]:
    """Return the kinds of blocks in output items that decide why an answer ended."""
    kinds = set[str]()
    for item in items if isinstance(items, list) else ():
        if item["type"] in CALLS:
            kinds.add("tool_use")
        elif item["type"] == "message":
            kinds |= {KINDS.get(part.get("type"), "") for part in item.get("content") or ()}
    return kinds


def _event_of(kind: TextKind | Literal[""], text: str, *, has_content: bool) -> Event:
    """Return an event of a text, or one whose content is in the provider's own."""
    event = Event()
    if kind and text:
        setattr(event, kind, text)
    elif has_content:
        event.opaque.CopyFrom(_OWN)
    else:
        event.unknown.CopyFrom(_OWN)
    return event

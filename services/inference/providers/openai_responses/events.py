"""Parse OpenAI's responses, streamed or whole, into canonical events. Pure.

A whole answer is parsed by the same reader as a stream: its items are treated as items that have
just ended. Streams for callers of the same dialect are parsed by `native_events`.
"""

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Opaque
from gateway.inference.v1.inference_pb2 import Event, ExtraFields
from services.common.ids import IdGenerator
from services.inference.providers.base import Call
from services.inference.providers.bounds import dump
from services.inference.providers.delta_templates import delta_of
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai_responses.event_types import (
    DELTAS,
    ENDS,
    MALFORMED,
    OVER,
    SILENT,
    failure_of,
)
from services.inference.providers.openai_responses.output import finish_of, opaque
from services.inference.providers.openai_responses.output_items import HANDLERS, OutputItems
from services.inference.providers.openai_responses.reader import EventReader
from services.inference.providers.openai_responses.response_objects import check_items
from services.inference.providers.openai_responses.usage import read_usage
from services.inference.providers.protocols import ErrorFactory
from services.inference.providers.sse import ServerSentEvent, read_event
from services.inference.stream.patience import has_content

# Fields of a response object that have a canonical counterpart, or that repeat the request; the
# gateway repeats those itself.
_NAMED = frozenset(
    {
        *("id", "object", "created_at", "completed_at", "model", "output", "usage", "status"),
        *("error", "incomplete_details", "input", "instructions", "tools", "previous_response_id"),
        *("conversation", "store", "background", "metadata", "user", "safety_identifier"),
        *("prompt", "prompt_cache_key"),
    }
)


class StreamReader(EventReader):
    """Parses one answer."""

    def __init__(self, call: Call, errors: ErrorFactory, new_id: IdGenerator) -> None:
        super().__init__(call, errors, new_id)
        self._items = OutputItems(self._bounds)
        self._last_delta = 0, "text"  # block and kind of the last delta
        self._reported: Json = {}  # the response's unknown fields, as last reported

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Parse server-sent events; append the resulting events to `out`.

        Raises:
            UpstreamError: an event reports an error, or cannot be parsed; earlier events are in
                `out`.
        """
        templates, at = self._templates, 0
        while at < len(text) and not self.ended:
            began = at
            pieces, at = templates.repeats(text, at)
            if pieces:
                out.append(self._more(pieces))
                continue
            sent, at = read_event(text, at)
            if sent is not None:
                templates.has_learnt = False
                known_events = len(out)
                kind = self._take(sent, out)
                if len(out) > known_events and kind in DELTAS:
                    self._learn(text[began:at], out[-1])

    def read_whole(self, response: Json, out: list[Event]) -> None:
        """Append to `out` the events of a whole answer.

        Raises:
            UpstreamError: the JSON is not a response, or an incomplete one.
        """
        try:
            if not isinstance(response.get("output"), list):
                raise self._broken("returned an answer without output")
            if response.get("status", OVER[0]) not in OVER:
                raise self._broken("returned an unfinished response")
            check_items(response["output"])
            out.append(self._start(response))
            self._finish(response, out)
        except MALFORMED as error:
            raise self._broken("returned a malformed answer") from error

    def _take(self, sent: ServerSentEvent, out: list[Event]) -> str:
        """Parse one server-sent event; return its type."""
        name, data = sent
        already = len(out)
        try:
            event = self._parsed(data)
            kind = str(event.get("type", name))
            self._read(event, kind, data, out)
        except MALFORMED as error:
            raise self._broken("streamed a malformed event", data) from error
        if not self.has_content:
            self.has_content = has_content(out[already:])
        return kind

    def _learn(self, text: bytes, event: Event) -> None:
        """Learn to recognise events that differ from this one only in their text and number."""
        delta = event.text or event.input or event.thinking or event.refusal
        if delta and not event.logprobs:
            self._last_delta = event.block, event.WhichOneof("kind") or "text"
            self._templates.learn(text, delta)

    def _more(self, pieces: list[bytes]) -> Event:
        """Return the event for recognised deltas, which continue the last one."""
        block, kind = self._last_delta
        if kind == "refusal":
            pieces = [b"".join(pieces)]
        return delta_of(0, block, kind, pieces)

    def _read(self, event: Json, kind: str, data: bytes, out: list[Event]) -> None:
        handler = HANDLERS.get(kind)
        if handler is not None and self._started:
            handler(self._items, event, out)
            return
        if failure := failure_of(kind, event, data, self._errors):
            raise failure
        if not self._started:
            out.append(self._start(event.get("response") or {}))
        if handler is not None:
            handler(self._items, event, out)
        elif kind in ENDS:
            self._finish({"status": kind.partition(".")[2], **event["response"]}, out)
        elif kind not in SILENT:
            unknown = dump({**event, "type": kind})
            if not self.has_content:
                self._bounds.part()  # held until the first content
            out.append(Event(unknown=Opaque(dialect=DIALECT_RESPONSES, json=unknown)))

    def _start(self, response: Json) -> Event:
        event = super()._start(response)
        if fields := self._changed(response):
            event.start.extra.CopyFrom(opaque(fields))
        return event

    def _changed(self, response: Json) -> Json:
        """Return the response's unknown fields that are new or changed."""
        reported = self._reported
        changed = {
            name: value
            for name, value in response.items()
            if name not in _NAMED and value is not None and reported.get(name) != value
        }
        reported |= changed
        return changed

    def _finish(self, response: Json, out: list[Event]) -> None:
        items = self._items
        items.end(response.get("output"), out)
        if fields := self._changed(response):
            out.append(Event(extra_fields=ExtraFields(answer=opaque(fields))))
        if items.message:
            out.append(Event(extra_fields=ExtraFields(message=opaque(items.message))))
        if usage := response.get("usage"):
            counted = Event()
            counted.usage.SetInParent()
            read_usage(usage, counted.usage)
            out.append(counted)
        reason, fields = finish_of(response, items.kinds)
        event = Event()
        event.finish.reason = reason
        if fields:
            event.finish.extra.CopyFrom(opaque(fields))
        out.append(event)
        self.ended = True


def events_from_whole(
    response: Json, call: Call, errors: ErrorFactory, new_id: IdGenerator
) -> list[Event]:
    """Return the events of a whole answer; see `StreamReader.read_whole`."""
    reader = StreamReader(call, errors, new_id)
    out: list[Event] = []
    reader.read_whole(response, out)
    return out

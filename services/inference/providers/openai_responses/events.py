"""OpenAI's responses, streamed or whole, as canonical events. Pure.

A whole answer goes through the same reader as a stream: its items are read as items that have
just ended. Streams for callers of the same dialect are read by `native_events`.
"""

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Opaque
from gateway.inference.v1.inference_pb2 import Event, Further
from services.common.ids import IdGenerator
from services.inference.providers.base import Call
from services.inference.providers.bounds import dump
from services.inference.providers.delta_templates import delta_of
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
from services.inference.providers.openai_responses.usage import read_usage
from services.inference.providers.protocols import Failures
from services.inference.providers.request_fields import Json
from services.inference.providers.sse import ServerSentEvent, read_event
from services.inference.stream.content import is_content

# Fields of a response object that have canonical names, or that repeat the request, whose fields
# the gateway repeats itself.
_NAMED = frozenset(
    {
        *("id", "object", "created_at", "completed_at", "model", "output", "usage", "status"),
        *("error", "incomplete_details", "input", "instructions", "tools", "previous_response_id"),
        *("conversation", "store", "background", "metadata", "user", "safety_identifier"),
        *("prompt", "prompt_cache_key"),
    }
)


class StreamReader(EventReader):
    """Reads one answer."""

    def __init__(self, call: Call, upstream: Failures, new_id: IdGenerator) -> None:
        super().__init__(call, upstream, new_id)
        self._items = OutputItems(self._bounds)
        self._said = 0, "text"  # block and kind of the last delta
        self._told: Json = {}  # of the response's fields without a canonical name

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Add to `out` the events that the text of server-sent events stands for, if any.

        Raises:
            UpstreamError: one tells an error, or cannot be read; what came before it is in `out`.
        """
        frames, at = self._frames, 0
        while at < len(text) and not self.ended:
            began = at
            pieces, at = frames.repeats(text, at)
            if pieces:
                out.append(self._more(pieces))
                continue
            sent, at = read_event(text, at)
            if sent is not None:
                frames.forget()
                known = len(out)
                kind = self._take(sent, out)
                if len(out) > known and kind in DELTAS:
                    self._learn(text[began:at], out[-1])

    def read_whole(self, response: Json, out: list[Event]) -> None:
        """Read a whole answer.

        Raises:
            UpstreamError: it is no response, or one that is not over.
        """
        try:
            if not isinstance(response.get("output"), list):
                raise self._broken("answered without an output")
            if response.get("status", OVER[0]) not in OVER:
                raise self._broken("answered a response that is not over")
            out.append(self._start(response))
            self._finish(response, out)
        except MALFORMED as error:
            raise self._broken("answered something malformed") from error

    def _take(self, sent: ServerSentEvent, out: list[Event]) -> str:
        """Read one server-sent event; return its type."""
        name, data = sent
        already = len(out)
        try:
            event = self._parsed(data)
            kind = str(event.get("type", name))
            self._read(event, kind, data, out)
        except MALFORMED as error:
            raise self._broken("streamed a malformed event", data) from error
        if not self.has_content:
            self.has_content = any(map(is_content, out[already:]))
        return kind

    def _learn(self, text: bytes, event: Event) -> None:
        """Learn to recognise events that differ from one in their text and number alone."""
        said = event.text or event.input or event.thinking or event.refusal
        if said and not event.logprobs:
            self._said = event.block, event.WhichOneof("kind") or "text"
            self._frames.learn(text, said)

    def _more(self, pieces: list[bytes]) -> Event:
        """Return the event of server-sent events that go on with what the last one said."""
        block, kind = self._said
        if kind == "refusal":
            pieces = [b"".join(pieces)]
        return delta_of(0, block, kind, pieces)

    def _read(self, event: Json, kind: str, data: bytes, out: list[Event]) -> None:
        handler = HANDLERS.get(kind)
        if handler is not None and self._started:
            handler(self._items, event, out)
            return
        if failure := failure_of(kind, event, data, self._upstream):
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
                self._bounds.part()  # it waits for content
            out.append(Event(unknown=Opaque(dialect=DIALECT_RESPONSES, json=unknown)))

    def _start(self, response: Json) -> Event:
        event = super()._start(response)
        if fields := self._changed(response):
            event.start.extra.CopyFrom(opaque(fields))
        return event

    def _changed(self, response: Json) -> Json:
        """Return the response's fields without a canonical name that say something new."""
        told = self._told
        changed = {
            name: value
            for name, value in response.items()
            if name not in _NAMED and value is not None and told.get(name) != value
        }
        told |= changed
        return changed

    def _finish(self, response: Json, out: list[Event]) -> None:
        items = self._items
        items.end(response.get("output"), out)
        if fields := self._changed(response):
            out.append(Event(further=Further(answer=opaque(fields))))
        if items.message:
            out.append(Event(further=Further(message=opaque(items.message))))
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
    response: Json, call: Call, upstream: Failures, new_id: IdGenerator
) -> list[Event]:
    """Return a whole answer as one batch of events; see `StreamReader.read_whole`."""
    reader = StreamReader(call, upstream, new_id)
    out: list[Event] = []
    reader.read_whole(response, out)
    return out

"""Streamed responses: server-sent events."""

from collections.abc import Callable, Iterable

import orjson

from facade.dialects.foreign_parts import note_on
from facade.dialects.google_code import Program, read_part
from facade.dialects.responses import output
from facade.dialects.responses.errors import error_event
from facade.dialects.responses.open_items import (
    OpenCall,
    OpenItem,
    OpenMessage,
    OpenProgram,
    OpenReasoning,
    OpenSearch,
    OpenWhole,
)
from facade.dialects.responses.output import COMPLETED, FAILED, IN_PROGRESS, INCOMPLETE
from facade.dialects.responses.passthrough import PassthroughEvents
from facade.dialects.responses.response import (
    failed_response,
    incomplete_reason,
    response_object,
)
from facade.dialects.responses.state import Echo
from facade.dialects.responses.unknown_fields import native_fields
from facade.dialects.responses.writer import EventWriter
from facade.dialects.stream_formats import EVENTS
from facade.dialects.validation import to_opaque
from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Block, Opaque, Usage
from gateway.inference.v1.inference_pb2 import Event, Finish, RouteInfo, Start
from services.common.errors import GatewayError, internal

_KEEPALIVE = b": keep-alive\n\n"
_TEXT_KINDS = ("text", "refusal")
_MOST_NAMED = 8  # parts that are named in place of an answer


class ResponseStream:
    """Encodes the events of one answer as a stream, a batch at a time.

    An item ends when the next one begins or the answer ends, as only then it is known whether it
    is complete.

    Args:
        response_id: the gateway's id.
        created: Unix seconds.
        echo: the echoed fields of the request.
        now: returns Unix seconds.

    Attributes:
        format: the format of the stream.
        route: the model that serves the answer, once known.
        usage: token usage so far.
        response: the response object, once the answer is queued or has ended.
    """

    format = EVENTS

    def __init__(
        self, response_id: str, created: int, echo: Echo, now: Callable[[], float]
    ) -> None:
        self._id = response_id
        self._created = created
        self._echo = echo
        self._now = now
        self.route = RouteInfo()
        self.usage = Usage()
        self.response = b""
        self._is_queued = False
        self._passthrough: PassthroughEvents | None = None
        self._start = Start()
        self._extra = Opaque()  # unknown fields of the answer
        self._finish: Finish | None = None
        self._writer = EventWriter()
        self._items: list[bytes] = []  # in order; b"" for an open item
        self._open: OpenItem | None = None  # the item of the block, and its index
        self._index = 0
        self._message: OpenMessage | None = None  # the open item, if it is a message
        self._searches: dict[str, OpenSearch] = {}
        self._unopened: Block | None = None  # a text that is empty so far
        self._hidden = False  # whether the block is not shown
        self._foreign: list[Block] = []  # blocks that are not shown, unless others are
        self._refused = False

    def queue(self, model: str) -> bytes:
        """Return the first events of an answer that is generated in the background.

        Args:
            model: the model's name in the request.
        """
        self._is_queued = True
        self._start.model = model
        self.response = self._begun("queued")
        for kind in ("created", "queued"):
            self._writer.write(f"response.{kind}", response=orjson.Fragment(self.response))
        return self._writer.take()

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""
        if self._passthrough is not None:
            self._pass_through(events, self._passthrough)
            return self._writer.take()
        for event in events:
            kind = event.WhichOneof("kind")
            if kind == "text" and not event.logprobs:
                # The common case.
                if self._unopened is not None:
                    self._begin_part(self._unopened)
                if self._message is not None:
                    self._message.add_text(event.text, event.pieces)
            elif kind == "start" and event.native:
                self._passthrough = PassthroughEvents(
                    self._writer, self._id, self._echo, is_queued=self._is_queued
                )
                return self.encode(events)
            else:
                self._encode_event(kind, event)
        return self._writer.take()

    def finish(self) -> bytes:
        """Return the end of a complete answer; an answer without a finish reason is broken."""
        if self._passthrough is not None and self._passthrough.response:
            self.response = self._passthrough.response
            self._passthrough.write_end()
            return self._writer.take()
        if self._finish is None or self._passthrough is not None:
            return self.error(internal())
        reason = incomplete_reason(self._finish.reason, self._refused)
        self.response = response_object(
            self._id,
            self._created,
            self._echo,
            model=self._start.model,
            output=self._items,
            usage=self.usage,
            extra=self._extra,
            reason=reason,
            completed=int(self._now()),
        )
        kind = INCOMPLETE if reason else COMPLETED
        self._writer.write(f"response.{kind}", response=orjson.Fragment(self.response))
        return self._writer.take()

    def keepalive(self) -> bytes:
        """Return a comment, which clients ignore."""
        return _KEEPALIVE

    def error(self, error: GatewayError) -> bytes:
        """Return the end of an interrupted answer: the error, and the failed response."""
        items = [item for item in self._items if item]
        if self._passthrough is not None:
            items = self._passthrough.items()
        self.response = failed_response(
            error, self._id, self._created, self._echo, self._start.model, items
        )
        writer = self._writer
        writer.out.append(error_event(error, writer.number))
        writer.number += 1
        writer.write("response.failed", response=orjson.Fragment(self.response))
        return writer.take()

    def _encode_event(self, kind: str | None, event: Event) -> None:
        """Encode an event other than the usual text."""
        match kind:
            case "usage":
                self.usage = event.usage
            case "start":
                self._begin(event.start)
            case "block_start":
                self._start_block(event.block_start)
            case "block_stop":
                self._stop_block()
            case "finish":
                self._end(event.finish)
            case "extra_fields":
                self._add_extra_fields(event)
            case "continued":
                self.route = event.continued
            case None | "unknown":
                pass
            case _ if not self._hidden:
                self._delta(kind, event)

    def _pass_through(self, events: Iterable[Event], passthrough: PassthroughEvents) -> None:
        """Write the provider's own events; events without one add nothing to them."""
        for event in events:
            if sent := event.native:
                if count := event.native_count:
                    passthrough.write_run(sent, count, event.native_number)
                    continue  # beside it the event has at most a text
                passthrough.write(sent)
            kind = event.WhichOneof("kind")
            if kind == "usage":
                self.usage = event.usage
            elif kind == "start":
                self._start, self.route = event.start, event.start.route

    def _add_extra_fields(self, event: Event) -> None:
        """Keep unknown fields of the answer and of the open message."""
        if fields := native_fields(event.extra_fields.answer):
            before = native_fields(self._extra)
            self._extra = to_opaque(DIALECT_RESPONSES, {**before, **fields}, "")
        if self._message is not None:
            self._message.add("extra_fields", event)

    def _begin(self, start: Start) -> None:
        self._start = start
        self.route = start.route
        self._extra = start.extra
        begun = self._begun(IN_PROGRESS)
        for kind in ("in_progress",) if self._is_queued else ("created", "in_progress"):
            self._writer.write(f"response.{kind}", response=orjson.Fragment(begun))

    def _begun(self, status: str) -> bytes:
        """Return the response object of an answer without output."""
        return response_object(
            self._id,
            self._created,
            self._echo,
            model=self._start.model,
            extra=self._start.extra,
            status=status,
        )

    def _start_block(self, block: Block) -> None:
        kind = output.kind_of(block)
        self._hidden = not kind
        if self._hidden:
            if not self._items and len(self._foreign) < _MOST_NAMED:
                self._foreign.append(block)
            return
        if kind in _TEXT_KINDS:
            self._refused = self._refused or kind == "refusal"
            self._unopened = block
            if text := block.text or block.refusal:
                self._begin_part(block)
                if self._message is not None:
                    self._message.add_text(text, ())
            return
        if kind in output.RESULTS:
            self._hidden = True
            self._end_search(block)
            self._end_program(block)
            return
        self._close(COMPLETED)
        self._open_item(kind, block)

    def _open_item(self, kind: str, block: Block) -> None:
        """Begin an item other than a message."""
        index, writer = self._next(), self._writer
        match kind:
            case "thinking":
                given_id = output.item_id("rs", self._id, index)
                self._open = OpenReasoning(writer, index, given_id, block)
            case "tool_use":
                prefix = "ctc" if block.tool_use.freeform else "fc"
                given_id = output.item_id(prefix, self._id, index)
                self._open = OpenCall(writer, index, given_id, block)
            case "server_tool_use":
                given_id = output.search_id(self._id, index, block.server_tool_use.name)
                search = OpenSearch(writer, index, given_id, block, self._echo)
                self._open = self._searches[search.use.id] = search
            case output.PROGRAM:
                program = read_part(block.opaque)
                assert isinstance(program, Program)
                self._open = OpenProgram(writer, index, program)
            case "redacted_thinking":
                given_id = output.item_id("rs", self._id, index)
                item = output.redacted(given_id, block.redacted_thinking)
                self._open = OpenWhole(writer, index, item)
            case "media":
                given_id = output.item_id("ig", self._id, index)
                self._open = OpenWhole(writer, index, output.picture(given_id, block.media))
            case _:
                given_id = output.item_id("item", self._id, index)
                self._open = OpenWhole(writer, index, output.opaque_item(block, given_id))

    def _next(self) -> int:
        """Return the index of the next item."""
        self._index = len(self._items)
        self._items.append(b"")
        return self._index

    def _begin_part(self, block: Block) -> None:
        """Begin a content part, in the open message or a new one."""
        self._unopened = None
        if self._message is None:
            self._close(COMPLETED)
            index = self._next()
            given_id = output.item_id("msg", self._id, index)
            self._open = self._message = OpenMessage(self._writer, index, given_id)
        self._message.begin_part(block)

    def _stop_block(self) -> None:
        if self._hidden or self._unopened is not None:
            self._hidden, self._unopened = False, None
        elif self._open is not None:
            self._open.end_block()
            if isinstance(self._open, OpenSearch):
                self._open = None  # its result closes it

    def _delta(self, kind: str, event: Event) -> None:
        if kind in _TEXT_KINDS:
            self._add_text(kind, event)
        elif self._open is not None:
            self._open.add(kind, event)

    def _add_text(self, kind: str, event: Event) -> None:
        if self._unopened is not None:
            self._begin_part(self._unopened)
        if self._message is None:
            return
        if event.logprobs and kind == "text" and self._echo.logprobs:
            self._message.add_with_logprobs(event.text, output.logprobs_of(event.logprobs))
        else:
            text = event.text if kind == "text" else event.refusal
            self._message.add_text(text, event.pieces)

    def _end_search(self, block: Block) -> None:
        result = block.server_tool_result
        search = self._searches.pop(result.tool_use_id, None)
        if search is None:
            return
        search.result = result
        search.end()
        self._done(search, search.index, output.search_status(result))

    def _end_program(self, block: Block) -> None:
        if isinstance(self._open, OpenProgram):
            self._open.output = output.outputs_of((block,)).get(self._open.program.key)
            self._close(COMPLETED)

    def _close(self, status: str) -> None:
        """End the open item."""
        if self._open is not None:
            self._done(self._open, self._index, status)
        self._open = self._message = None

    def _done(self, item: OpenItem, index: int, status: str) -> None:
        written = orjson.dumps(item.item(status))
        self._items[index] = written
        self._writer.write(
            "response.output_item.done", output_index=index, item=orjson.Fragment(written)
        )

    def _end(self, finish: Finish) -> None:
        self._finish = finish
        if not self._items and (note := note_on(self._foreign, DIALECT_RESPONSES)):
            self._begin_part(Block(text=note))
            self._add_text("text", Event(text=note))
            self._stop_block()
        reason = incomplete_reason(finish.reason, self._refused)
        self._close(INCOMPLETE if reason else COMPLETED)
        for search in self._searches.values():
            self._done(search, search.index, FAILED)
        self._searches.clear()

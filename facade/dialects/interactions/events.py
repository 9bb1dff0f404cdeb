"""Events of streamed interactions, for those of streamed responses. Pure.

Each item of a response is a step: the events of texts and arguments become deltas as they arrive,
and other items are written once they are complete.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from facade.dialects import responses
from facade.dialects.interactions.objects import OBJECT, described
from facade.dialects.interactions.steps import (
    CALL,
    MODEL,
    THOUGHT,
    annotation_of,
    arguments_delta,
    begun,
    deltas_of,
    signature_deltas,
    steps_of,
    summary_delta,
)
from facade.dialects.stream_formats import DATA_ALONE, StreamFormat
from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event, RouteInfo
from services.common.errors import GatewayError

Json = dict[str, Any]

_END: Final = b"event: done\ndata: [DONE]\n\n"
_KEEPALIVE: Final = b": keep-alive\n\n"
_BETWEEN: Final = b"\n\n"
# Items that are written as they arrive, with the types of their steps.
_LIVE: Final = {"message": MODEL, "reasoning": THOUGHT, "function_call": CALL}
_LAST: Final = ("response.completed", "response.incomplete", "response.failed")


class InteractionEvents:
    """Translates the events of one streamed response.

    Args:
        after: number of the last event to leave out; -1 for none.
    """

    def __init__(self, after: int = -1) -> None:
        self._after = after
        self._number = 0  # of the next event
        self._rest = b""  # the begin of an event
        self._steps: dict[int, int] = {}  # indices of open steps, by those of their items
        self._count = 0  # of steps
        self._out: list[bytes] = []

    def translate(self, data: bytes) -> bytes:
        """Return the events for bytes of a stream, whose last event may be incomplete."""
        *events, self._rest = (self._rest + data.replace(b"\r\n", b"\n")).split(_BETWEEN)
        for event in events:
            if (place := event.find(b"data: ")) >= 0:
                self._read(orjson.loads(event[place + 6 :]))
        written = b"".join(self._out)
        self._out.clear()
        return written

    def _read(self, event: Json) -> None:
        kind = event["type"]
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._delta(event, {"type": "text", "text": event["delta"]})
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._delta(event, summary_delta(event["delta"]))
            case "response.function_call_arguments.delta":
                self._delta(event, arguments_delta(event["delta"]))
            case "response.output_text.annotation.added":
                annotation = annotation_of(event["annotation"])
                self._delta(event, {"type": "text_annotation_delta", "annotations": [annotation]})
            case "response.output_item.added":
                if (own := _LIVE.get(event["item"]["type"])) is not None:
                    self._begin(event["output_index"], own, event["item"])
            case "response.output_item.done":
                self._end(event["output_index"], event["item"])
            case "error":
                error = {"code": event.get("code"), "message": event.get("message")}
                self._write("error", error=error)
            case _:
                self._describe(kind, event.get("response"))

    def _describe(self, kind: str, response: Json | None) -> None:
        """Write an event about the whole response."""
        if response is None:
            return
        described_response = described(response)
        if kind == "response.created":
            begin = ("id", "status", "model", "created", "updated")
            fields = {name: described_response[name] for name in begin}
            self._write("interaction.created", interaction={"object": OBJECT, **fields})
        elif kind in _LAST:
            self._write("interaction.completed", interaction=described_response)
        elif kind in ("response.queued", "response.in_progress"):
            names = {"interaction_id": response["id"], "status": described_response["status"]}
            self._write("interaction.status_update", **names)

    def _begin(self, index: int, kind: str, item: Json) -> None:
        step = steps_of(item)[0] if kind == CALL else {"type": kind}
        self._steps[index] = self._start(begun(step))

    def _end(self, index: int, item: Json) -> None:
        own = self._steps.pop(index, None)
        if own is None:
            for step in steps_of(item):
                own = self._start(begun(step))
                for delta in deltas_of(step):
                    self._write("step.delta", index=own, delta=delta)
                self._write("step.stop", index=own)
            return
        if item["type"] == "reasoning":
            for delta in signature_deltas(steps_of(item)[0]):
                self._write("step.delta", index=own, delta=delta)
        self._write("step.stop", index=own)

    def _start(self, step: Json) -> int:
        index = self._count
        self._count += 1
        self._write("step.start", index=index, step=step)
        return index

    def _delta(self, event: Json, delta: Json) -> None:
        index = self._steps.get(event["output_index"])
        if index is not None:
            self._write("step.delta", index=index, delta=delta)

    def _write(self, kind: str, **fields: object) -> None:
        number = self._number
        self._number += 1
        if number > self._after:
            data = orjson.dumps({"event_type": kind, **fields, "event_id": str(number)})
            self._out.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), data))


class InteractionStream:
    """Encodes the events of one answer as an interaction; see `facade.sse.Encoder`.

    Args:
        response: encodes them as a response.

    Attributes:
        format: the format of the stream.
        route: the model that serves the answer, once known.
        usage: token usage so far.
    """

    format: StreamFormat = DATA_ALONE

    def __init__(self, response: responses.ResponseStream) -> None:
        self._response = response
        self._events = InteractionEvents()
        self.route = RouteInfo()
        self.usage = Usage()

    def encode(self, events: Sequence[Event]) -> bytes:
        """Return the bytes of a batch of events, possibly none."""
        return self._translated(self._response.encode(events))

    def finish(self) -> bytes:
        """Return the end of a complete answer."""
        return self._translated(self._response.finish()) + _END

    def keepalive(self) -> bytes:
        """Return a comment, which clients ignore."""
        return _KEEPALIVE

    def error(self, error: GatewayError) -> bytes:
        """Return the end of an interrupted answer."""
        return self._translated(self._response.error(error)) + _END

    def _translated(self, data: bytes) -> bytes:
        self.route, self.usage = self._response.route, self._response.usage
        return self._events.translate(data)


def replayed(events: bytes, after: int) -> bytes:
    """Return the events of a response that has ended as those of its interaction.

    Args:
        events: all events of the response.
        after: number of the last event to leave out; -1 for none.
    """
    return InteractionEvents(after).translate(events) + _END

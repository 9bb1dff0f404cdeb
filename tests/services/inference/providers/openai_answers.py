"""Chat completions to be read, and what becomes of them."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import Dialect, FinishReason
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers import failures
from services.inference.providers.openai.events import StreamReader, events_from_whole
from services.inference.stream.accumulator import Accumulator
from tests.services.inference.providers.openai_calls import OPENAI, call_of

Json = dict[str, Any]


class Provider:
    """Makes failures as an upstream does."""

    name = "acme"

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    def in_band(self, body: bytes) -> UpstreamError:
        return failures.in_band(self.name, body)


def reader_of(dialect: Dialect.ValueType = OPENAI, **fields: Any) -> StreamReader:
    return StreamReader(call_of(dialect=dialect, **fields), Provider(), lambda kind: f"{kind}new")


def chunk(*choices: Json, **fields: Any) -> Json:
    return {"id": "a1", "model": "gpt-1-0613", "choices": list(choices), **fields}


def delta(index: int = 0, finish: str | None = None, **said: Any) -> Json:
    return {"index": index, "delta": said, "finish_reason": finish}


def says(finish: str | None = None, **said: Any) -> Json:
    return chunk(delta(0, finish, **said))


def calls(index: int, arguments: str = "", **fields: Any) -> Json:
    name = fields.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": index, "function": function, **fields}]}


def data(*chunks: Json | bytes) -> bytes:
    """Return the text of a stream of such events."""
    jsons = (c if isinstance(c, bytes) else orjson.dumps(c) for c in chunks)
    return b"".join(b"data: %b\n\n" % json for json in jsons)


def read(*chunks: Json | bytes, **fields: Any) -> list[Event]:
    """Return the events of a whole stream, after the accumulator has agreed to their order."""
    reader = reader_of(**fields)
    events: list[Event] = []
    reader.feed(data(*chunks), events)
    reader.end(events)
    answer(events)
    return events


def answer(events: Iterable[Event]) -> GenerateResponse:
    accumulator = Accumulator()
    accumulator.add(events)
    return accumulator.response()


def told(events: Sequence[Event]) -> list[tuple[str, object]]:
    """Return each event as its kind and what is in it."""
    found: list[tuple[str, object]] = []
    for event in events:
        kind = event.WhichOneof("kind") or ""
        value = getattr(event, kind)
        if kind == "block_start":
            value = value.WhichOneof("kind")
        elif kind == "finish":
            value = FinishReason.Name(value.reason).removeprefix("FINISH_REASON_")
        elif kind in ("start", "usage", "block_stop"):
            value = None
        found.append((kind, value))
    return found


def whole(message: Json, finish: str = "stop", **fields: Any) -> GenerateResponse:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    events = events_from_whole(chunk(choice), call_of(**fields), Provider(), lambda kind: kind)
    return answer(events)


def failure_of(*chunks: Json | bytes, ended: bool = True, **fields: Any) -> UpstreamError:
    reader = reader_of(**fields)
    with pytest.raises(UpstreamError) as raised:
        reader.feed(data(*chunks), [])
        if ended:
            reader.end([])
    return raised.value


def reason_of(error: UpstreamError) -> str:
    return Reason.Name(error.reason).removeprefix("REASON_")

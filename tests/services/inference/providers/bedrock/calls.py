"""Calls of Bedrock's adapter, their bodies held against AWS's service model, and answers."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import orjson

from gateway.inference.v1.inference_pb2 import Event, GenerateRequest, GenerateResponse
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers import failures
from services.inference.providers.base import Call, Target
from services.inference.providers.bedrock.events import AnswerReader
from services.inference.providers.bedrock.frames import FrameSplitter
from services.inference.providers.bedrock.request import build_request
from services.inference.stream.accumulator import whole_of
from tests.services.inference.providers.caller_paths import with_named_fields
from tests.services.inference.providers.gemini_calls import OPENAI, USER, says
from tests.upstream.bedrock import rules, wire

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


class Errors:
    """Creates errors as an upstream does."""

    name = "bedrock"
    limits = Limits()

    def in_band(self, body: bytes) -> UpstreamError:
        return failures.in_band(self.name, body)


def call_of(*messages: Any, model: str = CLAUDE, dialect: int = OPENAI, **fields: Any) -> Call:
    """Return a call; without messages one that says hi."""
    request = GenerateRequest(
        model="m", messages=messages or [says(USER, "hi")], dialect=dialect, **fields
    )
    return Call(with_named_fields(request), Target("m", "bedrock", model), False)


def body_of(call: Call) -> Any:
    """Return the body sent, after AWS's service model and rules have agreed to it."""
    body = orjson.loads(build_request(call, pass_stateful=False))
    problem = rules.find_problem(body, call.target.upstream)
    assert problem is None, problem
    return body


def reader_of(names: Mapping[str, str] = MappingProxyType({})) -> AnswerReader:
    return AnswerReader(call_of(), Errors(), names, lambda prefix: f"{prefix}1")


def stream_of(*events: tuple[str, Any], kind: str = "event") -> bytes:
    """Return events of a stream as AWS frames them."""
    return b"".join(wire.frame(kind, name, orjson.dumps(payload)) for name, payload in events)


def delta(value: Any, index: int = 0) -> tuple[str, Any]:
    return "contentBlockDelta", {"delta": value, "contentBlockIndex": index}


START = ("messageStart", {"role": "assistant"})
USAGE = {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}
METADATA = ("metadata", {"usage": USAGE, "metrics": {"latencyMs": 1}})


def stop(reason: str = "end_turn") -> tuple[str, Any]:
    return "messageStop", {"stopReason": reason}


def events_of(pieces: Iterable[bytes]) -> list[Event]:
    """Return the events of a streamed answer, received in pieces."""
    splitter, reader = FrameSplitter("bedrock", 1 << 20), reader_of()
    out: list[Event] = []
    for piece in pieces:
        reader.feed(splitter.feed(piece), out)
    reader.end(out)
    return out


def answer_of(*events: tuple[str, Any]) -> GenerateResponse:
    """Return a streamed answer with these events between its start and its usage."""
    return whole_of([events_of([stream_of(START, *events, METADATA)])])

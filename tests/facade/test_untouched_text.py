"""Text that passes untouched reaches callers as text that is translated does."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings

from facade.dialects.anthropic import MessageStream
from facade.dialects.openai import ChatStream
from facade.sse import Encoder
from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import Event, GenerateRequest, GenerateResponse
from services.common.errors import UpstreamError
from services.common.settings import Limits
from services.inference.providers import failures
from services.inference.providers.anthropic.events import StreamReader as AnthropicReader
from services.inference.providers.base import Call, Target
from services.inference.providers.delta_templates import DeltaTemplates
from services.inference.providers.openai.events import StreamReader as OpenAIReader
from services.inference.providers.protocols import Reader
from services.inference.providers.sse import SseSplitter
from services.inference.stream.accumulator import Accumulator
from tests.facade.provider_streams import cut_and_broken, of_chat_completions, of_messages
from tests.thoroughness import examples

Batches = list[list[Event]]
# The events of each piece of a stream, and how reading it failed.
Read = Callable[[Iterable[bytes]], tuple[Batches, str]]
# What a caller gets for each batch: names and contents of events.
Seen = list[list[tuple[bytes, Any]]]


class Provider:
    """Makes failures as an upstream does."""

    name = "acme"
    limits = Limits()

    def in_band(self, body: bytes) -> UpstreamError:
        return failures.in_band(self.name, body)


def from_openai(pieces: Iterable[bytes]) -> tuple[Batches, str]:
    request = GenerateRequest(dialect=conversation_pb2.DIALECT_OPENAI)
    call = Call(request, Target("m", "acme", "m"), stream=True)
    return read_by(OpenAIReader(call, Provider(), lambda kind: f"{kind}1"), pieces)


def from_anthropic(pieces: Iterable[bytes]) -> tuple[Batches, str]:
    return read_by(AnthropicReader(Provider()), pieces)


def read_by(reader: Reader, pieces: Iterable[bytes]) -> tuple[Batches, str]:
    """Return the events of a stream that comes in these pieces, and how it failed."""
    cutter, batches = SseSplitter(1 << 20), Batches()
    try:
        for piece in pieces:
            batches.append([])
            reader.feed(cutter.feed(piece), batches[-1])
        reader.end([])
    except UpstreamError as error:
        return batches, told(error)
    return batches, ""


def told(error: UpstreamError) -> str:
    return f"{error.reason} {error.message} {error.body}"


def seen(batches: Batches, encoder: Encoder, is_whole: bool) -> Seen:
    wire = [encoder.encode(batch) for batch in batches]
    if is_whole:
        wire.append(encoder.finish())
    return [[parsed(event) for event in one.split(b"\n\n") if event] for one in wire]


def parsed(event: bytes) -> tuple[bytes, Any]:
    name, _, content = event.partition(b"data: ")
    return name, content if content == b"[DONE]" else json.loads(content)


def whole(batches: Batches) -> GenerateResponse:
    accumulator = Accumulator()
    for batch in batches:
        accumulator.add(batch)
    return accumulator.response()


def check(read: Read, pieces: list[bytes]) -> None:
    untouched, failure = read(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaTemplates, "learn", lambda *_: None)
        translated, failure_of_other = read(pieces)
    assert failure == failure_of_other
    encoders: list[Callable[[], Encoder]] = [
        lambda: ChatStream(created=1, include_usage=True),
        lambda: MessageStream("req_1"),
    ]
    for make in encoders:
        assert seen(untouched, make(), not failure) == seen(translated, make(), not failure)
    if not failure:
        assert whole(untouched) == whole(translated)


@settings(max_examples=examples(60))
@given(cut_and_broken(of_chat_completions()))
def test_chunks_of_chat_completions_reach_callers_the_same(pieces: list[bytes]) -> None:
    check(from_openai, pieces)


@settings(max_examples=examples(60))
@given(cut_and_broken(of_messages()))
def test_events_of_messages_reach_callers_the_same(pieces: list[bytes]) -> None:
    check(from_anthropic, pieces)

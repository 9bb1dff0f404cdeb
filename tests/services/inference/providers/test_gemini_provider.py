"""The adapter over real HTTP: against the sandbox, and against a scripted server."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import orjson
import pytest

from gateway.conversation.v1 import conversation_pb2 as pb
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from services.common.errors import UpstreamError
from services.common.http import Client
from services.common.settings import Limits
from services.inference.providers.base import Call
from services.inference.providers.gemini import GeminiProvider, headers
from services.inference.providers.sandbox import SandboxProvider
from services.inference.providers.upstream import Upstream
from services.inference.stream.accumulator import Accumulator, whole_of
from tests.services.inference.providers.embedding_calls import embed
from tests.services.inference.providers.gemini_answers import chunk, text, wire
from tests.services.inference.providers.gemini_calls import USER, call_of, says
from tests.services.inference.providers.scripted_server import (
    END,
    SSE_HEAD,
    LiveCalls,
    ScriptedUpstream,
    scripted_upstream,
)
from tests.upstream.app import serving
from tests.upstream.log import RequestLog


@pytest.fixture
async def here() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as made:
        yield made
        assert made.live.count == 0, "every call that began is over"


def provider(upstream: Upstream) -> GeminiProvider:
    return GeminiProvider("acme", upstream, pass_stateful=False, fetches_urls=False)


def call(*, stream: bool, model: str = "echo", said: str = "hi", **fields: Any) -> Call:
    made = call_of(says(USER, said), model=model, **fields)
    made.stream = stream
    return made


async def answered(provider: GeminiProvider, call: Call) -> GenerateResponse:
    accumulator = Accumulator()
    if not call.stream:
        return whole_of([await provider.whole(call)])
    async with aclosing(provider.stream(call)) as batches:
        async for batch in batches:
            accumulator.add(batch)
    return accumulator.response()


async def failure(provider: GeminiProvider, call: Call) -> UpstreamError:
    with pytest.raises(UpstreamError) as raised:
        await answered(provider, call)
    return raised.value


@pytest.fixture
async def sandbox() -> AsyncIterator[tuple[GeminiProvider, RequestLog]]:
    async with serving() as running, Client(connect_timeout_s=60) as client:
        url = f"{running.url}/v1beta"
        upstream = Upstream("acme", url, headers("k-secret"), Limits(), client, LiveCalls())
        yield provider(upstream), running.log


@pytest.mark.parametrize("stream", [False, True])
async def test_it_asks_and_reads(sandbox: Any, stream: bool) -> None:
    asking, log = sandbox
    response = await answered(asking, call(stream=stream))
    assert response.choices[0].blocks[0].text == 'Sandbox echo: you said "hi".'
    assert response.usage.output_tokens > 0
    (entry,) = log.entries
    method = "streamGenerateContent" if stream else "generateContent"
    assert (entry.path, entry.status) == (f"/v1beta/models/echo:{method}", 200)
    assert entry.headers["x-goog-api-key"] == "[redacted]"


async def test_it_counts_and_embeds(sandbox: Any) -> None:
    asking, log = sandbox
    assert await asking.count_tokens(call(stream=False, said="hello there")) == 3
    texts = ["a dog", "two cats"]
    made = await embed(asking, texts)
    assert made == await embed(SandboxProvider("s"), texts)
    assert log.entries[-1].body["requests"][0]["model"] == "models/embed"
    many = [f"text {number}" for number in range(201)]
    made = await embed(asking, many)
    assert made == await embed(SandboxProvider("s"), many)
    assert [len(entry.body["requests"]) for entry in list(log.entries)[-3:]] == [100, 100, 1]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "reason", "wait"),
    [
        ("nothing", "MODEL_NOT_FOUND", None),
        ("fail-429", "UPSTREAM_RATE_LIMITED", 1),
        ("fail-500", "UPSTREAM_ERROR", None),
        ("fail-401", "UPSTREAM_AUTH", None),
        ("fail-context", "CONTEXT_LENGTH_EXCEEDED", None),
        ("cut", "UPSTREAM_CONNECTION", None),
    ],
)
async def test_failures_of_google(
    sandbox: Any, model: str, reason: str, wait: int | None, stream: bool
) -> None:
    error = await failure(sandbox[0], call(stream=stream, model=model))
    assert Reason.Name(error.reason) == f"REASON_{reason}"
    assert error.retry_after_s == wait


async def test_a_failure_in_the_middle_of_a_stream(sandbox: Any) -> None:
    error = await failure(sandbox[0], call(stream=True, model="fail-late"))
    assert Reason.Name(error.reason) == "REASON_UPSTREAM_OVERLOADED"


async def test_what_came_before_a_failure_is_good(here: ScriptedUpstream) -> None:
    async def script(connection: Any) -> None:
        await connection.send(SSE_HEAD)
        error = {"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}
        await connection.chunk(wire(chunk(text("a")), error))
        await connection.send(END)

    here.server.plays(script)
    events: list[Event] = []
    with pytest.raises(UpstreamError):
        async for batch in provider(here.upstream(None)).stream(call(stream=True)):
            events += batch
    assert [event.text for event in events if event.text] == ["a"]
    assert here.server.requests[0].target == "/v1/models/echo:streamGenerateContent?alt=sse"


@pytest.mark.parametrize("ends", [True, False])
async def test_a_stream_needs_a_reason_to_finish(here: ScriptedUpstream, ends: bool) -> None:
    async def script(connection: Any) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(wire(chunk(text("a"), finish="STOP" if ends else "")))
        connection.reset()

    here.server.plays(script)
    asking = provider(here.upstream(None))
    if ends:
        response = await answered(asking, call(stream=True))
        assert response.choices[0].finish.reason == pb.FINISH_REASON_END_TURN
    else:
        error = await failure(asking, call(stream=True))
        assert Reason.Name(error.reason) == "REASON_UPSTREAM_CONNECTION"


async def test_an_invalid_key_is_the_operators_matter(here: ScriptedUpstream) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    words = "API key not valid. Please pass a valid API key."
    error_object = {"code": 400, "message": words, "status": "INVALID_ARGUMENT", "details": [info]}
    here.server.plays(lambda c: c.answer(orjson.dumps({"error": error_object}), 400))
    error = await failure(provider(here.upstream(None)), call(stream=False))
    assert Reason.Name(error.reason) == "REASON_UPSTREAM_AUTH"


@pytest.mark.parametrize("body", [b"{}", b'{"totalTokens": -1}', b'{"totalTokens": "3"}'])
async def test_a_count_that_is_none_is_a_failure(here: ScriptedUpstream, body: bytes) -> None:
    here.server.plays(lambda c: c.answer(body))
    with pytest.raises(UpstreamError):
        await provider(here.upstream(None)).count_tokens(call(stream=False))


@pytest.mark.parametrize(
    "body", [b"{}", b'{"embeddings":[{"values":[1]}]}', b'{"embeddings":[7,{"values":[1]}]}']
)
async def test_vectors_that_are_none_are_a_failure(here: ScriptedUpstream, body: bytes) -> None:
    here.server.plays(lambda c: c.answer(body))
    with pytest.raises(UpstreamError):
        await embed(provider(here.upstream(None)), ["a", "b"])

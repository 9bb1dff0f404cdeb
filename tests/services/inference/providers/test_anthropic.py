"""The adapter against a scripted server, over real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from aiohttp import web

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from services.common.errors import GatewayError, UpstreamError
from services.common.http import Client
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.common.settings import Limits
from services.inference.providers.anthropic import AnthropicProvider, headers
from services.inference.providers.base import AnswerForm, Call, Provider
from services.inference.providers.upstream import Upstream
from services.inference.stream.accumulator import Accumulator
from tests.services.inference.providers.anthropic_answers import (
    BEGIN,
    OVER,
    STREAM,
    TEXT,
    WHOLE,
    delta,
    ended,
    stopped,
    wire,
)
from tests.services.inference.providers.anthropic_calls import ANTHROPIC, call_of, checks
from tests.services.inference.providers.scripted_server import LiveCalls

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
HEADERS = {"content-type": "text/event-stream"}


@dataclass
class Server:
    """A server that answers each request as told, and remembers it."""

    answer: Answer = field(init=False)  # every test sets it
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    live: LiveCalls = field(default_factory=LiveCalls)
    # Set when a client has left an answer that was still going on.
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(orjson.loads(await request.read()))
        try:
            return await self.answer(request)
        except asyncio.CancelledError:
            self.left.set()
            raise


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def provider(server: Server) -> AsyncIterator[AnthropicProvider]:
    app = web.Application()
    app.router.add_post("/v1/messages", server.handle)
    app.router.add_post("/v1/messages/count_tokens", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    async with Client(connect_timeout_s=60) as client:
        upstream = Upstream(
            "claude", f"http://{host}:{port}", headers("sk-key"), Limits(), client, server.live
        )
        yield AnthropicProvider(
            "claude", upstream, pass_stateful=False, fetches_urls=False, official=True
        )
    await runner.cleanup()


def whole(body: Any, status: int = 200) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status)

    return answer


def streamed(*pieces: bytes, then_wait: bool = False) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=HEADERS)
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if then_wait:
            await asyncio.Event().wait()
        return response

    return answer


async def batches_of(provider: AnthropicProvider, call: Call) -> list[list[Event]]:
    if not call.stream:
        return [await provider.whole(call)]
    async with aclosing(provider.stream(call)) as batches:
        return [list(batch) async for batch in batches]


@pytest.mark.parametrize("taken", [True, False])
async def test_a_whole_answer_goes_as_it_is_where_that_is_taken(
    server: Server, provider: AnthropicProvider, taken: bool
) -> None:
    call = call_of(dialect=ANTHROPIC)
    call.accepts = AnswerForm.PASSTHROUGH if taken else AnswerForm.EVENTS
    plain = {**WHOLE, "content": [{"type": "text", "text": "see"}], "stop_reason": "end_turn"}
    server.answer = whole(plain)
    response = await answer_of(provider, call)
    assert bool(response.passthrough) is taken
    assert (len(response.choices), response.usage.output_tokens) == (0 if taken else 1, 42)
    if taken:
        assert orjson.loads(response.passthrough) == plain


async def answer_of(provider: AnthropicProvider, call: Call) -> GenerateResponse:
    if call.accepts is AnswerForm.PASSTHROUGH:
        passed = await provider.whole(call)
        assert isinstance(passed, PassthroughAnswer)
        return passed.response()
    accumulator = Accumulator()
    for batch in await batches_of(provider, call):
        accumulator.add(batch)
    return accumulator.response()


async def test_a_whole_answer_is_one_batch(server: Server, provider: AnthropicProvider) -> None:
    server.answer = whole(WHOLE)
    (batch,) = await batches_of(provider, call_of())
    assert batch[0].start.id == "msg_1"
    assert checks().messages(server.bodies[0]) is None
    assert "stream" not in server.bodies[0]
    assert server.live.count == 0


async def test_a_stream_adds_up_to_the_whole_answer(
    server: Server, provider: AnthropicProvider
) -> None:
    server.answer = streamed(wire(STREAM))
    answer = await answer_of(provider, call_of(stream=True))
    assert server.bodies[0]["stream"] is True
    server.answer = whole(WHOLE)
    assert answer == await answer_of(provider, call_of())


async def test_the_gateway_says_who_it_is_and_the_caller_which_betas(
    server: Server, provider: AnthropicProvider
) -> None:
    server.answer = whole(WHOLE)
    await batches_of(provider, call_of(dialect=ANTHROPIC, betas=["one", "two"]))
    await batches_of(provider, call_of())
    first, second = server.requests
    assert first.headers["x-api-key"] == "sk-key"
    assert first.headers["anthropic-version"] == "2023-06-01"
    assert first.headers["content-type"] == "application/json"
    assert first.headers["anthropic-beta"] == "one,two"
    assert "anthropic-beta" not in second.headers
    assert "authorization" not in first.headers


def test_a_server_without_a_key_gets_none() -> None:
    assert headers("") == {"anthropic-version": "2023-06-01"}


async def test_text_is_passed_on_as_it_comes(server: Server, provider: AnthropicProvider) -> None:
    read = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=HEADERS)
        await response.prepare(request)
        await response.write(wire([BEGIN, TEXT, delta(0, "text_delta", text="first")]))
        await read.wait()
        await response.write(wire([delta(0, "text_delta", text="second"), stopped(0)]))
        await response.write(wire([ended(), OVER]))
        return response

    server.answer = answer
    texts = []
    async with aclosing(provider.stream(call_of(stream=True))) as batches:
        async for batch in batches:
            texts += [event.text for event in batch if event.text]
            read.set()
    assert texts == ["first", "second"]


async def test_what_the_adapter_refuses_is_never_sent(
    server: Server, provider: AnthropicProvider
) -> None:
    with pytest.raises(GatewayError) as raised:
        await batches_of(provider, call_of(n=2))
    assert (raised.value.param, server.requests) == ("n", [])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_of_the_provider_keeps_its_words(
    server: Server, provider: AnthropicProvider, stream: bool
) -> None:
    error = {"type": "invalid_request_error", "message": "messages: too odd"}
    server.answer = whole({"type": "error", "error": error}, 400)
    with pytest.raises(UpstreamError, match="messages: too odd") as raised:
        await batches_of(provider, call_of(stream=stream))
    assert (raised.value.reason, raised.value.status) == (errors_pb2.REASON_UPSTREAM_REJECTED, 400)


async def test_an_overloaded_provider_is_known_as_one(
    server: Server, provider: AnthropicProvider
) -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    server.answer = whole({"type": "error", "error": error}, 529)
    with pytest.raises(UpstreamError) as raised:
        await batches_of(provider, call_of())
    assert raised.value.reason == errors_pb2.REASON_UPSTREAM_OVERLOADED


async def test_an_error_inside_a_stream_comes_after_what_was_said(
    server: Server, provider: AnthropicProvider
) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    # One write holds both: what came before the error is passed on all the same, and
    # nothing more is waited for.
    said = wire([BEGIN, TEXT, delta(0, "text_delta", text="said"), error])
    server.answer = streamed(said, then_wait=True)
    texts = []
    with pytest.raises(UpstreamError) as raised:
        async with asyncio.timeout(60), aclosing(provider.stream(call_of(stream=True))) as batches:
            async for batch in batches:
                texts += [event.text for event in batch if event.text]
    assert texts == ["said"]
    assert raised.value.reason == errors_pb2.REASON_UPSTREAM_OVERLOADED
    assert server.live.count == 0


@pytest.mark.parametrize("pieces", [[], [wire(STREAM[:5])]])
async def test_a_truncated_stream_is_a_connection_failure(
    server: Server, provider: AnthropicProvider, pieces: list[bytes]
) -> None:
    server.answer = streamed(*pieces)
    with pytest.raises(UpstreamError) as raised:
        await batches_of(provider, call_of(stream=True))
    assert raised.value.reason == errors_pb2.REASON_UPSTREAM_CONNECTION


async def test_the_last_event_ends_an_answer_of_a_slow_server(
    server: Server, provider: AnthropicProvider
) -> None:
    server.answer = streamed(wire(STREAM), then_wait=True)
    async with asyncio.timeout(60):
        answer = await answer_of(provider, call_of(stream=True))
    assert answer.usage.output_tokens == 42


async def test_closing_the_answer_ends_the_call_at_the_provider(
    server: Server, provider: AnthropicProvider
) -> None:
    server.answer = streamed(wire(STREAM[:4]), then_wait=True)
    async with aclosing(provider.stream(call_of(stream=True))) as batches:
        async for _ in batches:
            break
    async with asyncio.timeout(60):
        await server.left.wait()
    assert server.live.count == 0


@pytest.mark.parametrize("body", [{"type": "message"}, ["x"], {**WHOLE, "content": 5}])
async def test_an_answer_that_is_none_is_the_providers_failure(
    server: Server, provider: AnthropicProvider, body: Any
) -> None:
    server.answer = whole(body)
    with pytest.raises(UpstreamError) as raised:
        await batches_of(provider, call_of())
    assert raised.value.reason == errors_pb2.REASON_UPSTREAM_ERROR


async def test_an_error_under_status_200_is_a_failure(
    server: Server, provider: AnthropicProvider
) -> None:
    server.answer = whole({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}})
    with pytest.raises(UpstreamError) as raised:
        await batches_of(provider, call_of())
    assert raised.value.reason == errors_pb2.REASON_UPSTREAM_RATE_LIMITED


async def test_tokens_are_counted_by_the_provider(
    server: Server, provider: AnthropicProvider
) -> None:
    server.answer = whole({"input_tokens": 17})
    assert await provider.count_tokens(call_of(dialect=ANTHROPIC, betas=["one"])) == 17
    assert server.requests[0].path == "/v1/messages/count_tokens"
    assert server.requests[0].headers["anthropic-beta"] == "one"
    assert checks().count_tokens(server.bodies[0]) is None


@pytest.mark.parametrize("body", [{}, {"input_tokens": "17"}, {"input_tokens": -1}])
async def test_a_count_that_is_none_is_the_providers_failure(
    server: Server, provider: AnthropicProvider, body: Any
) -> None:
    server.answer = whole(body)
    with pytest.raises(UpstreamError) as raised:
        await provider.count_tokens(call_of())
    assert raised.value.reason == errors_pb2.REASON_UPSTREAM_ERROR


async def test_the_adapter_is_a_provider_that_signs(provider: AnthropicProvider) -> None:
    known: Provider = provider
    assert (known.name, known.dialect, known.signs_thinking) == ("claude", ANTHROPIC, True)
    await known.close()

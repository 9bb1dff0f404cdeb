import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import orjson
import pytest

from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import Event, GenerateResponse
from services.common.errors import GatewayError, UpstreamError
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.providers.base import AnswerForm, Call
from services.inference.providers.openai import OpenAIProvider
from services.inference.stream.accumulator import Accumulator
from tests.services.inference.providers.openai_calls import USER, call_of, medium, says
from tests.services.inference.providers.scripted_server import (
    END,
    SSE_HEAD,
    Connection,
    Script,
    ScriptedUpstream,
    scripted_upstream,
)


@pytest.fixture
async def here() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream() as made:
        yield made
        assert made.live.count == 0, "every call that began is over"


def provider(here: ScriptedUpstream, **limits: float) -> OpenAIProvider:
    return OpenAIProvider(
        "acme",
        here.upstream(None, **limits),
        pass_stateful=False,
        newest=True,
        fetches_urls=False,
    )


def line(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def content(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return line({"id": "a1", "model": "g", "choices": [choice]})


DONE = b"data: [DONE]\n\n"


def streams(*pieces: bytes, end: bytes = END) -> Script:
    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        for piece in pieces:
            await connection.chunk(piece)
        await connection.send(end)

    return script


def then_silence(piece: bytes) -> Script:
    async def script(connection: Connection) -> None:
        await streams(piece, end=b"")(connection)
        await connection.until_left()

    return script


async def batches_of(provider: OpenAIProvider, call: Call) -> list[list[Event]]:
    if not call.stream:
        return [await provider.whole(call)]
    return [list(batch) async for batch in provider.stream(call)]


async def answer(provider: OpenAIProvider, call: Call) -> GenerateResponse:
    if call.accepts is AnswerForm.PASSTHROUGH:
        passed = await provider.whole(call)
        assert isinstance(passed, PassthroughAnswer)
        return passed.response()
    accumulator = Accumulator()
    for batch in await batches_of(provider, call):
        accumulator.add(batch)
    return accumulator.response()


def reason_of(error: GatewayError) -> str:
    return Reason.Name(error.reason).removeprefix("REASON_")


async def test_a_whole_answer_is_asked_for_and_given_as_one_batch(here: ScriptedUpstream) -> None:
    choice = {"index": 0, "message": {"content": "hey"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    body = orjson.dumps({"id": "a1", "model": "g", "choices": [choice], "usage": usage})
    here.server.plays(lambda c: c.answer(body))
    [batch] = await batches_of(provider(here), call_of())
    accumulator = Accumulator()
    accumulator.add(batch)
    response = accumulator.response()
    assert (response.id, response.choices[0].blocks[0].text) == ("a1", "hey")
    assert response.usage.input_tokens == 3
    [request] = here.server.requests
    assert request.target == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer very-secret-word"
    assert orjson.loads(request.body)["model"] == "gpt-1"


@pytest.mark.parametrize("taken", [True, False])
async def test_a_whole_answer_goes_as_it_is_where_that_is_taken(
    here: ScriptedUpstream, taken: bool
) -> None:
    call = call_of(n=2)
    call.accepts = AnswerForm.PASSTHROUGH if taken else AnswerForm.EVENTS
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
        for index, text in enumerate(("hey", "you"))
    ]
    body = orjson.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "g",
            "choices": choices,
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        }
    )
    here.server.plays(lambda c: c.answer(body))
    response = await answer(provider(here), call)
    assert response.passthrough == (body if taken else b"")
    assert len(response.choices) == (0 if taken else 2)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 2)


async def test_a_stream_yields_one_batch_for_each_read(here: ScriptedUpstream) -> None:
    seen = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(content("a") + content("b"))
        await seen.wait()
        await connection.chunk(content("c", "stop") + DONE)
        await connection.send(END)

    here.server.plays(script)
    batches: list[int] = []
    async for batch in provider(here).stream(call_of(stream=True)):
        batches.append(len(batch))
        seen.set()
    # start, block_start, a, b; then c, block_stop, finish
    assert batches == [4, 3]
    assert orjson.loads(here.server.requests[0].body)["stream"] is True


async def test_streams_one_after_the_other_share_a_connection(here: ScriptedUpstream) -> None:
    here.server.plays(streams(content("a", "stop"), DONE))
    for _ in range(3):
        await answer(provider(here), call_of(stream=True))
    assert here.server.connections == 1


@pytest.mark.parametrize("size", [1, 7, 64])
async def test_a_stream_cut_into_small_pieces_is_the_same_answer(
    here: ScriptedUpstream, size: int
) -> None:
    whole = content("hello ") + b": keep-alive\r\n\r\n" + content("wörld", "stop") + DONE
    pieces = (whole[at : at + size] for at in range(0, len(whole), size))
    here.server.plays(streams(*pieces))
    response = await answer(provider(here), call_of(stream=True))
    assert response.choices[0].blocks[0].text == "hello wörld"


async def test_16_mb_in_one_line_are_one_text(here: ScriptedUpstream) -> None:
    here.server.plays(streams(content("x" * (16 << 20), "stop"), DONE))
    response = await answer(provider(here), call_of(stream=True))
    assert len(response.choices[0].blocks[0].text) == 16 << 20


async def test_an_unrepresentable_request_sends_nothing(here: ScriptedUpstream) -> None:
    call = call_of(says(USER, medium("video", data=b"x", mime_type="video/mp4")))
    with pytest.raises(GatewayError) as raised:
        await batches_of(provider(here), call)
    assert reason_of(raised.value) == "UNSUPPORTED"
    assert here.server.connections == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_of_the_provider_is_reported(here: ScriptedUpstream, stream: bool) -> None:
    body = b'{"error":{"message":"no","code":"context_length_exceeded"}}'
    here.server.plays(lambda c: c.answer(body, 400))
    with pytest.raises(UpstreamError) as raised:
        await batches_of(provider(here), call_of(stream=stream))
    assert reason_of(raised.value) == "CONTEXT_LENGTH_EXCEEDED"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"choices":[{}'])
async def test_an_answer_of_200_that_is_none_is_a_failure(
    here: ScriptedUpstream, body: bytes
) -> None:
    here.server.plays(lambda c: c.answer(body))
    with pytest.raises(UpstreamError) as raised:
        await batches_of(provider(here), call_of())
    assert reason_of(raised.value) == "UPSTREAM_ERROR"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (streams(content("a")), "UPSTREAM_CONNECTION"),
        (streams(content("a"), line({"error": {"code": 503}})), "UPSTREAM_ERROR"),
        (streams(content("a"), b"data: {\n\n"), "UPSTREAM_ERROR"),
        (streams(content("a") + b"data: {\n\n"), "UPSTREAM_ERROR"),
        (then_silence(content("a")), "UPSTREAM_TIMEOUT"),
    ],
)
async def test_a_broken_stream_yields_its_events_then_the_error(
    here: ScriptedUpstream, script: Script, reason: str
) -> None:
    here.server.plays(script)
    arrived: list[str] = []
    # A pause before what comes is no silence of the server.
    idle_s = 0.1 if reason == "UPSTREAM_TIMEOUT" else 60
    with pytest.raises(UpstreamError) as raised:
        async for batch in provider(here, stream_idle_s=idle_s).stream(call_of(stream=True)):
            arrived.extend(event.text for event in batch if event.text)
    assert (arrived, reason_of(raised.value)) == (["a"], reason)


async def test_a_connection_lost_midway_is_a_connection_failure(here: ScriptedUpstream) -> None:
    seen = asyncio.Event()

    async def script(connection: Connection) -> None:
        await streams(content("a"), end=b"")(connection)
        await seen.wait()
        connection.reset()

    here.server.plays(script)
    with pytest.raises(UpstreamError) as raised:
        async for _ in provider(here).stream(call_of(stream=True)):
            seen.set()
    assert seen.is_set()
    assert reason_of(raised.value) == "UPSTREAM_CONNECTION"


@pytest.mark.parametrize("pieces", [(), (DONE,), (b": nothing\n\n",)])
async def test_an_empty_stream_is_a_connection_failure(
    here: ScriptedUpstream, pieces: tuple[bytes, ...]
) -> None:
    here.server.plays(streams(*pieces))
    with pytest.raises(UpstreamError) as raised:
        await batches_of(provider(here), call_of(stream=True))
    assert reason_of(raised.value) == "UPSTREAM_CONNECTION"


@pytest.mark.parametrize("last", ["reset", "stall"])
async def test_after_the_reason_to_end_no_failure_counts(here: ScriptedUpstream, last: str) -> None:
    gone = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        await connection.chunk(content("a", "stop"))
        await gone.wait()
        if last == "reset":
            connection.reset()
        else:
            await connection.until_left()

    here.server.plays(script)
    accumulator = Accumulator()
    async for batch in provider(here, stream_idle_s=0.05).stream(call_of(stream=True)):
        accumulator.add(batch)
        gone.set()
    assert accumulator.response().choices[0].blocks[0].text == "a"


@pytest.mark.parametrize("before", [b"", SSE_HEAD, SSE_HEAD + b"%x\r\n" % len(content("a"))])
async def test_a_caller_that_leaves_ends_the_call_at_the_provider(
    here: ScriptedUpstream, before: bytes
) -> None:
    waiting = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.send(before)
        if before.endswith(b"\n") and before not in (b"", SSE_HEAD):
            await connection.send(content("a") + b"\r\n")
        waiting.set()
        await connection.until_left()

    here.server.plays(script)
    task = asyncio.ensure_future(batches_of(provider(here), call_of(stream=True)))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (here.live.most, here.live.count) == (1, 0)
    await asyncio.wait_for(here.server.left.wait(), 60)


async def test_closing_an_answer_midway_ends_the_upstream_call(here: ScriptedUpstream) -> None:
    here.server.plays(then_silence(content("a")))
    async with aclosing(provider(here).stream(call_of(stream=True))) as batches:
        await anext(batches)
        assert here.live.count == 1
    assert here.live.count == 0
    await asyncio.wait_for(here.server.left.wait(), 60)


async def test_the_dialect_has_no_count_of_tokens(here: ScriptedUpstream) -> None:
    assert await provider(here).count_tokens(call_of()) is None
    assert here.server.connections == 0

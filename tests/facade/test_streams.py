"""Streams as a caller sees them: signs of life, broken ends, leaving, sizes."""

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import each_row
from tests.thoroughness import examples
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/beta/v1/chat/completions"
MESSAGES = "/beta/v1/messages"
SOON_S = 0.05


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def impatient(tmp_path_factory):
    """Return a gateway that holds headers, and waits between signs of life, 50 ms only."""
    limits = {"hold_headers_s": SOON_S, "keepalive_s": SOON_S}
    async with running_gateway(tmp_path_factory.mktemp("gateway"), limits=limits) as one:
        yield one


def asking(gateway: Gateway, path: str, model: str, stream: bool = True, **more: Any):
    body = {
        "model": model,
        "max_tokens": 1000,
        "stream": stream,
        "messages": [{"role": "user", "content": "Hello, how are you?"}],
        **more,
    }
    return gateway.http.post(
        gateway.url + path,
        headers={**gateway.api_key(), "Content-Type": "application/json"},
        data=io.BytesIO(orjson.dumps(body)),
    )


@pytest.mark.parametrize("provider", ["sandbox", "openai", "anthropic"])
@pytest.mark.parametrize(("path", "sign"), [(CHAT, b": "), (MESSAGES, b"event: ping\n")])
async def test_a_silent_model_leaves_the_caller_with_signs_of_life(impatient, path, sign, provider):
    async with asking(impatient, path, f"{provider}/stall") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/event-stream"
        for _ in range(3):
            assert (await answer.content.readuntil(b"\n\n")).startswith(sign)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_silence_in_the_middle_is_bridged_too(impatient, path):
    async with asking(impatient, path, "openai/stall-half") as answer:
        read = b""
        while read.count(b": keep-alive" if path == CHAT else b"event: ping") < 2:
            read += await answer.content.readany()
    assert b"Sandbox" in read


@pytest.mark.parametrize("provider", ["sandbox", "openai", "anthropic"])
@pytest.mark.parametrize("model", ["cut", "fail-late"])
async def test_a_broken_chat_ends_with_an_error_and_no_terminator(gateway, provider, model):
    async with asking(gateway, CHAT, f"{provider}/{model}", fallback="disabled") as answer:
        text = await answer.text()
    events = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert "error" in orjson.loads(events[-1])
    assert "[DONE]" not in text
    assert '"finish_reason":"stop"' not in text


@pytest.mark.parametrize("provider", ["sandbox", "openai", "anthropic"])
@pytest.mark.parametrize("model", ["cut", "fail-late"])
async def test_a_broken_message_ends_with_an_error_event(gateway, provider, model):
    async with asking(gateway, MESSAGES, f"{provider}/{model}", fallback="disabled") as answer:
        text = await answer.text()
    *_, last = text.strip().split("\n\n")
    kind, data = last.split("\n")
    assert kind == "event: error"
    assert orjson.loads(data.removeprefix("data: "))["type"] == "error"
    assert "message_stop" not in text


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_whole_answer_that_breaks_off_is_a_failure(gateway, path, provider):
    once = {"stream": False, "fallback": "disabled"}
    async with asking(gateway, path, f"{provider}/cut", **once) as answer:
        assert answer.status == 502


async def live(gateway: Gateway) -> int:
    async with gateway.http.get(f"{gateway.upstream}/sandbox/live") as answer:
        return (await answer.json())["open"]


@each_row("path", [CHAT, MESSAGES])
@each_row("provider", ["openai", "anthropic"])
@each_row(
    ("model", "stream", "window"),
    [
        ("stall", True, "before headers"),
        ("stall-open", True, "before the first token"),
        ("stall-half", True, "in the middle"),
        ("stall", False, "without a stream"),
    ],
)
async def test_a_caller_who_leaves_ends_the_providers_call(
    gateway, path, provider, model, stream, window
):
    async def talk() -> None:
        async with asking(gateway, path, f"{provider}/{model}", stream) as answer:
            async for _ in answer.content.iter_any():
                heard.set()

    heard = asyncio.Event()
    talking = asyncio.create_task(talk())

    async def is_open() -> bool:
        return await live(gateway) == 1

    async def is_closed() -> bool:
        return await live(gateway) == 0

    await until(is_open)
    if window == "in the middle":
        await heard.wait()
    talking.cancel()
    await asyncio.gather(talking, return_exceptions=True)
    await until(is_closed)


@pytest.mark.thorough
async def test_many_callers_who_leave_leave_nothing_behind(gateway):
    """Each leaves somewhere in its stream; no call stays open at a provider."""

    async def leave(number: int) -> None:
        path = (CHAT, MESSAGES)[number % 2]
        provider = ("openai", "anthropic")[number // 2 % 2]
        model = ("stall-half", "stall-open", "echo", "stall")[number // 4 % 4]
        try:
            async with asyncio.timeout(0.2):
                async with asking(gateway, path, f"{provider}/{model}") as answer:
                    await answer.content.readany()
        except TimeoutError:
            pass

    for start in range(0, examples(200), 50):
        await asyncio.gather(*(leave(number) for number in range(start, start + 50)))

    async def is_closed() -> bool:
        return await live(gateway) == 0

    await until(is_closed)


def upstream_with_line(size: int) -> web.Application:
    """Serve one event whose line is `size` bytes and more, and the end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "created": 1}
        text = {**head, "choices": [{"index": 0, "delta": {"content": "ab" * (size // 2)}}]}
        end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        for event in (text, end):
            await response.write(b"data: " + orjson.dumps(event) + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return app


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_a_line_of_16_megabytes_passes(tmp_path, path):
    size = 16 << 20
    async with running_gateway(tmp_path, upstream_with_line(size)) as one:
        async with asking(one, path, "openai/m") as answer:
            total = 0
            async for line in lines(answer):
                total += line.count(b"ab")
    assert total == size // 2


async def lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    buffer = bytearray()
    async for chunk in answer.content.iter_any():
        buffer += chunk
    for line in bytes(buffer).split(b"\n"):
        yield line


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_100_000_messages_are_answered_and_one_more_is_refused(tmp_path, path):
    messages = [
        {"role": ("user", "assistant")[number % 2], "content": f"Message {number}"}
        for number in range(100_001)
    ]
    async with running_gateway(tmp_path) as one:
        async with asking(one, path, "sandbox/echo", False, messages=messages[1:]) as answer:
            assert answer.status == 200
            assert "Message 100000" in await answer.text()
        async with asking(one, path, "sandbox/echo", False, messages=messages) as answer:
            assert answer.status == 400
            assert (await answer.json())["error"]["param"] == "messages"

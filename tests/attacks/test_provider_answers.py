"""Answers of providers that exhaust the gateway's memory or keep its event loop busy."""

import asyncio
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from tests.attacks.hostile_upstream import hostile_upstream
from tests.attacks.observer import Observer
from tests.e2e.gateway import Gateway
from tests.waiting import until

pytestmark = pytest.mark.thorough(one_in=3)

# What ends by a bound, of streamed chat completions unless it says otherwise, and which.
BOUNDED = {
    "text": "limits.max_answer_bytes",
    "other-text": "limits.max_answer_bytes",
    "thoughts": "limits.max_answer_bytes",
    "nothing": "limits.max_answer_bytes",
    "usage": "limits.max_answer_bytes",
    "comments": "limits.max_answer_bytes",
    "blank-lines": "limits.max_answer_bytes",
    "fields": "limits.max_answer_bytes",
    "one-line": "limits.max_sse_line_bytes",
    "byte-chunks": "limits.max_answer_bytes",
    "calls": "limits.max_answer_parts",
    "kinds": "limits.max_answer_parts",
    "half-call": "limits.max_answer_parts",
}
OF_MESSAGES = {"blocks": "limits.max_answer_parts", "deltas": "limits.max_answer_parts"}
OF_GEMINI = {
    "gemini-text": "limits.max_answer_bytes",
    "gemini-parts": "limits.max_answer_parts",
    "gemini-line": "limits.max_sse_line_bytes",
}
OF_RESPONSES = {
    "response-text": "limits.max_answer_bytes",
    "response-items": "limits.max_answer_bytes",
    "response-others": "limits.max_answer_parts",
}
OF_WHOLES = {
    "whole": "limits.max_answer_bytes",
    "values": "limits.max_answer_values",
    "passed-values": "limits.max_answer_values",
}
BROKEN = (
    *("far-choice", "next-choice", "second-choice", "head", "interim", "trailers", "switch"),
    *("gzip", "code", "retry-after"),
)


@pytest.fixture(scope="module")
def settings(upstream_port: int) -> str:
    """Return bounds that are reached sooner than the default ones, and a provider of responses."""
    return (
        f'\n[providers.native]\nkind = "openai"\napi_key = "upstream-key"\nresponses = true\n'
        f'base_url = "http://127.0.0.1:{upstream_port}/v1"\n'
        f"[limits]\nmax_answer_bytes = {4 << 20}\nmax_sse_line_bytes = {2 << 20}\n"
    )


@pytest.fixture(scope="module")
def upstream_port() -> Iterator[int]:
    with hostile_upstream() as port:
        yield port


class Attacker:
    """Asks for answers, and reads them to their end."""

    def __init__(self, http: aiohttp.ClientSession, target: Gateway, key: str) -> None:
        self._http = http
        self._target = target
        self._headers = {"Authorization": f"Bearer {key}", "compat-version": "2023-06-01"}

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        """Return the status and the end of the answer."""
        url = f"{self._target.address}{path}"
        async with self._http.post(url, json=body, headers=self._headers) as response:
            end = b""
            async for piece in response.content.iter_any():
                end = end[-10_000:] + piece
            return response.status, end[-10_000:]

    async def chat(self, model: str, *, stream: bool = True, **fields: Any) -> tuple[int, bytes]:
        """Ask for a chat completion."""
        messages = [{"role": "user", "content": "hi"}]
        body = {"model": f"openai/{model}", "messages": messages, "stream": stream}
        body |= {"fallback": "disabled", **fields}
        return await self.post("/beta/v1/chat/completions", body)

    async def message(self, model: str) -> tuple[int, bytes]:
        """Ask for a streamed message."""
        messages = [{"role": "user", "content": "hi"}]
        body = {"model": f"anthropic/{model}", "messages": messages, "stream": True}
        body |= {"max_tokens": 10, "fallback": "disabled"}
        return await self.post("/beta/v1/messages", body)

    async def reached(self, limit: str) -> float:
        """Return how often a limit was reached."""
        async with self._http.get(f"{self._target.metrics_url}/metrics") as response:
            page = await response.text()
        name = f'gateway_limits_reached_total{{limit="{limit}"}} '
        return sum(float(line[len(name) :]) for line in page.splitlines() if line.startswith(name))


@pytest.fixture
async def attacker(target: Gateway, attacker_key: str) -> Any:
    async with aiohttp.ClientSession() as http:
        yield Attacker(http, target, attacker_key)


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("script", BOUNDED)
async def test_a_stream_without_end_is_cut(
    attacker: Attacker, observer: Observer, script: str
) -> None:
    before = await attacker.reached(BOUNDED[script])
    async with observer.watch() as measured:
        status, end = await attacker.chat(script)
    assert status == 502 or b'"error"' in end.splitlines()[-2], (status, end[-500:])

    assert await attacker.reached(BOUNDED[script]) == before + 1
    measured.assert_harmless()


@pytest.mark.parametrize("script", OF_MESSAGES)
async def test_a_message_without_end_is_cut(
    attacker: Attacker, observer: Observer, script: str
) -> None:
    before = await attacker.reached(OF_MESSAGES[script])
    async with observer.watch() as measured:
        status, end = await attacker.message(script)
    assert status == 502 or b"event: error" in end, (status, end[-500:])
    assert await attacker.reached(OF_MESSAGES[script]) == before + 1
    measured.assert_harmless()


@pytest.mark.parametrize("script", OF_GEMINI)
@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_of_gemini_without_end_is_cut(
    attacker: Attacker, observer: Observer, script: str, stream: bool
) -> None:
    limit = OF_GEMINI[script] if stream else "limits.max_answer_bytes"
    before = await attacker.reached(limit)
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": f"gemini/{script}", "messages": messages, "stream": stream}
    async with observer.watch() as measured:
        status, end = await attacker.post(
            "/beta/v1/chat/completions", {**body, "fallback": "disabled"}
        )
    assert status == 502 or b'"error"' in end.splitlines()[-2], (status, end[-500:])
    assert await attacker.reached(limit) == before + 1
    measured.assert_harmless()


@pytest.mark.parametrize("script", OF_RESPONSES)
async def test_a_response_without_end_is_cut(
    attacker: Attacker, observer: Observer, script: str
) -> None:
    before = await attacker.reached(OF_RESPONSES[script])
    body = {"model": f"native/{script}", "input": "hi", "stream": True, "store": False}
    async with observer.watch() as measured:
        status, end = await attacker.post("/beta/v1/responses", {**body, "fallback": "disabled"})
    # The event of the failure holds the items so far: all that is read here may be of it.
    assert status == 502 or b"event: response.completed" not in end, (status, end[-500:])
    assert await attacker.reached(OF_RESPONSES[script]) == before + 1
    measured.assert_harmless()


@pytest.mark.parametrize("script", OF_WHOLES)
async def test_a_whole_answer_without_end_is_a_failure(
    attacker: Attacker, observer: Observer, script: str
) -> None:
    before = await attacker.reached(OF_WHOLES[script])
    async with observer.watch() as measured:
        status, end = await attacker.chat(script, stream=False)
    assert (status, b'"upstream_error"' in end) == (502, True), end
    assert await attacker.reached(OF_WHOLES[script]) == before + 1
    measured.assert_harmless()


@pytest.mark.parametrize("script", BROKEN)
@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_no_answer_is_a_failure(
    attacker: Attacker, observer: Observer, script: str, stream: bool
) -> None:
    async with observer.watch() as measured:
        status, end = await attacker.chat(script, stream=stream)
    assert status == 502, (status, end)
    measured.assert_harmless()


@pytest.mark.parametrize("script", ["list-for-type", "grown-usage"])
async def test_what_is_no_message_is_a_failure(
    attacker: Attacker, observer: Observer, script: str
) -> None:
    async with observer.watch() as measured:
        status, end = await attacker.message(script)
    assert status == 502, (status, end)
    measured.assert_harmless()


async def test_fields_repeated_by_every_chunk_are_sent_once(
    attacker: Attacker, observer: Observer
) -> None:
    async with observer.watch() as measured:
        status, end = await attacker.chat("long-head")
    assert (status, end[-14:]) == (200, b"data: [DONE]\n\n")
    measured.assert_harmless()


async def test_a_remembered_answer_is_cut_when_the_caller_leaves(
    attacker: Attacker, target: Gateway, attacker_key: str, observer: Observer
) -> None:
    body = {
        "model": "openai/other-text",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "memory_id": "left",
        "fallback": "disabled",
    }
    headers = {"Authorization": f"Bearer {attacker_key}"}
    url = f"{target.address}/beta/v1/chat/completions"
    async with observer.watch() as measured, aiohttp.ClientSession() as http:
        async with http.post(url, json=body, headers=headers) as response:
            await response.content.readany()
            response.close()

        async def live() -> float:
            async with http.get(f"{target.metrics_url}/metrics") as response:
                lines = (await response.text()).splitlines()
            return sum(float(x.split()[-1]) for x in lines if x.startswith("gateway_upstream_live"))

        async def is_over() -> bool:
            return await live() == 0

        await until(is_over, within_s=20, every_s=0.1)
    measured.assert_harmless()


@pytest.mark.parametrize("name", ["caf\xe9", "\xff"])
async def test_a_beta_feature_that_is_no_word_is_refused(target: Gateway, name: str) -> None:
    headers = {"Authorization": f"Bearer {target.key}", "anthropic-version": "2023-06-01"}
    body = b'{"model":"sandbox/echo","max_tokens":9,"messages":[{"role":"user","content":"a"}]}'
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
    head = (
        f"POST /beta/v1/messages HTTP/1.1\r\nhost: x\r\n{lines}content-type: application/json\r\n"
        f"connection: close\r\nanthropic-beta: {name}\r\ncontent-length: {len(body)}\r\n\r\n"
    )

    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    writer.write(head.encode("latin-1") + body)
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert b"anthropic-beta" in answer

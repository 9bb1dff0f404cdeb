"""Conversations too large for the process that serves them to parse: nothing in them is lost."""

from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import orjson
import pytest
import pytest_asyncio
from aiohttp import web

from facade.parsing import is_quick
from services.common.messages.lazy_request import MAX_SMALL
from tests.gateway_in_process import Gateway, running_gateway, serving
from tests.upstream.app import create_app

pytestmark = pytest.mark.asyncio(loop_scope="module")

# More values than are parsed in a thread, and more bytes than are worked on there at once.
TURNS = 8_001
TEXTS = [f"{number}: " + "Grüße " * 18 for number in range(TURNS)]
ROLES = ("user", "assistant")
MESSAGES: list[dict[str, Any]] = [
    {"role": ROLES[number % 2], "content": text} for number, text in enumerate(TEXTS)
]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"city":"B"}'}}
CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        *MESSAGES,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "the result"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
}
ANTHROPIC = {
    "max_tokens": 50,
    "system": "Be brief.",
    "messages": [
        *MESSAGES,
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "call_1", "name": "f", "input": {"city": "B"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "the result"},
            ],
        },
    ],
    "tools": [{"name": "f", "input_schema": SCHEMA}],
}
RESPONSE = {
    "store": False,
    "instructions": "Be brief.",
    "input": [
        *MESSAGES,
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"city":"B"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "the result"},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": False}],
}
HEADERS = {"content-type": "application/json", "compat-version": "2023-06-01"}
BODIES = {"chat/completions": CHAT, "messages": ANTHROPIC, "responses": RESPONSE}
ORDER = {"mode": "sequential"}
NEXT = {"step_id": "next", "model": "anthropic/echo"}
ANTHROPIC_NEXT = {"fallback": "enabled", "fallback_config": {"strategy": ORDER, "steps": [NEXT]}}


class Sent(list[bytes]):
    """The bodies of large requests to providers."""

    @web.middleware
    async def keep(self, request: web.Request, handler: Any) -> web.StreamResponse:
        # Others ask what the server can do.
        if request.content_length and request.content_length > MAX_SMALL:
            self.append(await request.read())
        return await handler(request)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Gateway, Sent]]:
    sent = Sent()
    upstream = create_app()
    upstream.middlewares.append(sent.keep)
    async with serving(upstream) as url:
        providers = {
            "responses": {"kind": "openai", "base_url": f"{url}/v1", "responses": True},
            "openai": {"kind": "openai", "base_url": f"{url}/v1"},
            "anthropic": {"kind": "anthropic", "base_url": url},
            "gemini": {"kind": "gemini", "base_url": f"{url}/v1beta"},
        }
        providers = {name: {**one, "api_key": "k"} for name, one in providers.items()}
        folder = tmp_path_factory.mktemp("gateway")
        async with running_gateway(folder, url, providers=providers) as gateway:
            yield gateway, sent


@pytest.mark.parametrize(
    ("endpoint", "model", "fields"),
    [
        ("chat/completions", "openai/echo", {}),
        ("chat/completions", "anthropic/echo", {"stream": True}),
        ("chat/completions", "openai/fail-500", ANTHROPIC_NEXT),
        ("chat/completions", "openai/echo", {"memory_id": "large"}),
        ("messages", "anthropic/echo", {}),
        ("messages", "openai/echo", {"stream": True}),
        ("messages", "gemini/echo", {}),
        ("responses", "responses/echo", {}),
        ("responses", "anthropic/echo", {}),
    ],
)
async def test_every_message_of_it_is_sent(
    running: tuple[Gateway, Sent], endpoint: str, model: str, fields: dict[str, Any]
) -> None:
    gateway, sent = running
    body = orjson.dumps({"model": model, **BODIES[endpoint], **fields})
    assert len(body) > MAX_SMALL and not is_quick(body)
    async with gateway.http.post(
        f"{gateway.url}/v1/{endpoint}",
        data=BytesIO(body),
        headers={**gateway.bearer(), **HEADERS},
    ) as answer:
        assert answer.status == 200, (await answer.text())[:500]
        await answer.read()
    received = orjson.dumps(orjson.loads(sent[-1])).decode()
    place = 0
    for text in TEXTS:
        place = received.index(f'"{text}"', place) + len(text)
    assert received.count("Be brief.") == received.count("the result") == 1
    assert place < received.index("the result")

"""A `max_tokens` above what a model accepts: the request goes once more with the bound."""

from typing import Any

import pytest
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway

Json = dict[str, Any]

BOUND = 2_048
ASKED = {"role": "user", "content": "Go"}
CHAT = {"role": "assistant", "content": "ok"}
PARTS = {"role": "model", "parts": [{"text": "ok"}]}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
MESSAGE |= {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
ANSWERS: dict[str, Json] = {
    "openai": {"id": "c", "choices": [{"index": 0, "message": CHAT, "finish_reason": "stop"}]},
    "anthropic": {**MESSAGE, "usage": {"input_tokens": 1, "output_tokens": 1}},
    "gemini": {"candidates": [{"content": PARTS, "finishReason": "STOP"}]},
}
REFUSALS = {
    "openai": "max_tokens is too large: {0}. This model supports at most {1} completion tokens, "
    "whereas you provided {0}.",
    "anthropic": "max_tokens: {0} > {1}, which is the maximum allowed number of output tokens",
    "gemini": "The maxOutputTokens must be at most {1}",
}


class BoundedServer:
    """A server of every dialect that rejects more than BOUND output tokens.

    Attributes:
        sent: the `max_tokens` of each request.
    """

    def __init__(self) -> None:
        self.sent: list[int] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._handler("openai"))
        app.router.add_post("/v1/messages", self._handler("anthropic"))
        app.router.add_post("/v1beta/models/{rest:.*}", self._handler("gemini"))
        return app

    def _handler(self, kind: str) -> Any:
        async def handle(request: web.Request) -> web.Response:
            body = await request.json()
            names = ("max_tokens", "max_completion_tokens")
            asked = body.get("generationConfig", {}).get("maxOutputTokens", 0)
            asked = next((body[name] for name in names if name in body), asked)
            self.sent.append(asked)
            if asked > BOUND:
                error = {"message": REFUSALS[kind].format(asked, BOUND)}
                return web.json_response({"type": "error", "error": error}, status=400)
            return web.json_response(ANSWERS[kind])

        return handle


async def ask(gateway: Gateway, path: str, **body: Any) -> tuple[int, str]:
    """Return the status, and what the answer names as dropped."""
    headers = gateway.api_key() if path == "messages" else gateway.bearer()
    url = f"{gateway.url}/beta/v1/{path}"
    async with gateway.http.post(url, json=body, headers=headers) as answer:
        await answer.read()
        return answer.status, answer.headers.get("x-gateway-dropped", "")


TOOLS = [{"name": "f", "input_schema": {"type": "object", "properties": {"a": {}}}}]
CALLERS: dict[str, tuple[str, Json]] = {
    "messages": ("messages", {"max_tokens": 64_000, "messages": [ASKED]}),
    "messages with tools": (
        "messages",
        {"max_tokens": 64_000, "messages": [ASKED], "tools": TOOLS},
    ),
    "a chat": ("chat/completions", {"max_tokens": 64_000, "messages": [ASKED]}),
    "a response": ("responses", {"max_output_tokens": 64_000, "input": "Go"}),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", ANSWERS)
@pytest.mark.parametrize("caller", CALLERS)
async def test_a_bound_costs_one_request_of_its_model(tmp_path, caller, provider, stream):
    path, body = CALLERS[caller]
    field = "max_output_tokens" if path == "responses" else "max_tokens"
    server = BoundedServer()
    async with running_gateway(tmp_path, server.app()) as gateway:
        for model, sent in (
            ("m", [64_000, BOUND]),
            ("m", [BOUND]),
            ("other", [64_000, BOUND]),
        ):
            server.sent.clear()
            fields = {**body, "model": f"{provider}/{model}", "stream": stream}
            assert await ask(gateway, path, **fields) == (200, field)
            assert server.sent == sent


async def test_a_request_within_the_bound_is_sent_as_it_is(tmp_path):
    server = BoundedServer()
    async with running_gateway(tmp_path, server.app()) as gateway:
        body = {"model": "anthropic/m", "messages": [ASKED]}
        for most, sent in ((64_000, [64_000, BOUND]), (BOUND, [BOUND]), (1_000, [1_000])):
            server.sent.clear()
            status, dropped = await ask(gateway, "messages", **body, max_tokens=most)
            assert (status, dropped) == (200, "max_tokens" if most > BOUND else "")
            assert server.sent == sent


@pytest.mark.parametrize("with_tools", [False, True])
async def test_the_gateways_own_default_yields_to_the_bound(tmp_path, with_tools):
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}}}}
    tools = {"tools": [{"type": "function", "function": function}]} if with_tools else {}
    server = BoundedServer()
    async with running_gateway(tmp_path, server.app()) as gateway:
        for sent in ([4_096, BOUND], [BOUND]):
            server.sent.clear()
            body = {"model": "anthropic/m", "messages": [ASKED], **tools}
            assert await ask(gateway, "chat/completions", **body) == (200, "")
            assert server.sent == sent


async def test_a_thinking_budget_stays_below_the_bound(tmp_path):
    server = BoundedServer()
    async with running_gateway(tmp_path, server.app()) as gateway:
        thinking = {"type": "enabled", "budget_tokens": 32_000}
        body = {"model": "anthropic/m", "messages": [ASKED], "thinking": thinking}
        status, dropped = await ask(gateway, "messages", **body, max_tokens=64_000)
        assert (status, dropped, server.sent) == (200, "max_tokens", [64_000, BOUND])

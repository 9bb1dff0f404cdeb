"""Cache breakpoints of each dialect at a provider of the other, by the tokens that it counts.

The server caches as OpenAI and Anthropic do: prefixes that end at a breakpoint, for its lifetime.
A token is a character.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from tests.gateway_in_process import Gateway, running_gateway

MINUTES = {"5m": 5, "30m": 30, "1h": 60, "12h": 720}
STABLE, RULES = "Answer briefly. " * 20, "Use metres. " * 10
MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
BREAK: Any = {"prompt_cache_breakpoint": {"mode": "explicit"}}


class Cache:
    """A provider of both dialects, with a cache and a clock.

    Attributes:
        now: minutes.
        bodies: the requests that it has accepted.
        refuses: a field of parts that it refuses.
    """

    def __init__(self) -> None:
        self.now = 0
        self.bodies: list[Any] = []
        self.refuses = ""
        self._until: dict[str, int] = {}

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    def _count(self, parts: list[tuple[str, int]]) -> tuple[int, int, int]:
        """Return the tokens that are read, written and neither; each part has its minutes."""
        prefix, ends = "", []
        for text, minutes in parts:
            prefix += text
            if minutes:
                ends.append((prefix, minutes))
        known = [end for end, _ in ends if self._until.get(end, -1) >= self.now]
        read = max(map(len, known), default=0)
        written = max((len(end) for end, _ in ends), default=read) - read
        self._until |= {end: self.now + minutes for end, minutes in ends}
        return read, written, len(prefix) - read - written

    async def _messages(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        parts = [*_parts(body, "cache_control", "5m")]
        assert sum(1 for _, minutes in parts if minutes) <= 4
        lifetimes = [minutes for _, minutes in parts if minutes]
        assert lifetimes == sorted(lifetimes, reverse=True), "a longer lifetime comes first"
        read, written, fresh = self._count(parts)
        usage = {"input_tokens": fresh, "output_tokens": 1, "cache_read_input_tokens": read}
        usage["cache_creation_input_tokens"] = written
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        content = [{"type": "text", "text": "Yes."}]
        return web.json_response(
            {**head, "content": content, "stop_reason": "end_turn", "usage": usage}
        )

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self.refuses and self.refuses in str(body):
            message = f"Unknown parameter: 'messages[0].content[0].{self.refuses}'."
            error = {"message": message, "code": "unknown_parameter"}
            return web.json_response({"error": error}, status=400)
        self.bodies.append(body)
        parts = [*_parts(body, "prompt_cache_breakpoint", "30m")]
        read, written, fresh = self._count(parts)
        details = {"cached_tokens": read, "cache_write_tokens": written}
        prompt = read + written + fresh
        usage = {
            **{"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1},
            "prompt_tokens_details": details,
        }
        message = {"role": "assistant", "content": "Yes."}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return web.json_response({"id": "c1", "model": "m", "choices": choices, "usage": usage})


def _parts(body: Any, field: str, lifetime: str) -> Iterator[tuple[str, int]]:
    contents = [body.get("system") or "", *(one["content"] or "" for one in body["messages"])]
    for content in contents:
        for part in [{"text": content}] if isinstance(content, str) else content:
            inner = part.get("content")
            text = part.get("text") or (inner if isinstance(inner, str) else "")
            mark = part.get(field)
            yield text, MINUTES[mark.get("ttl", lifetime)] if mark else 0


async def through_messages(gateway: Gateway, model: str, mark: Any, question: str) -> Any:
    system = [{"type": "text", "text": STABLE, **mark}, {"type": "text", "text": question}]
    body = {"model": model, "max_tokens": 50, "system": system}
    body["messages"] = [{"role": "user", "content": question}]
    url = f"{gateway.url}/beta/v1/messages"
    async with gateway.http.post(url, json=body, headers=gateway.api_key()) as answer:
        assert answer.status == 200, await answer.text()
        usage = (await answer.json())["usage"]
    return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]


async def through_chat(gateway: Gateway, model: str, mark: Any, question: str) -> Any:
    content = [{"type": "text", "text": STABLE, **mark}, {"type": "text", "text": question}]
    body = {"model": model, "messages": [{"role": "user", "content": content}]}
    url = f"{gateway.url}/beta/v1/chat/completions"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        assert answer.status == 200, await answer.text()
        details = (await answer.json())["usage"]["prompt_tokens_details"]
    return details["cached_tokens"], details["cache_write_tokens"]


async def through_responses(gateway: Gateway, model: str, mark: Any, question: str) -> Any:
    texts = [{"text": STABLE, **mark}, {"text": question}]
    content = [{"type": "input_text", **text} for text in texts]
    body = {"model": model, "input": [{"role": "user", "content": content}], "store": False}
    url = f"{gateway.url}/beta/v1/responses"
    async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
        assert answer.status == 200, await answer.text()
        details = (await answer.json())["usage"]["input_tokens_details"]
    return details["cached_tokens"], details["cache_write_tokens"]


def lasting(ttl: str) -> Any:
    return {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": ttl}}


@pytest.mark.parametrize(
    ("ask", "model", "mark", "minutes"),
    [
        (through_messages, "anthropic/m", MARK, 5),
        (through_messages, "openai/gpt-5.6", MARK, 30),
        (through_messages, "openai/gpt-5.6", HOUR, 720),
        (through_chat, "openai/gpt-5.6", BREAK, 30),
        (through_chat, "anthropic/m", BREAK, 5),
        (through_chat, "anthropic/m", lasting("30m"), 60),
        (through_chat, "anthropic/m", lasting("12h"), 60),
        (through_chat, "anthropic/m", HOUR, 60),
        (through_responses, "openai/gpt-5.6", BREAK, 30),
        (through_responses, "anthropic/m", BREAK, 5),
        (through_responses, "anthropic/m", lasting("30m"), 60),
    ],
)
async def test_a_marked_beginning_is_cached(tmp_path, ask: Any, model: str, mark: Any, minutes):
    cache = Cache()
    async with running_gateway(tmp_path, cache.app()) as gateway:
        assert await ask(gateway, model, mark, "One?") == (0, len(STABLE))
        cache.now += minutes
        assert await ask(gateway, model, mark, "Two?") == (len(STABLE), 0)
        cache.now += minutes + 1
        assert await ask(gateway, model, mark, "Three?") == (0, len(STABLE))
    # A breakpoint of the end, which no mark asks for, would replace one of them.
    is_translated = model.startswith("openai") and ask is not through_chat
    options = {"mode": "explicit"} if is_translated else None
    assert [body.get("prompt_cache_options") for body in cache.bodies] == [options] * 3


@pytest.mark.parametrize("model", ["openai/gpt-5.5", "openai/gpt-5", "openai/other"])
async def test_models_without_breakpoints_get_none(tmp_path, model: str):
    cache = Cache()
    async with running_gateway(tmp_path, cache.app()) as gateway:
        assert await through_messages(gateway, model, MARK, "One?") == (0, 0)
    assert "prompt_cache" not in str(cache.bodies)
    assert cache.bodies[0]["messages"][0]["content"] == f"{STABLE}\nOne?"


@pytest.mark.parametrize("field", ["prompt_cache_breakpoint", "prompt_cache_options"])
async def test_a_server_that_refuses_breakpoints_is_asked_without(tmp_path, field: str):
    cache = Cache()
    cache.refuses = field
    async with running_gateway(tmp_path, cache.app()) as gateway:
        for _ in range(2):
            assert await through_messages(gateway, "openai/gpt-5.6", MARK, "One?") == (0, 0)
    assert "prompt_cache_breakpoint" not in str(cache.bodies)


async def test_marks_in_results_and_beside_calls(tmp_path):
    cache = Cache()
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": RULES, **MARK}
    body = {"model": "openai/gpt-5.6", "max_tokens": 50, "system": STABLE}
    body["tools"] = [{"name": "f", "input_schema": {"type": "object"}, **MARK}]
    messages: list[Any] = [{"role": "user", "content": "Go"}]
    messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    async with running_gateway(tmp_path, cache.app()) as gateway:
        url = f"{gateway.url}/beta/v1/messages"
        for extra in ([], [{"role": "user", "content": [{"type": "text", "text": "Now?"}]}]):
            fields = {**body, "messages": [*messages, *extra]}
            async with gateway.http.post(url, json=fields, headers=gateway.api_key()) as answer:
                assert answer.status == 200, await answer.text()
                usage = (await answer.json())["usage"]
                dropped = answer.headers["x-gateway-dropped"]
    assert usage["cache_read_input_tokens"] == len(STABLE + "Go" + RULES)
    assert dropped == "tools[].cache_control"


async def test_the_latest_four_of_many_breakpoints_are_sent(tmp_path):
    cache = Cache()
    part: Any = {"type": "text", "text": "a"}
    kinds = [BREAK, BREAK, lasting("30m"), BREAK, lasting("12h"), BREAK]
    messages = [{"role": "user", "content": [{**part, **kind}]} for kind in kinds]
    async with running_gateway(tmp_path, cache.app()) as gateway:
        url = f"{gateway.url}/beta/v1/chat/completions"
        body = {"model": "anthropic/m", "messages": messages}
        async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
            assert answer.status == 200, await answer.text()
            dropped = answer.headers["x-gateway-dropped"]
    marks = [part.get("cache_control") for part in cache.bodies[0]["messages"][0]["content"]]
    long, short = HOUR["cache_control"], MARK["cache_control"]
    assert marks == [None, None, long, long, long, short]
    assert dropped == "messages[].content[].cache_control"


@pytest.mark.parametrize(
    ("options", "whole", "part"),
    [
        ({"mode": "explicit"}, None, {"type": "ephemeral"}),
        ({"mode": "implicit"}, {"type": "ephemeral"}, {"type": "ephemeral"}),
        *[
            ({"ttl": "30m", **mode}, whole, {"type": "ephemeral", "ttl": "1h"})
            for mode, whole in (
                ({}, {"type": "ephemeral", "ttl": "1h"}),
                ({"mode": "explicit"}, None),
            )
        ],
    ],
)
@pytest.mark.parametrize("endpoint", ["chat", "responses"])
async def test_options_of_the_request(tmp_path, endpoint, options, whole, part):
    cache = Cache()
    name = "text" if endpoint == "chat" else "input_text"
    messages = [{"role": "user", "content": [{"type": name, "text": "a", **BREAK}]}]
    body: Any = {"model": "anthropic/m", "prompt_cache_options": options}
    body |= {"messages": messages} if endpoint == "chat" else {"input": messages}
    path = "chat/completions" if endpoint == "chat" else "responses"
    async with running_gateway(tmp_path, cache.app()) as gateway:
        url = f"{gateway.url}/beta/v1/{path}"
        async with gateway.http.post(url, json=body, headers=gateway.bearer()) as answer:
            assert answer.status == 200, await answer.text()
            assert "x-gateway-dropped" not in answer.headers
    (sent,) = cache.bodies
    assert sent.get("cache_control") == whole
    assert sent["messages"][0]["content"][0]["cache_control"] == part

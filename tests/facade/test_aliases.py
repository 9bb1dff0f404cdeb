"""`/v1/…` answers as `/beta/v1/…` does."""

from typing import Any

import anthropic
import openai
import orjson
import pytest

from facade.aliases import names_of, route_of
from facade.app import plain_endpoints
from facade.endpoints import ENDPOINTS
from facade.openapi import document
from tests.gateway_in_process import Gateway
from tests.grid import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

HELLO = [{"role": "user", "content": "Hello"}]
# What differs between two answers to one request.
_PASSING = {"id", "created", "created_at", "expires_at", "request_id", "file_id"}


def stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: stable(inner) for key, inner in value.items() if key not in _PASSING}
    return [stable(inner) for inner in value] if isinstance(value, list) else value


async def answer(
    gateway: Gateway, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    given = gateway.bearer() | headers
    async with gateway.http.request(
        method, gateway.url + path, json=body, headers=given
    ) as response:
        return response.status, stable(orjson.loads(await response.read() or b"null"))


@each_row(
    ("method", "path", "body"),
    [
        ("POST", "/beta/v1/chat/completions", {"model": "openai/echo", "messages": HELLO}),
        ("POST", "/beta/v1/chat/completions", {"model": "openai/echo"}),
        ("POST", "/beta/v1/messages", {"model": "sandbox/echo", "max_tokens": 9}),
        ("POST", "/beta/v1/messages/count_tokens", {"model": "sandbox/echo", "messages": HELLO}),
        ("POST", "/beta/v1/embeddings", {"model": "openai/embed", "input": "a"}),
        ("POST", "/beta/v1/embeddings", {"model": "openai/embed"}),
        ("POST", "/beta/v1/responses", {"model": "openai/echo"}),
        ("GET", "/beta/v1/responses/none", None),
        ("DELETE", "/beta/v1/responses/none", None),
        ("GET", "/beta/v1/models", None),
        ("GET", "/beta/v1/models/sandbox/echo", None),
        ("GET", "/beta/v1/models/none", None),
        ("GET", "/beta/v1/files", None),
        ("GET", "/beta/v1/files/none", None),
        ("DELETE", "/beta/v1/files/none", None),
        ("GET", "/beta/v1/memories", None),
        ("GET", "/beta/v1/memory/profile", None),
        ("HEAD", "/beta/v1", None),
        ("HEAD", "/beta/v1/", None),
    ],
)
@each_row("headers", [{}, {"anthropic-version": "2023-06-01"}])
async def test_both_paths_answer_the_same(
    gateway: Gateway, method: str, path: str, body: Any, headers: dict[str, str]
) -> None:
    alias = path.removeprefix("/beta")
    assert await answer(gateway, method, path, body, **headers) == await answer(
        gateway, method, alias, body, **headers
    )


async def test_errors_have_the_form_of_the_endpoint(gateway: Gateway) -> None:
    for path, body in (("/v1/messages", b"{"), ("/v1/chat/completions", b"{")):
        async with gateway.http.post(gateway.url + path, data=body) as response:
            told = await response.json()
        assert response.status == 401
        assert ("request_id" in told) == (path == "/v1/messages")


async def test_nothing_else_is_aliased(gateway: Gateway) -> None:
    for path in ("/v1/coding/messages", "/v1", "/v1/none", "/v10/models"):
        assert (await answer(gateway, "GET", path))[0] in (404, 405)


async def test_the_sdks_take_a_host_alone(gateway: Gateway) -> None:
    async with anthropic.AsyncAnthropic(base_url=gateway.url, api_key=gateway.key) as messages:
        made = await messages.messages.create(
            model="sandbox/echo", max_tokens=50, messages=[{"role": "user", "content": "Hello"}]
        )
    assert made.type == "message"
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key) as chats:
        stream = await chats.chat.completions.create(
            model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}], stream=True
        )
        assert [chunk async for chunk in stream]


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
async def test_both_count_as_one_route(gateway: Gateway, connection: str) -> None:
    # A request with `close` is not plain: aiohttp serves it.
    def counted() -> float:
        labels = {"route": "/beta/v1/chat/completions", "status": "200"}
        return gateway.counters.get_sample_value("gateway_http_requests_total", labels) or 0

    before = counted()
    body = {"model": "sandbox/echo", "messages": HELLO}
    await answer(gateway, "POST", "/v1/chat/completions", body, Connection=connection)
    assert counted() == before + 1
    routes = {
        sample.labels["route"]
        for metric in gateway.counters.collect()
        for sample in metric.samples
        if "route" in sample.labels
    }
    assert not [route for route in routes if route.startswith("/v1")]


async def test_a_route_is_named_as_in_the_document(gateway: Gateway) -> None:
    await answer(gateway, "GET", "/v1/models/sandbox/echo")
    labels = {"route": "/beta/v1/models/{model}", "status": "200"}
    assert gateway.counters.get_sample_value("gateway_http_requests_total", labels)


async def test_plain_requests_are_served_under_both() -> None:
    endpoints = plain_endpoints()
    assert {path for path in endpoints if not path.startswith(b"/v1")} == {
        *(b"/beta/v1/chat/completions", b"/beta/v1/responses", b"/beta/v1/embeddings"),
        *(b"/beta/v1/messages", b"/coding/v1/messages"),
    }
    assert {path for path in endpoints if path.startswith(b"/v1")} == {
        path.removeprefix(b"/beta") for path in endpoints if path.startswith(b"/beta")
    }
    assert endpoints[b"/v1/messages"] is endpoints[b"/beta/v1/messages"]


async def test_the_document_says_so_once() -> None:
    told = orjson.loads(document(ENDPOINTS))
    assert "`/v1`" in told["info"]["description"]
    assert not [path for path in told["paths"] if path.startswith("/v1")]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/beta/v1/files", ["/beta/v1/files", "/v1/files"]),
        ("/beta/v1", ["/beta/v1", "/v1"]),
        ("/beta", ["/beta"]),
        ("/beta/v10", ["/beta/v10"]),
        ("/coding/v1/messages", ["/coding/v1/messages"]),
    ],
)
async def test_the_names_of_a_path(path: str, names: list[str]) -> None:
    assert [*names_of(path)] == names
    assert {route_of(name) for name in names} == {path}

"""`/v1/…` and the paths of wrong base URLs answer as `/beta/v1/…` does."""

from typing import Any

import anthropic
import openai
import orjson
import pytest

from facade.aliases import AREAS, names_of, route_of
from facade.app import plain_endpoints
from facade.description.openapi import document
from facade.endpoints import ENDPOINTS
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
    request_headers = gateway.bearer() | headers
    async with gateway.http.request(
        method, gateway.url + path, json=body, headers=request_headers
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
            answer_body = await response.json()
        assert response.status == 401
        assert ("request_id" in answer_body) == (path == "/v1/messages")


async def test_nothing_else_is_aliased(gateway: Gateway) -> None:
    for path in ("/v1/coding/messages", "/v1", "/v1/none", "/v10/models", "/v1/v1/v1/models"):
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


@each_row("base_url", ["", "/v1", "/beta", "/beta/v1", "/api/v1", "/v1/"])
async def test_the_sdks_take_the_other_one_s_base_url(gateway: Gateway, base_url: str) -> None:
    url = gateway.url + base_url
    async with anthropic.AsyncAnthropic(base_url=url, api_key=gateway.key) as messages:
        message = await messages.messages.create(
            model="sandbox/echo", max_tokens=50, messages=[{"role": "user", "content": "Hello"}]
        )
        assert message.type == "message"
        assert [model.id async for model in messages.models.list()]
    async with openai.AsyncOpenAI(base_url=url, api_key=gateway.key) as chats:
        await chats.chat.completions.create(
            model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}]
        )
        response = await chats.responses.create(model="sandbox/echo", input="Hello")
        assert (await chats.responses.retrieve(response.id)).id == response.id
        assert (await chats.models.retrieve("sandbox/echo")).id == "sandbox/echo"
        assert [file async for file in chats.files.list()] == []


@each_row(
    ("path", "headers", "expected"),
    [
        (
            "/other/v1/chat/completions",
            {},
            "did you mean POST /v1/chat/completions? The base_url of OpenAI's clients is {url}/v1;",
        ),
        ("/v1/chat/completions/", {}, "did you mean POST /v1/chat/completions?"),
        ("//v1//Chat/Completions", {}, "did you mean POST /v1/chat/completions?"),
        (
            "/anthropic/v1/messages",
            {"anthropic-version": "2023-06-01"},
            "did you mean POST /v1/messages? The base_url of Anthropic's clients is {url}, "
            "without /v1;",
        ),
        (
            "/x/chat/completions",
            {"Host": "gateway.example", "X-Forwarded-Proto": "https"},
            "is https://gateway.example/v1;",
        ),
        ("/x/chat/completions", {"Host": "<b>"}, "is this gateway's address/v1;"),
    ],
)
async def test_a_wrong_base_url_gets_the_right_one(
    gateway: Gateway, path: str, headers: dict[str, str], expected: str
) -> None:
    status, body = await answer(gateway, "POST", path, {}, **headers)
    assert (status, body["error"]["code"]) == (404, "unknown_path")
    assert expected.format(url=gateway.url) in body["error"]["message"]


@each_row(
    "path", ["/v1/none", "/x/admin/v1/keys", "/a" * 5000 + "/v1/models", "/a" * 8 + "/models"]
)
async def test_a_path_like_no_endpoint_gets_no_guess(gateway: Gateway, path: str) -> None:
    status, body = await answer(gateway, "POST", path, {})
    assert status == 404
    assert "did you mean" not in body["error"]["message"]


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
    paths = {
        *("/beta/v1/chat/completions", "/beta/v1/responses", "/beta/v1/embeddings"),
        *("/beta/v1/messages", "/coding/v1/messages"),
    }
    assert {*endpoints} == {name.encode() for path in paths for name in names_of(path)}
    for name in (b"/v1/messages", b"/messages", b"/v1/v1/messages"):
        assert endpoints[name] is endpoints[b"/beta/v1/messages"]


async def test_every_area_has_a_path_without_a_version() -> None:
    parts = [endpoint.path.split("/") for endpoint in ENDPOINTS]
    areas = {path[3] for path in parts if path[1:3] == ["beta", "v1"] and any(path[3:])}
    assert areas == {*AREAS}


async def test_the_document_says_so_once() -> None:
    parsed = orjson.loads(document(ENDPOINTS))
    assert "`/v1`" in parsed["info"]["description"]
    assert not [path for path in parsed["paths"] if path.startswith("/v1/")]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (
            "/beta/v1/files",
            [
                *("/beta/v1/files", "/v1/files", "/v1/v1/files", "/beta/v1/v1/files"),
                *("/api/v1/files", "/api/v1/v1/files", "/openai/v1/files", "/files"),
                "/beta/files",
            ],
        ),
        ("/beta", ["/beta"]),
        ("/beta/v10", ["/beta/v10"]),
        ("/coding/v1/messages", ["/coding/v1/messages", "/coding/v1/v1/messages"]),
    ],
)
async def test_the_names_of_a_path(path: str, names: list[str]) -> None:
    assert [*names_of(path)] == names
    assert {route_of(name) for name in names} == {path}

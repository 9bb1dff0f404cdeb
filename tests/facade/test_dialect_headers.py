"""Headers of a dialect between a caller and a provider, over HTTP and gRPC."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
import pytest_asyncio
from aiohttp import web

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_ANTHROPIC,
    DIALECT_OPENAI,
    ROLE_USER,
    Block,
    Message,
)
from gateway.inference.v1.inference_pb2 import (
    FALLBACK_MODE_ENABLED,
    FallbackConfig,
    FallbackStep,
    GenerateRequest,
)
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.common.errors import from_rpc_error
from services.common.grpc.authentication import call_metadata
from tests.gateway_in_process import Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
Headers = Mapping[str, str]

CHAT, MESSAGES = "/beta/v1/chat/completions", "/beta/v1/messages"
CODING, COUNT = "/coding/v1/messages", "/coding/v1/messages/count_tokens"
HELLO = [{"role": "user", "content": "Hello"}]
FROM_OPENAI = {
    "openai-processing-ms": "17",
    "openai-version": "2020-10-01",
    "openai-never-heard-of": "a b",
    "x-ratelimit-remaining-tokens": "149",
    "x-ratelimit-reset-requests": "6m0s",
}
FROM_ANTHROPIC = {
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-tokens-reset": "2026-01-01T00:00:00Z",
    "anthropic-ratelimit-unified-status": "rejected",
    "anthropic-ratelimit-unified-5h-utilization": "1.0",
    "anthropic-never-heard-of": "a b",
}
# Names of accounts, and what is of this one connection.
KEPT_BY_THE_GATEWAY = {
    "openai-organization": "org-secret",
    "openai-project": "proj-secret",
    "anthropic-organization-id": "org-secret",
    "anthropic-workspace-id": "wrkspc-secret",
    "set-cookie": "__cf_bm=secret",
    "x-should-retry": "true",
}


@dataclass
class Upstream:
    """A server of both dialects; what it was sent, and what it answers with.

    Attributes:
        status: of every answer.
        headers: of every answer.
        sent: headers of each request, names in lower case.
    """

    status: int = 200
    headers: Headers = field(default_factory=dict)
    sent: list[dict[str, str]] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count)
        return app

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        choice = {"index": 0, "finish_reason": "stop"}
        message = {"role": "assistant", "content": "ok"}
        answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        chunk = {**answer, "choices": [{**choice, "delta": message}]}
        events = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
        return await self._answer(
            request, {**answer, "choices": [{**choice, "message": message}]}, events
        )

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        usage = {"input_tokens": 1, "output_tokens": 1}
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        answer |= {"content": [], "stop_reason": None, "usage": usage}
        text = {"type": "text", "text": "ok"}
        events = (
            {"type": "message_start", "message": answer},
            {"type": "content_block_start", "index": 0, "content_block": text},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
            {"type": "message_stop"},
        )
        streamed = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
        whole = {**answer, "content": [text], "stop_reason": "end_turn"}
        return await self._answer(request, whole, streamed)

    async def _count(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, {"input_tokens": 3}, "")

    async def _answer(self, request: web.Request, whole: Json, events: str) -> web.StreamResponse:
        sent = {name: request.headers.getall(name) for name in request.headers}
        self.sent.append({name.lower(): ", ".join(lines) for name, lines in sent.items()})
        if self.status != 200:
            told = {"type": "error", "error": {"type": "rate_limit_error", "message": "no"}}
            return web.json_response(told, status=self.status, headers=self.headers)
        if not (await request.json()).get("stream"):
            return web.json_response(whole, headers=self.headers)
        return web.Response(text=events, content_type="text/event-stream", headers=self.headers)


@dataclass
class Relay:
    """A gateway in front of an upstream."""

    gateway: Gateway
    upstream: Upstream

    async def ask(
        self, path: str, model: str, headers: Headers | None = None, **fields: Any
    ) -> tuple[int, dict[str, str]]:
        """Return the status and the headers of an answer, names in lower case."""
        body = {"model": model, "messages": HELLO, "max_tokens": 9, **fields}
        request_headers = {
            **self.gateway.bearer(),
            "compat-version": "2023-06-01",
            **(headers or {}),
        }
        async with self.gateway.http.post(
            self.gateway.url + path, json=body, headers=request_headers
        ) as answer:
            await answer.read()
            return answer.status, {key.lower(): value for key, value in answer.headers.items()}

    def dialect_headers(self) -> Json:
        """Return what the provider was last sent of its dialects' headers."""
        last = self.upstream.sent[-1]
        return {name: last[name] for name in last if name.startswith(("openai-", "anthropic-"))}


@asynccontextmanager
async def serving(folder: Any, **sections: Any) -> AsyncIterator[Relay]:
    upstream = Upstream()
    limits = {"breaker_failures": 1000}
    async with running_gateway(folder, upstream.app(), limits=limits, **sections) as gateway:
        yield Relay(gateway, upstream)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Relay]:
    async with serving(tmp_path_factory.mktemp("gateway")) as relay:
        yield relay


@pytest.fixture
def relay(started: Relay) -> Relay:
    started.upstream.status, started.upstream.headers = 200, {}
    started.upstream.sent.clear()
    return started


STREAMED = pytest.mark.parametrize("stream", [False, True])


@STREAMED
async def test_a_chats_headers_go_on_to_the_same_dialect(relay: Relay, stream: bool):
    headers = {"OpenAI-Beta": "assistants=v2", "anthropic-client-platform": "cli"}
    status, _ = await relay.ask(CHAT, "openai/m", headers, stream=stream)
    assert status == 200
    assert relay.dialect_headers() == {"openai-beta": "assistants=v2"}


@STREAMED
@pytest.mark.parametrize("path", [MESSAGES, CODING])
async def test_headers_of_messages_go_on_to_the_same_dialect(relay: Relay, path: str, stream: bool):
    headers = {"Anthropic-Client-Platform": "cli", "anthropic-beta": "a,b", "openai-beta": "1"}
    headers["anthropic-version"] = "2099-01-01"
    status, _ = await relay.ask(path, "anthropic/claude-haiku-4-5", headers, stream=stream)
    assert status == 200
    assert relay.dialect_headers() == {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "a,b",
        "anthropic-client-platform": "cli",
    }


@pytest.mark.parametrize("headers", [{}, {"x-request-id": "mine-1"}])
async def test_a_provider_gets_the_id_of_the_request(relay: Relay, headers: Headers):
    _, received = await relay.ask(CHAT, "openai/m", headers)
    assert relay.upstream.sent[-1]["x-request-id"] == received["x-request-id"]
    assert received["x-request-id"].endswith(headers.get("x-request-id", ""))


async def test_a_counts_headers_go_both_ways(relay: Relay):
    relay.upstream.headers = FROM_ANTHROPIC | KEPT_BY_THE_GATEWAY | {"request-id": "req_1"}
    _, body = await relay.ask(COUNT, "anthropic/m", {"anthropic-client-platform": "cli"})
    assert relay.upstream.sent[-1]["anthropic-client-platform"] == "cli"
    assert body.items() >= FROM_ANTHROPIC.items()
    assert body["x-upstream-request-id"] == "req_1"
    assert "secret" not in str(body)


async def test_a_large_bodys_headers_go_on_too(relay: Relay):
    many = [{"role": "user", "content": str(number)} for number in range(20_000)]
    await relay.ask(CHAT, "openai/m", {"openai-beta": "x"}, messages=many)
    assert relay.dialect_headers() == {"openai-beta": "x"}


@STREAMED
@pytest.mark.parametrize(
    ("path", "model"), [(CHAT, "anthropic/m"), (MESSAGES, "openai/m"), (CODING, "openai/m")]
)
async def test_across_dialects_none_go_on_and_none_are_named(
    relay: Relay, path: str, model: str, stream: bool
):
    relay.upstream.headers = FROM_OPENAI | FROM_ANTHROPIC | {"x-request-id": "req_1"}
    headers = {"openai-beta": "x", "anthropic-client-platform": "cli"}
    status, body = await relay.ask(path, model, headers, stream=stream)
    assert status == 200
    assert relay.dialect_headers().keys() <= {"anthropic-version"}
    assert "x-gateway-dropped" not in body
    assert not body.keys() & (FROM_OPENAI | FROM_ANTHROPIC).keys()
    assert body["x-upstream-request-id"] == "req_1"


@pytest.mark.parametrize(
    ("path", "model", "name"),
    [
        (CHAT, "openai/m", "OpenAI-Organization"),
        (CHAT, "openai/m", "OpenAI-Project"),
        (CHAT, "openai/m", "openai-api-key"),
        (MESSAGES, "anthropic/m", "anthropic-organization-id"),
        (MESSAGES, "anthropic/m", "Anthropic-Workspace-Id"),
        (MESSAGES, "anthropic/m", "anthropic-user-profile-id"),
        (MESSAGES, "anthropic/m", "anthropic-auth-token"),
        (CODING, "anthropic/m", "anthropic-account-uuid"),
        (CODING, "anthropic/m", "Cookie"),
        (CHAT, "openai/m", "x-stainless-lang"),
        (CHAT, "openai/m", "Proxy-Authorization"),
        (CHAT, "openai/m", "OpenAI-ProjectId"),
        (CHAT, "openai/m", "openai-conversation-id"),
        (CHAT, "openai/m", "openai-never-heard-of"),
        (MESSAGES, "anthropic/m", "anthropic-container-id"),
        (MESSAGES, "anthropic/m", "anthropic-session-id"),
        (CODING, "anthropic/m", "Anthropic-Thread-Id"),
        (CODING, "anthropic/m", "anthropic-never-heard-of"),
    ],
)
async def test_other_headers_are_not_passed_on(relay: Relay, path: str, model: str, name: str):
    status, _ = await relay.ask(path, model, {name: "theirs"})
    assert status == 200
    assert "theirs" not in str(relay.upstream.sent)


@STREAMED
@pytest.mark.parametrize(
    ("path", "model", "own", "upstream_id"),
    [
        (CHAT, "openai/m", FROM_OPENAI, "x-request-id"),
        (MESSAGES, "anthropic/m", FROM_ANTHROPIC, "request-id"),
        (CODING, "anthropic/m", FROM_ANTHROPIC, "request-id"),
    ],
)
@pytest.mark.parametrize("status", [200, 429, 400])
async def test_a_providers_headers_come_back(
    relay: Relay,
    path: str,
    model: str,
    own: dict[str, str],
    upstream_id: str,
    stream: bool,
    status: int,
):
    relay.upstream.status = status
    relay.upstream.headers = own | KEPT_BY_THE_GATEWAY | {upstream_id: "req_1", "retry-after": "99"}
    got, body = await relay.ask(path, model, {"x-request-id": "mine"}, stream=stream)
    assert got == status
    assert body.items() >= own.items()
    assert body["x-request-id"] == body["request-id"] == "mine"
    assert body["x-upstream-request-id"] == "req_1"
    assert body.get("retry-after") == ("99" if status == 429 else None)
    assert "secret" not in str(body)


async def test_an_operators_header_wins_and_betas_are_added(tmp_path):
    async with serving(tmp_path) as other:
        address = other.gateway.upstream
        provider = {"kind": "anthropic", "base_url": address, "api_key": "k"}
        name = "anthropic-client-name"
        provider["headers"] = {name: "operator", "anthropic-beta": "b"}
        async with running_gateway(tmp_path / "2", address, providers={"p": provider}) as gateway:
            relay = Relay(gateway, other.upstream)
            headers = {name: "caller", "anthropic-client-version": "1", "anthropic-beta": "a"}
            status, _ = await relay.ask(MESSAGES, "p/m", headers)
            assert status == 200
            sent = relay.dialect_headers()
            assert (sent[name], sent["anthropic-client-version"]) == ("operator", "1")
            assert sent["anthropic-beta"] == "b, a"


async def raw_ask(gateway: Gateway, fields: bytes) -> bytes:
    """Ask with header lines as they are, for clients check what they send."""
    body = json.dumps({"model": "openai/m", "messages": HELLO}).encode()
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {gateway.key}\r\n"
    head += (
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    )
    writer.write(head.encode() + fields + b"\r\n" + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


HOSTILE_VALUES = (b"\xff", b"\xe2\x82\xac", b"a\tb", b"", b"x" * 1_025)


@pytest.mark.parametrize("value", HOSTILE_VALUES)
async def test_hostile_values_are_left_out(relay: Relay, value: bytes):
    answer = await raw_ask(relay.gateway, b"openai-beta: " + value + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert relay.dialect_headers() == {}


async def test_repeated_headers_are_joined(relay: Relay):
    await raw_ask(relay.gateway, b"openai-beta: 1\r\nOpenAI-BETA: 2\r\n")
    assert relay.dialect_headers() == {"openai-beta": "1, 2"}


async def test_headers_past_the_bounds_are_left_out(relay: Relay):
    names = [f"anthropic-client-{name}" for name in ("name", "platform", "version")]
    names.append("anthropic-dangerous-direct-browser-access")
    await relay.ask(MESSAGES, "anthropic/m", {name: "x" * 1_020 for name in names})
    assert len(relay.dialect_headers().keys() & {*names}) == 3


async def test_a_hostile_providers_headers_are_left_out(tmp_path):
    body = b'{"id":"c","model":"m","choices":[{"index":0,"finish_reason":"stop",'
    body += b'"message":{"role":"assistant","content":"ok"}}]}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(
        body
    )
    head += b"openai-a: \xff\r\nopenai-b: a\tb\r\nx-request-id: <script>\r\nopenai-ok: 1\r\n"
    head += b"".join(b"x-ratelimit-%d: %b\r\n" % (number, b"x" * 900) for number in range(50))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(head + b"\r\n" + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with running_gateway(tmp_path, address) as gateway:
            status, answer_body = await Relay(gateway, Upstream()).ask(CHAT, "openai/m")
    assert status == 200
    assert answer_body["openai-ok"] == "1"
    assert not answer_body.keys() & {"openai-a", "openai-b", "x-upstream-request-id"}
    assert sum(name.startswith("x-ratelimit-") for name in answer_body) == 4


def wanted(**fields: Any) -> GenerateRequest:
    message = Message(role=ROLE_USER, blocks=[Block(text="Hello")])
    return GenerateRequest(messages=[message], max_tokens=9, **fields)


async def test_grpc_callers_send_and_receive_them(relay: Relay):
    relay.upstream.headers = FROM_ANTHROPIC | KEPT_BY_THE_GATEWAY | {"request-id": "req_1"}
    headers = {"anthropic-client-platform": "cli", "anthropic-workspace-id": "theirs"}
    headers |= {"x-api-key": "theirs", "authorization": "theirs", "anthropic-b": "theirs\r\nx: y"}
    request = wanted(model="anthropic/m", dialect=DIALECT_ANTHROPIC, headers=headers)
    metadata = call_metadata(relay.gateway.key, "")
    async with grpc.aio.insecure_channel(relay.gateway.grpc) as channel:
        stub = InferenceServiceStub(channel)
        answer = await stub.Generate(request, metadata=metadata)
        assert dict(answer.route.headers) == FROM_ANTHROPIC
        assert answer.route.upstream_request_id == "req_1"
        assert relay.upstream.sent[-1]["anthropic-client-platform"] == "cli"
        assert "theirs" not in str(relay.upstream.sent)
        request.model, request.headers["openai-beta"] = "openai/m", "theirs"
        await stub.Generate(request, metadata=metadata)
        assert "theirs" not in str(relay.upstream.sent)
        request.model, relay.upstream.status = "anthropic/m", 400
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stub.Generate(request, metadata=metadata)
        error = from_rpc_error(raised.value)
        assert (error.headers, error.upstream_request_id) == (FROM_ANTHROPIC, "req_1")


async def test_a_fallback_steps_headers_are_checked_too(relay: Relay):
    parameters = GenerateRequest(headers={"openai-project": "theirs", "openai-beta": "x"})
    step = FallbackStep(step_id="a", model="openai/m", parameters=parameters)
    request = wanted(
        model="openai/m",
        dialect=DIALECT_OPENAI,
        fallback=FALLBACK_MODE_ENABLED,
        fallback_config=FallbackConfig(strategy_mode="sequential", steps=[step]),
    )
    relay.upstream.status = 503
    async with grpc.aio.insecure_channel(relay.gateway.grpc) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await InferenceServiceStub(channel).Generate(
                request, metadata=call_metadata(relay.gateway.key, "")
            )
    assert relay.dialect_headers() == {"openai-beta": "x"}

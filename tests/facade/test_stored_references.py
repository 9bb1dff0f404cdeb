"""References to what a provider stores reach none, in any dialect, over gRPC and HTTP.

All callers of a gateway share the operator's account at a provider.
"""

import json
from collections.abc import AsyncIterator
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
    DIALECT_RESPONSES,
    MEDIA_KIND_IMAGE,
    ROLE_ASSISTANT,
    ROLE_USER,
    Block,
    Dialect,
    Media,
    Message,
    Opaque,
)
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.common.errors import from_rpc_error
from services.common.grpc.authentication import call_metadata
from tests.facade.reference_bodies import CASES, GOOGLE_FILE, HARMLESS, SEARCH, escaped
from tests.gateway_in_process import Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]


@dataclass
class Recorder:
    """A server that refuses every request.

    Attributes:
        bodies: the bodies that it was sent.
    """

    bodies: list[bytes] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._record)
        return app

    async def _record(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        return web.json_response({"error": {"message": "no"}}, status=401)


@dataclass(frozen=True)
class Relay:
    """A gateway in front of a recorder."""

    gateway: Gateway
    upstream: Recorder

    async def ask(self, path: str, body: bytes) -> tuple[int, Json]:
        """Return the status of the answer to a body, and the error in it."""
        headers = {
            **self.gateway.bearer(),
            "compat-version": "2023-06-01",
            "Content-Type": "application/json",
        }
        async with self.gateway.http.post(
            self.gateway.url + path, data=body, headers=headers
        ) as answer:
            error: Json = json.loads(await answer.read()).get("error", {})
            return answer.status, error


@asynccontextmanager
async def relaying(folder: Any, **settings: Any) -> AsyncIterator[Relay]:
    upstream = Recorder()
    async with running_gateway(folder, upstream.app()) as first:
        address = first.upstream
        common = {"api_key": "k", "fetches_urls": True, **settings}
        providers = {
            "openai": {
                "kind": "openai",
                "base_url": f"{address}/v1",
                "responses": True,
                **common,
            },
            "anthropic": {"kind": "anthropic", "base_url": address, **common},
            "gemini": {"kind": "gemini", "base_url": f"{address}/v1beta", **common},
        }
        limits = {"breaker_failures": 1_000}
        async with running_gateway(
            folder / "2", address, providers=providers, limits=limits
        ) as gateway:
            yield Relay(gateway, upstream)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def relay(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Relay]:
    async with relaying(tmp_path_factory.mktemp("gateway")) as started:
        yield started


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("write", [json.dumps, escaped])
async def test_no_reference_reaches_a_provider(relay: Relay, write: Any, stream: bool) -> None:
    wrong = []
    for path, body, param in CASES:
        relay.upstream.bodies.clear()
        status, error = await relay.ask(path, write({**body, "stream": stream}).encode())
        message = error["message"]
        is_named = message.startswith(f"{param}: ") and error.get("param", param) == param
        if status != 400 or not is_named or "pass_stateful" not in message or relay.upstream.bodies:
            wrong.append((body, param, status, error, relay.upstream.bodies[:]))
    assert wrong == []


@pytest.mark.parametrize("stream", [False, True])
async def test_what_agents_send_reaches_a_provider(relay: Relay, stream: bool) -> None:
    wrong = []
    for path, body in HARMLESS:
        relay.upstream.bodies.clear()
        status, error = await relay.ask(path, json.dumps({**body, "stream": stream}).encode())
        if status != 502 or not relay.upstream.bodies:
            wrong.append((body, status, error))
    assert wrong == []


async def test_an_operator_may_let_references_through(tmp_path: Any) -> None:
    wrong = []
    async with relaying(tmp_path, pass_stateful=True) as relay:
        for path, body, param in CASES:
            relay.upstream.bodies.clear()
            status, error = await relay.ask(path, json.dumps(body).encode())
            if status == 400 or not relay.upstream.bodies:
                wrong.append((param, status, error))
    assert wrong == []


def opaque(dialect: Dialect.ValueType, value: Any) -> Opaque:
    return Opaque(dialect=dialect, json=escaped(value).encode())


def wanted(dialect: Dialect.ValueType, *blocks: Block, **fields: Any) -> GenerateRequest:
    model = "anthropic/m" if dialect == DIALECT_ANTHROPIC else "openai/m"
    messages = [Message(role=ROLE_USER, blocks=[Block(text="Hello"), *blocks])]
    return GenerateRequest(
        **{"model": model, "dialect": dialect, "messages": messages, "max_tokens": 9} | fields
    )


def by_grpc() -> list[tuple[GenerateRequest, str]]:
    """Return requests of gRPC callers, each with the path of its reference."""
    anthropic, openai, responses = DIALECT_ANTHROPIC, DIALECT_OPENAI, DIALECT_RESPONSES
    item = {"type": "computer_call_output", "call_id": "c", "output": {"file_id": "file-1"}}
    twice = b'{"type":"x","file_id":null,"file_id":"file-1"}'
    marked = Block(text="a", cache_control=escaped({"type": "x", "container": "c"}).encode())
    message = Message(role=ROLE_ASSISTANT, blocks=[Block(text="a")])
    message.extra.CopyFrom(opaque(openai, {"x": {"file_id": "file-1"}}))
    image = Media(kind=MEDIA_KIND_IMAGE, url=GOOGLE_FILE, mime_type="image/png")
    return [
        (wanted(openai, extra=opaque(openai, {"thread_id": "t"})), "extra.thread_id"),
        (wanted(anthropic, extra=opaque(anthropic, {"thread": {"a": 1}})), "extra.thread"),
        (
            wanted(responses, extra=opaque(responses, {"previous_response_id": "r"})),
            "extra.previous_response_id",
        ),
        (
            wanted(anthropic, Block(opaque=opaque(anthropic, {"type": "x", "file_id": "f"}))),
            "messages[0].blocks[1].file_id",
        ),
        (
            wanted(openai, Block(opaque=opaque(openai, {"type": "x", "file_id": "f"}))),
            "messages[0].blocks[1].file_id",
        ),
        (
            wanted(responses, Block(opaque=opaque(responses, item))),
            "messages[0].blocks[1].output.file_id",
        ),
        (
            wanted(responses, Block(opaque=Opaque(dialect=responses, json=twice))),
            "messages[0].blocks[1].file_id",
        ),
        (wanted(anthropic, marked), "messages[0].blocks[1].cache_control.container"),
        (
            wanted(responses, tools=[Tool(opaque=True, extra=opaque(responses, SEARCH))]),
            "tools[0].vector_store_ids",
        ),
        (
            wanted(openai, messages=[message, Message(role=ROLE_USER, blocks=[Block(text="b")])]),
            "messages[0].extra.x.file_id",
        ),
        (wanted(openai, Block(media=image)), "messages[0].blocks[1]"),
        (wanted(openai, Block(media=image), model="gemini/m"), "messages[0].blocks[1]"),
    ]


async def test_no_reference_of_a_grpc_caller_reaches_a_provider(relay: Relay) -> None:
    wrong = []
    relay.upstream.bodies.clear()
    metadata = call_metadata(relay.gateway.key, "")
    async with grpc.aio.insecure_channel(relay.gateway.grpc) as channel:
        stub = InferenceServiceStub(channel)
        for request, path in by_grpc():
            for call in (
                stub.Generate(request, metadata=metadata),
                stream_of(stub, request, metadata),
            ):
                try:
                    await call
                except grpc.aio.AioRpcError as raised:
                    error = from_rpc_error(raised)
                    if error.param == path and "pass_stateful" in error.message:
                        continue
                    wrong.append((path, error.param, error.message))
                else:
                    wrong.append((path, "", "answered"))
    assert wrong == []
    assert relay.upstream.bodies == []


async def stream_of(stub: Any, request: GenerateRequest, metadata: Any) -> None:
    async for _ in stub.StreamGenerate(request, metadata=metadata):
        pass

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
from services.common.channels import call_metadata
from services.common.errors import from_rpc_error
from tests.gateway_in_process import Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
Case = tuple[Json, str]

CHATS, MESSAGES, RESPONSES = "/beta/v1/chat/completions", "/beta/v1/messages", "/beta/v1/responses"
HELLO = {"role": "user", "content": "Hello"}
GOOGLE_FILE = "https://generativelanguage.googleapis.com/v1beta/files/abc"
SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}
PYTHON = {"type": "code_interpreter", "container": "cntr_1"}
SKILLS = {"skills": [{"type": "custom", "skill_id": "skill_1"}]}


def chat(**fields: Any) -> Json:
    return {"model": "openai/m", "messages": [HELLO], **fields}


def says(*parts: Json) -> Json:
    return chat(messages=[{"role": "user", "content": [{"type": "text", "text": "a"}, *parts]}])


def message(**fields: Any) -> Json:
    return {"model": "anthropic/m", "messages": [HELLO], "max_tokens": 9, **fields}


def holds(*blocks: Json) -> Json:
    return message(messages=[{"role": "user", "content": [*blocks]}])


def response(*items: Json, **fields: Any) -> Json:
    return {"model": "openai/m", "input": [HELLO, *items], "store": False, **fields}


OF_CHATS: list[Case] = [
    (chat(previous_response_id="resp_1"), "previous_response_id"),
    (chat(conversation="conv_1"), "conversation"),
    (chat(prompt={"id": "pmpt_1"}), "prompt"),
    (chat(container="cntr_1"), "container"),
    (chat(file_ids=["file-1"]), "file_ids"),
    (chat(fileIds=["file-1"]), "fileIds"),
    (chat(assistant_id="asst_1"), "assistant_id"),
    (chat(thread_id="thread_1"), "thread_id"),
    (chat(data_sources=[{"type": "azure_search"}]), "data_sources"),
    (
        chat(prompt_cache_options={"mode": "explicit", "comparison_response_id": "resp_1"}),
        "prompt_cache_options.comparison_response_id",
    ),
    (
        chat(extra_body={"google": {"cached_content": "cachedContents/1"}}),
        "extra_body.google.cached_content",
    ),
    (
        chat(extra_body={"google": {"cachedContent": "cachedContents/1"}}),
        "extra_body.google.cachedContent",
    ),
    (chat(never_heard_of={"deep": [{"it": "vs_1a"}]}), "never_heard_of.deep[0].it"),
    (chat(audio={"voice": {"id": "voice_1"}, "format": "wav"}), "audio.voice.id"),
    (says({"type": "input_new", "file_id": "file-1"}), "messages[0].content[1].file_id"),
    (
        says({"type": "image_url", "image_url": {"url": GOOGLE_FILE}}),
        "messages[0].content[1]",
    ),
    (
        says({"type": "video_url", "video_url": {"url": "gs://bucket/film.mp4"}}),
        "messages[0].content[1].video_url.url",
    ),
    (
        {**says({"type": "image_url", "image_url": {"url": GOOGLE_FILE}}), "model": "gemini/m"},
        "messages[0].content[1]",
    ),
    (
        chat(model="gemini/m", extra_body={"google": {"cached_content": "cachedContents/1"}}),
        "extra_body.google.cached_content",
    ),
]
OF_MESSAGES: list[Case] = [
    (message(thread={"type": "create"}), "thread"),
    (message(thread={"type": "continue", "previous_message_id": "msg_1"}), "thread"),
    (message(diagnostics={"previous_message_id": "msg_1"}), "diagnostics.previous_message_id"),
    (message(fallback_credit_token="token"), "fallback_credit_token"),
    (message(billing_policy={"type": "billing_policy"}), "billing_policy"),
    (message(memory_store_id="memstore_1"), "memory_store_id"),
    (message(container="container_1"), "container"),
    (message(container={"id": "container_1"}), "container.id"),
    (message(container={"type": "a", "id": "b", "name": "c"}), "container.id"),
    (message(container=SKILLS), "container.skills[0].skill_id"),
    (message(mcp_servers=[{"type": "url", "url": "https://a.test"}]), "mcp_servers"),
    (message(user_profile_id="uprof_1"), "user_profile_id"),
    (
        message(tools=[{"type": "memory_1", "name": "m", "memory_store_id": "memstore_1"}]),
        "tools[0].memory_store_id",
    ),
    (
        message(tools=[{"name": "f", "input_schema": {}, "vault": {"id": "vlt_1"}}]),
        "tools[0].vault",
    ),
    (
        holds({"type": "container_upload", "file_id": "file_1"}),
        "messages[0].content[0].file_id",
    ),
    (
        holds({"type": "skill_reference", "skill_id": "skill_1"}),
        "messages[0].content[0].skill_id",
    ),
    (
        holds({"type": "text", "text": "a", "cache_control": {"type": "b", "container": "c_1"}}),
        "messages[0].content[0].cache_control.container",
    ),
]
OF_RESPONSES: list[Case] = [
    (response({"type": "additional_tools", "tools": [SEARCH]}), "tools[0].vector_store_ids"),
    (
        response({"type": "tool_search_output", "call_id": "c", "tools": [PYTHON]}),
        "tools[0].container",
    ),
    (
        response(
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {"type": "computer_screenshot", "file_id": "file-1"},
            }
        ),
        "output.file_id",
    ),
    (
        response(
            {
                "type": "shell_call",
                "call_id": "c",
                "action": {"commands": ["ls"]},
                "environment": {"type": "container_reference", "container_id": "cntr_1"},
            }
        ),
        "environment.container_id",
    ),
    (
        response(
            {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "cntr_1"}
        ),
        "container_id",
    ),
    (response({"type": "image_generation_call", "id": "ig_1", "status": "completed"}), "id"),
    (response({"type": "image_generation_call", "id": "ig_1", "result": None}), "id"),
    (
        response(
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
        ),
        "approval_request_id",
    ),
    (response({"type": "web_search_call", "id": "ws_1", "status": "completed"}), "id"),
    (response({"type": "file_search_call", "id": "fs_1", "queries": ["a"]}), "id"),
    (response({"type": "never_heard_of", "id": "nho_1"}), "id"),
]
OF_RESPONSE_FIELDS: list[Case] = [
    (response(prompt={"id": "pmpt_1"}), "prompt"),
    (
        response(prompt_cache_options={"comparison_response_id": "resp_1"}),
        "prompt_cache_options.comparison_response_id",
    ),
    (response(container="cntr_1"), "container"),
    (response(tools=[SEARCH]), "tools[0].vector_store_ids"),
    (response(tools=[PYTHON]), "tools[0].container"),
    (
        response(tools=[{"type": "mcp", "server_label": "a", "tunnel_id": "tunnel_1"}]),
        "tools[0].tunnel_id",
    ),
    (
        response(tools=[{"type": "image_generation", "input_image_mask": {"file_id": "file-1"}}]),
        "tools[0].input_image_mask.file_id",
    ),
    (
        response(tools=[{"type": "namespace", "name": "n", "tools": [SEARCH]}]),
        "tools[0].tools[0].vector_store_ids",
    ),
]
CASES: list[tuple[str, Json, str]] = [
    *[(CHATS, *case) for case in OF_CHATS],
    *[(MESSAGES, *case) for case in OF_MESSAGES],
    *[(RESPONSES, body, f"input[1].{path}") for body, path in OF_RESPONSES],
    *[(RESPONSES, *case) for case in OF_RESPONSE_FIELDS],
]
# What agents and SDKs send, and what is the caller's own content.
HARMLESS: list[tuple[str, Json]] = [
    (CHATS, chat(user="user_1", prompt_cache_key="conv_1", metadata={"file_id": "file-1"})),
    (CHATS, chat(prediction={"type": "content", "content": "file-1"}, stop_token_ids=[1])),
    (MESSAGES, message(metadata={"user_id": "user_1_session_2"})),
    (MESSAGES, message(context_management={"edits": [{"type": "clear_tool_uses_20250919"}]})),
    (MESSAGES, message(container={"skills": []})),
    (RESPONSES, response(prompt_cache_key="conv_1", client_metadata={"installation": "1"})),
    (RESPONSES, response({"type": "web_search_call", "id": "ws_1", "action": {"query": "q"}})),
    (RESPONSES, response({"type": "image_generation_call", "id": "ig_1", "result": "AAAA"})),
    (RESPONSES, response({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"})),
    (
        RESPONSES,
        response(
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        ),
    ),
    (RESPONSES, response(tools=[{"type": "code_interpreter", "container": {"type": "auto"}}])),
    (
        RESPONSES,
        response(
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "file-1"},
        ),
    ),
]


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
            error: Json = json.loads(await answer.read())["error"]
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


def escaped(value: Any) -> str:
    """Return JSON in which every character of every name is an escape."""
    if isinstance(value, dict):
        members = [f"{escaped_name(name)}:{escaped(inner)}" for name, inner in value.items()]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(escaped, value)) + "]"
    return json.dumps(value)


def escaped_name(name: str) -> str:
    return '"' + "".join(f"\\u{ord(one):04x}" for one in name) + '"'


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
    said = Message(role=ROLE_ASSISTANT, blocks=[Block(text="a")])
    said.extra.CopyFrom(opaque(openai, {"x": {"file_id": "file-1"}}))
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
            wanted(openai, messages=[said, Message(role=ROLE_USER, blocks=[Block(text="b")])]),
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

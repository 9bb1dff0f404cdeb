"""The table of conversations both ways: what goes passthrough says what a translation says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import pytest_asyncio
from aiohttp import web

from facade.dialects import anthropic, openai
from gateway.inference.v1.inference_pb2 import GenerateRequest, GenerateResponse
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from services.common.settings import Limits
from tests.facade.conversations import CONVERSATIONS, Conversation
from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import each_row
from tests.passthrough_answers import Json, completion_told, message_told

pytestmark = pytest.mark.asyncio(loop_scope="module")

# In another order than the gateway's, and with white space.
COMPLETION = b""" {
  "usage": {"total_tokens": 3, "completion_tokens": 1, "prompt_tokens": 2},
  "choices": [{
    "finish_reason": "stop", "index": 0, "logprobs": null,
    "message": {"content": "W\\u00f6rld", "refusal": null, "role": "assistant"}
  }],
  "model": "m", "created": 5, "object": "chat.completion", "id": "chatcmpl-7"
}\r\n"""
MESSAGE = b""" {
  "usage": {
    "output_tokens": 1, "input_tokens": 2,
    "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0
  },
  "stop_sequence": null, "stop_reason": "end_turn",
  "content": [{"text": "W\\u00f6rld", "type": "text"}],
  "model": "m", "role": "assistant", "type": "message", "id": "msg_7"
}\r\n"""


def cases(endpoint: str) -> list[Any]:
    return [
        pytest.param(conversation, model, id=f"{conversation.name} · {model}")
        for conversation in CONVERSATIONS
        if getattr(conversation, endpoint) is not None
        for model in conversation.models
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def inference(gateway: Gateway) -> AsyncIterator[InferenceServiceStub]:
    async with open_channel(gateway.grpc, max_message_bytes=Limits().max_message_bytes) as channel:
        yield InferenceServiceStub(channel)


async def asked(
    gateway: Gateway, inference: InferenceServiceStub, request: GenerateRequest, passthrough: bool
) -> GenerateResponse:
    request.takes_passthrough = passthrough
    response: GenerateResponse = await inference.Generate(
        request, metadata=call_metadata(gateway.key, "req_test")
    )
    return response


def named_alike(told: Json) -> Json:
    """Leave out the ids, which are made anew for each answer."""
    del told["id"]
    return told


def check_rest(passthrough: GenerateResponse, translated: GenerateResponse) -> None:
    """Check what callers are told beside the answer."""
    assert not translated.passthrough
    for response in (passthrough, translated):
        response.route.ClearField("upstream_request_id")  # one for each request
        response.usage.ClearField("extra")  # callers of what goes passthrough read it there
    assert passthrough.route == translated.route
    assert passthrough.usage == translated.usage


@each_row(("conversation", "model"), cases("chat"))
async def test_chat(
    gateway: Gateway, inference: InferenceServiceStub, conversation: Conversation, model: str
):
    body = orjson.dumps({**conversation.chat, "model": model})
    request = openai.parse_chat(body).request
    translated = await asked(gateway, inference, request, passthrough=False)
    passthrough = await asked(gateway, inference, request, passthrough=True)
    outcome = conversation.outcome
    is_plain = not (outcome.tools or outcome.thinking or outcome.refused)
    assert bool(passthrough.passthrough) is (is_plain and model in ("openai/echo", "see-openai"))
    expected = named_alike(completion_told(openai.render_completion(translated, 1)))
    check_rest(passthrough, translated)
    if passthrough.passthrough:
        assert named_alike(completion_told(passthrough.passthrough)) == expected
    async with gateway.http.post(
        f"{gateway.url}/beta/v1/chat/completions", json=orjson.loads(body), headers=gateway.bearer()
    ) as response:
        assert named_alike(completion_told(await response.read())) == expected


@each_row(("conversation", "model"), cases("messages"))
async def test_messages(
    gateway: Gateway, inference: InferenceServiceStub, conversation: Conversation, model: str
):
    body = orjson.dumps({"max_tokens": 1000, **conversation.messages, "model": model})
    request = anthropic.parse_messages(body, betas=[], coding=False).request
    translated = await asked(gateway, inference, request, passthrough=False)
    passthrough = await asked(gateway, inference, request, passthrough=True)
    outcome = conversation.outcome
    is_plain = not (outcome.tools or outcome.thinking)
    assert bool(passthrough.passthrough) is (
        is_plain and model in ("anthropic/echo", "see-anthropic")
    )
    expected = named_alike(message_told(anthropic.render_message(translated)))
    check_rest(passthrough, translated)
    if passthrough.passthrough:
        assert named_alike(message_told(passthrough.passthrough)) == expected
    async with gateway.http.post(
        f"{gateway.url}/beta/v1/messages", json=orjson.loads(body), headers=gateway.api_key()
    ) as response:
        assert named_alike(message_told(await response.read())) == expected


def answering(answer: bytes) -> web.Application:
    """Make a provider that always says the same."""

    async def answered(_: web.Request) -> web.Response:
        # A charset that is not JSON's says nothing of the bytes, which are UTF-8.
        return web.Response(body=answer, headers={"content-type": "text/plain; charset=latin-1"})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answered)
    app.router.add_post("/v1/messages", answered)
    return app


@asynccontextmanager
async def told_over_http(
    folder: Path, path: str, model: str, answer: bytes
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Ask a model whose provider answers so."""
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    async with running_gateway(folder, answering(answer)) as gateway:
        headers = {**gateway.bearer(), "compat-version": "2023-06-01"}
        async with gateway.http.post(f"{gateway.url}{path}", json=body, headers=headers) as got:
            yield got


@pytest.mark.parametrize(
    ("path", "model", "answer"),
    [
        ("/beta/v1/chat/completions", "openai/x", COMPLETION),
        ("/beta/v1/messages", "anthropic/x", MESSAGE),
        ("/coding/v1/messages", "anthropic/x", MESSAGE),
    ],
)
async def test_an_answer_reaches_the_caller_byte_for_byte(tmp_path, path, model, answer):
    async with told_over_http(tmp_path, path, model, answer) as got:
        assert await got.read() == answer
        assert got.status == 200
        assert got.headers["content-type"] == "application/json"
        assert got.headers["x-gateway-model"] == model
        assert got.headers["x-gateway-attempts"] == "1"
        assert got.headers["x-request-id"]


@pytest.mark.parametrize(
    ("path", "model", "answer"),
    [
        ("/beta/v1/chat/completions", "anthropic/x", MESSAGE),
        ("/beta/v1/messages", "openai/x", COMPLETION),
    ],
)
async def test_no_answer_of_another_dialect_does(tmp_path, path, model, answer):
    async with told_over_http(tmp_path, path, model, answer) as got:
        body = await got.json()
        assert body["id"] in ("chatcmpl-msg_7", "msg_chatcmpl-7")
        assert "Wörld" in str(body)

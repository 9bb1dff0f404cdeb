"""Requests that count as under way: until the end of an answer, however it ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio
from aiohttp import web

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest
from gateway.inference.v1.inference_pb2_grpc import InferenceServiceStub
from services.accounts.limits.rules import SubjectKind, UsageLimits
from services.common.grpc.authentication import call_metadata
from services.common.settings import Storage
from tests.limited_callers import HELLO, LimitedGateways, limited_gateways, post
from tests.waiting import until

CHATS = "/beta/v1/chat/completions"
CHAT = {"model": "openai/slow", "messages": HELLO}
STREAM = {**CHAT, "stream": True}


class SlowProvider:
    """A provider that begins to answer at once, and ends when it is told to."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.fails = False
        self.app = web.Application()
        self.app.router.add_post("/v1/chat/completions", self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self.fails:
            raise web.HTTPInternalServerError
        if not body.get("stream"):
            await self.may_end.wait()
            message = {"role": "assistant", "content": "Hi"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return web.json_response({**_head("chat.completion"), "choices": [choice]})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(_event({"role": "assistant", "content": "word " * 40}, None))
        await self.may_end.wait()
        await response.write(_event({}, "stop") + b"data: [DONE]\n\n")
        return response


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "slow"}


def _event(delta: dict[str, str], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = {**_head("chat.completion.chunk"), "choices": [choice]}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


@pytest_asyncio.fixture
async def provider() -> SlowProvider:
    return SlowProvider()


@pytest_asyncio.fixture
async def limited(tmp_path: Path, provider: SlowProvider) -> AsyncIterator[LimitedGateways]:
    storage = Storage(data_dir=tmp_path)
    async with limited_gateways(tmp_path, storage, upstream=provider.app) as one:
        yield one


async def _begun(limited: LimitedGateways, caller: dict[str, str]) -> aiohttp.ClientResponse:
    """Return a streamed answer that has begun."""
    gateway = limited.gateways[0]
    answer = await gateway.http.post(gateway.url + CHATS, json=STREAM, headers=caller)
    assert (await answer.content.readline()).startswith(b"data: ")
    return answer


async def _status(limited: LimitedGateways, caller: dict[str, str], body: Any = CHAT) -> int:
    return (await post(limited.gateways[0], CHATS, body, caller))[0]


async def test_a_stream_is_under_way_until_its_end(
    limited: LimitedGateways, provider: SlowProvider
) -> None:
    caller = await limited.caller(SubjectKind.KEY, UsageLimits(concurrent_requests=1))
    answer = await _begun(limited, caller)
    assert await _status(limited, caller) == 429
    provider.may_end.set()
    await answer.read()
    for body in (CHAT, STREAM):
        assert await _status(limited, caller, body) == 200


async def test_a_stream_that_its_caller_leaves_is_no_longer_under_way(
    limited: LimitedGateways, provider: SlowProvider
) -> None:
    caller = await limited.caller(SubjectKind.KEY, UsageLimits(concurrent_requests=1))
    answer = await _begun(limited, caller)
    assert await _status(limited, caller) == 429
    answer.close()
    provider.may_end.set()

    async def passes() -> bool:
        return await _status(limited, caller) == 200

    assert await until(passes, every_s=0.05)


async def test_a_whole_answer_is_under_way_until_it_is_there(
    limited: LimitedGateways, provider: SlowProvider
) -> None:
    caller = await limited.caller(SubjectKind.TEAM, UsageLimits(concurrent_requests=2))
    waiting = [asyncio.create_task(_status(limited, caller)) for _ in range(3)]
    done, waiting_on = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in done] == [429]
    provider.may_end.set()
    assert [await task for task in waiting_on] == [200, 200]


async def test_a_request_that_fails_is_no_longer_under_way(
    limited: LimitedGateways, provider: SlowProvider
) -> None:
    caller = await limited.caller(SubjectKind.USER, UsageLimits(concurrent_requests=1))
    provider.fails = True
    disabled = {**CHAT, "fallback": "disabled"}
    for body in (disabled, {**disabled, "stream": True}) * 2:
        assert await _status(limited, caller, body) == 502


async def test_what_a_caller_read_before_it_left_is_counted(
    limited: LimitedGateways, provider: SlowProvider
) -> None:
    limits = UsageLimits(tokens_per_minute=10_000, concurrent_requests=1)
    caller = await limited.caller(SubjectKind.USER, limits)
    (await _begun(limited, caller)).close()
    provider.may_end.set()

    async def left() -> int:
        status, _, headers = await post(limited.gateways[0], CHATS, CHAT, caller)
        return status == 200 and int(headers["x-ratelimit-remaining-tokens"])

    # The text was estimated at 70 tokens; each of the two requests takes less than 30.
    assert await until(left, every_s=0.05) < 9_930


async def test_grpc_callers_are_bounded_too(
    limited: LimitedGateways, provider: SlowProvider
) -> None:
    caller = await limited.caller(SubjectKind.KEY, UsageLimits(concurrent_requests=1))
    key = caller["Authorization"].removeprefix("Bearer ")
    hello = Message(role=conversation_pb2.ROLE_USER, blocks=[Block(text="Hello")])
    request = GenerateRequest(model="openai/slow", messages=[hello])
    async with grpc.aio.insecure_channel(limited.gateways[0].grpc) as channel:
        stub = InferenceServiceStub(channel)
        call = stub.StreamGenerate(request, metadata=call_metadata(key, "req_1"))
        async for _ in call:
            break
        with pytest.raises(
            grpc.aio.AioRpcError, match="of the API key, 1 concurrent requests"
        ) as raised:
            await stub.Generate(request, metadata=call_metadata(key, "req_2"))
        assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        call.cancel()
        provider.may_end.set()

        async def passes() -> bool:
            try:
                await stub.Generate(request, metadata=call_metadata(key, "req_3"))
            except grpc.aio.AioRpcError:
                return False
            return True

        assert await until(passes, every_s=0.05)

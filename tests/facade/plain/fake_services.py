"""Services that answer at a known time, never by chance, and tell what they were asked."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

from gateway.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from gateway.conversation.v1.conversation_pb2 import FINISH_REASON_END_TURN, Block, Usage
from gateway.inference.v1 import inference_pb2 as pb
from gateway.inference.v1 import inference_pb2_grpc
from services.accounts.servicer import AccountsServicer
from services.common.errors import invalid_api_key, unavailable
from services.common.grpc.authentication import Caller
from services.common.grpc.hops import HOPS_KEY
from services.common.grpc.server import Server
from services.common.messages.lazy_request import LazyRequest

KEY = "gw-" + "k" * 43
_ROUTE = pb.RouteInfo(model="m", provider="p", step="primary", attempts=1)
_USAGE = Usage(input_tokens=3, output_tokens=5)
_LATER_S = 0.4  # at no time at which a limit of a test passes
Given = pb.GenerateRequest | LazyRequest
_LARGE = 2_000


class FakeInference(inference_pb2_grpc.InferenceServiceServicer):
    """Answers as the model's name says: `slow`, `silent`, `busy`, `large`, `breaks`, or at once."""

    async def Generate(self, request: Given, context: Any) -> pb.GenerateResponse:
        request = _complete(request)
        await _begin(request.model)
        text = _told(request, context) * (_LARGE if request.model == "large" else 1)
        finish = pb.Finish(reason=FINISH_REASON_END_TURN)
        choice = pb.Choice(blocks=[Block(text=text)], finish=finish)
        return pb.GenerateResponse(id="a1", model="m", choices=[choice], usage=_USAGE, route=_ROUTE)

    async def StreamGenerate(
        self, request: Given, context: Any
    ) -> AsyncIterator[pb.StreamGenerateResponse]:
        request = _complete(request)
        await _begin(request.model)
        start = pb.Event(start=pb.Start(id="a1", model="m", route=_ROUTE))
        yield _events(start, pb.Event(block_start=Block(text="")))
        yield _events(pb.Event(text=_told(request, context)))
        for _ in range(3):
            if request.model == "slow":
                await asyncio.sleep(_LATER_S)
            yield _events(pb.Event(text="x" * (40 * _LARGE if request.model == "large" else 9)))
        if request.model == "breaks":
            raise unavailable("broken off")
        finish = pb.Event(finish=pb.Finish(reason=FINISH_REASON_END_TURN))
        yield _events(pb.Event(block_stop=pb.BlockStop()), pb.Event(usage=_USAGE), finish)


async def start() -> Server:
    """Start them."""
    server = Server(_identify, max_message_bytes=80 << 20)
    server.add(accounts_pb2_grpc.add_AccountsServiceServicer_to_server, AccountsServicer(), "a")
    server.add(inference_pb2_grpc.add_InferenceServiceServicer_to_server, FakeInference(), "i")
    await server.start()
    return server


def _complete(request: Given) -> pb.GenerateRequest:
    return request.complete() if isinstance(request, LazyRequest) else request


async def _begin(model: str) -> None:
    if model == "busy":
        raise unavailable("try later", retry_after_s=7)
    if model in ("slow", "silent"):
        await asyncio.sleep(_LATER_S if model == "slow" else 1e6)


def _told(request: pb.GenerateRequest, context: Any) -> str:
    """Return what is another text for every other request."""
    hops = dict(context.invocation_metadata()).get(HOPS_KEY)
    return sha256(request.SerializeToString(deterministic=True)).hexdigest() + str(hops)


def _events(*events: pb.Event) -> pb.StreamGenerateResponse:
    return pb.StreamGenerateResponse(events=events)


async def _identify(key: str) -> Caller:
    if key != KEY:
        raise invalid_api_key()
    return Caller("user", "", accounts_pb2.PLAN_PERSONAL_FREE)

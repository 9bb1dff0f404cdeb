"""A facade in front of a memory service that notes what it is asked and answers as told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from google.protobuf.message import Message
from yarl import URL

from facade.server import Facade
from gateway.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from gateway.memory.v1 import memory_pb2 as pb
from gateway.memory.v1 import memory_pb2_grpc
from services.accounts.servicer import AccountsServicer
from services.common.clock import Clock
from services.common.errors import invalid_api_key
from services.common.grpc.authentication import Caller
from services.common.grpc.server import Server
from services.common.settings import parse

KEY = "gw-" + "k" * 43
# The headers of a caller of each format, and of Anthropic's own client.
A = {"Authorization": f"Bearer {KEY}"}
B = {"x-api-key": KEY, "compat-version": "2023-06-01"}
ANTHROPIC = {"Authorization": f"Bearer {KEY}", "anthropic-version": "2026-10-21"}
RPCS = {
    name: method
    for name, method in pb.DESCRIPTOR.services_by_name["MemoryService"].methods_by_name.items()
    if name != "RunTurn"
}


class FakeMemoryService(memory_pb2_grpc.MemoryServiceServicer):
    """Notes and answers.

    Attributes:
        calls: the requests that came.
        answer: what every call answers; an empty answer of the right type when None.
        failure: what every call fails with.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.calls: list[Message] = []
        self.answer: Message | None = None
        self.failure: Exception | None = None

    def serve(self, rpc: str, request: Message) -> Message:
        self.calls.append(request)
        if self.failure is not None:
            raise self.failure
        return self.answer or getattr(pb, f"{rpc}Response")()


def _serving(rpc: str) -> Any:
    async def serve(self: FakeMemoryService, request: Message, context: Any) -> Message:
        return self.serve(rpc, request)

    return serve


for _rpc in RPCS:
    setattr(FakeMemoryService, _rpc, _serving(_rpc))


@dataclass(frozen=True)
class MemoryFacade:
    """A facade and the service behind it."""

    url: str
    service: FakeMemoryService
    http: aiohttp.ClientSession

    async def ask(self, method: str, path: str, **options: Any) -> tuple[Any, Any]:
        """Send a request whose path is encoded already; return the answer and its JSON."""
        options.setdefault("headers", A)
        url = URL(self.url + path, encoded=True)
        async with self.http.request(method, url, **options) as answer:
            assert answer.content_type == "application/json"
            return answer, await answer.json()


async def _identify(key: str) -> Caller:
    if key != KEY:
        raise invalid_api_key()
    return Caller("user", "", accounts_pb2.PLAN_PERSONAL_FREE)


@asynccontextmanager
async def memory_facade() -> AsyncIterator[MemoryFacade]:
    """Run both on free ports."""
    service = FakeMemoryService()
    server = Server(_identify, max_message_bytes=80 << 20)
    server.add(accounts_pb2_grpc.add_AccountsServiceServicer_to_server, AccountsServicer(), "a")
    server.add(memory_pb2_grpc.add_MemoryServiceServicer_to_server, service, "m")
    await server.start()
    facade = await Facade.start(server.channel(), "127.0.0.1", 0, parse({}, "test"), Clock())
    try:
        async with aiohttp.ClientSession() as http:
            yield MemoryFacade(f"http://127.0.0.1:{facade.port}", service, http)
    finally:
        await facade.stop()
        await server.stop(0)

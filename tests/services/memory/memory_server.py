"""The memory service over gRPC, and callers that take turns."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from prometheus_client import CollectorRegistry
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import accounts_pb2
from gateway.conversation.v1.conversation_pb2 import Message
from gateway.inference.v1 import inference_pb2_grpc
from gateway.memory.v1 import memory_pb2_grpc
from gateway.memory.v1.memory_pb2 import (
    BeginTurn,
    CommitTurn,
    RunTurnRequest,
    RunTurnResponse,
    TurnContext,
)
from services.common.clock import Clock
from services.common.errors import from_rpc_error, invalid_api_key
from services.common.grpc.authentication import Caller, call_metadata
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server
from services.common.process.byte_budget import open_budget
from services.common.settings import parse
from services.common.storage.secrets import Secrets
from services.memory.assembly import SERVICE_NAME, MemoryService
from tests.disks import Disk
from tests.services.memory.conversations import model, user
from tests.services.memory.job_worker import CREDENTIAL, FakeInference

MAX_MESSAGE = 16 << 20
READ_ONLY = BeginTurn.MODE_READ_ONLY


def key_of(name: str) -> str:
    """Return a user's key; there is a user of every name."""
    return f"gw-{name:_<43}"


@dataclass
class ClientTurn:
    """A turn that is held.

    Attributes:
        context: what a model is to see.
    """

    context: TurnContext
    _call: Any

    async def commit(self, answer: Message) -> int:
        """Add the turn; return its number."""
        await self._call.write(RunTurnRequest(commit=CommitTurn(answer=answer)))
        number: int = (await _answer(self._call)).committed.turn
        return number


class MemoryServer:
    """A memory service, and what its callers do.

    Attributes:
        inference: does the side jobs.
        disk: where the database is said to be.
        stub: for everything else.
    """

    def __init__(self, channel: grpc.aio.Channel, inference: FakeInference, disk: Disk) -> None:
        self.inference = inference
        self.disk = disk
        self.stub = memory_pb2_grpc.MemoryServiceStub(channel)

    @asynccontextmanager
    async def taking(
        self, *messages: Message | str, name: str = "ada", memory_id: str = "diary", **options: Any
    ) -> AsyncIterator[ClientTurn]:
        """Take a turn for the time of the block; texts are the user's."""
        call = self.stub.RunTurn(metadata=call_metadata(key_of(name), "req_1"))
        try:
            sent = [user(one) if isinstance(one, str) else one for one in messages]
            begin = BeginTurn(memory_id=memory_id, messages=sent, **options)
            await call.write(RunTurnRequest(begin=begin))
            yield ClientTurn((await _answer(call)).context, call)
            with contextlib.suppress(grpc.aio.AioRpcError):
                await call.done_writing()
                await call.read()
        finally:
            call.cancel()

    async def say(
        self,
        *messages: Message | str,
        answer: Message | str = "Noted.",
        **options: Any,
    ) -> TurnContext:
        """Take a turn and end it with an answer; return what the model was to see."""
        async with self.taking(*messages, **options) as holding:
            message = model(answer) if isinstance(answer, str) else answer
            await holding.commit(message)
        return holding.context

    async def call(self, method: str, request: Any, name: str = "ada") -> Any:
        """Make another call.

        Raises:
            GatewayError: what it ended with.
        """
        try:
            metadata = call_metadata(key_of(name), "req_1")
            return await getattr(self.stub, method)(request, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None


async def _answer(call: Any) -> RunTurnResponse:
    try:
        answer = await call.read()
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    assert answer is not grpc.aio.EOF
    return answer


@asynccontextmanager
async def memory_server(
    engine: AsyncEngine,
    clock: Clock | None = None,
    *,
    summarise: str = "",
    embed: str = "",
    **settings: Any,
) -> AsyncIterator[MemoryServer]:
    """Serve memories in a database as one process does, on a port of its own."""
    kept = {"database_url": "postgresql://unused"}
    if engine.url.database and engine.dialect.name == "sqlite":
        kept = {"data_dir": str(Path(engine.url.database).parent)}
    chosen = parse(
        {
            "storage": kept,
            "memory": {"job_poll_s": 0.05, **settings},
            "roles": {"summarise": summarise, "embed": embed},
        },
        "test",
    )

    async def identify(key: str) -> Caller:
        name = key.removeprefix("gw-").rstrip("_")
        if not name:
            raise invalid_api_key()
        return Caller(f"user_{name}", "", accounts_pb2.PLAN_PERSONAL_FREE)

    inference = FakeInference()
    disk = Disk()
    server = Server(identify, max_message_bytes=MAX_MESSAGE, service_credential=CREDENTIAL)
    port = server.listen("127.0.0.1:0")
    async with open_channel(f"127.0.0.1:{port}", max_message_bytes=MAX_MESSAGE) as channel:
        memories = MemoryService.start(
            chosen,
            engine,
            Secrets({"k": b"k" * 32}, "k", CREDENTIAL),
            clock or Clock(),
            CollectorRegistry(),
            channel,
            disk.reserve,
            None,
            open_budget(chosen.limits),
        )
        server.add(
            memory_pb2_grpc.add_MemoryServiceServicer_to_server, memories.servicer, SERVICE_NAME
        )
        server.add(
            inference_pb2_grpc.add_InferenceServiceServicer_to_server,
            inference,
            "gateway.inference.v1.InferenceService",
        )
        await server.start()
        try:
            yield MemoryServer(channel, inference, disk)
        finally:
            await server.stop(0)
            await memories.stop()


def texts(messages: Sequence[Message]) -> list[str]:
    """Return the texts of messages, one for each."""
    return ["".join(block.text for block in message.blocks) for message in messages]

"""The service of stored responses over gRPC, as one of several processes, and its callers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import grpc
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import accounts_pb2
from gateway.inference.v1 import inference_pb2_grpc
from gateway.inference.v1.inference_pb2 import GenerateRequest
from gateway.memory.v1 import conversations_pb2, conversations_pb2_grpc, responses_pb2_grpc
from gateway.memory.v1 import responses_pb2 as pb
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.authentication import Caller, call_metadata
from services.common.grpc.server import Server
from services.common.process.byte_budget import open_budget
from services.common.settings import Limits, MemoryStorage
from services.common.storage.database import reading
from services.common.storage.owners import owners
from services.responses.background import BackgroundResponses, UserSlots
from services.responses.conversations.records import ConversationLimits
from services.responses.conversations.repository import ConversationRepository
from services.responses.conversations.servicer import SERVICE_NAME as CONVERSATION_SERVICE
from services.responses.conversations.servicer import ConversationServicer
from services.responses.conversations.tables import conversations
from services.responses.records import ResponseLimits
from services.responses.repository import ResponseRepository
from services.responses.response_chain import ResponseChainReader
from services.responses.runs import ResponseRuns
from services.responses.servicer import SERVICE_NAME, ResponseServicer
from services.responses.tables import contents, responses
from tests.disks import Disk
from tests.manual_clock import ManualClock
from tests.services.responses.background_model import Model, ModelCall, TextRenderer

DAY_S = 86_400
LIMITS = ResponseLimits(
    ttl_s=30 * DAY_S,
    lease_s=1_000,  # renewed later than any test waits, however slow its machine
    max_bytes=100_000,
    max_conversation=5,
    max_conversation_bytes=20_000,
    conversations=ConversationLimits(ttl_s=30 * DAY_S, max_items=30, max_bytes=20_000),
)
STORAGE = 50_000


def items(*names: str) -> list[pb.ResponseItem]:
    """Return items whose JSON is their id."""
    return [pb.ResponseItem(id=name, json=f'"{name}"'.encode()) for name in names]


def content(*output: str, body: str = "{}", events: bytes = b"") -> pb.ResponseContent:
    """Return the content of a response."""
    return pb.ResponseContent(body=body.encode(), output=items(*output), events=events)


def response(
    name: str,
    previous: str = "",
    *,
    sent: Sequence[str] = (),
    body: str = "{}",
    conversation: pb.ResponseConversation | None = None,
) -> pb.NewResponse:
    """Return a response whose input is `sent`, or one item, and whose output is one item."""
    return pb.NewResponse(
        id=name,
        previous_id=previous,
        input=items(*(sent or [f"in-{name}"])),
        content=content(f"out-{name}", body=body),
        conversation=conversation,
    )


def names(listing: Any) -> list[str]:
    """Return the ids of an answer's items."""
    return [item.id for item in listing.items]


class ResponseProcess:
    """The service of one process, and what its callers do.

    Attributes:
        repository: the stored responses.
        conversations: the stored conversations.
        disk: where the database is said to be.
        model: the model of background responses.
        background: the background responses.
    """

    def __init__(
        self,
        server: Server,
        repository: ResponseRepository,
        conversations: ConversationRepository,
        disk: Disk,
        model: Model,
        background: BackgroundResponses,
    ) -> None:
        self.repository = repository
        self.conversations = conversations
        self.disk = disk
        self.model = model
        self.background = background
        channel = server.channel()
        self._stub = responses_pb2_grpc.ResponseServiceStub(channel)
        self._conversations = conversations_pb2_grpc.ConversationServiceStub(channel)

    async def call(self, method: str, user: str = "ada", **fields: Any) -> Any:
        """Make a call.

        Raises:
            GatewayError: what it ended with.
        """
        request = getattr(pb, f"{method}Request")(**fields)
        return await _made(getattr(self._stub, method), request, user)

    async def talk(self, method: str, user: str = "ada", **fields: Any) -> Any:
        """Make a call about conversations.

        Raises:
            GatewayError: what it ended with.
        """
        request = getattr(conversations_pb2, f"{method}Request")(**fields)
        return await _made(getattr(self._conversations, method), request, user)

    async def create(self, name: str, previous: str = "", user: str = "ada", **new: Any) -> None:
        await self.call("CreateResponse", user, response=response(name, previous, **new))

    async def get(self, name: str, user: str = "ada", **fields: Any) -> pb.StoredResponse:
        response: pb.StoredResponse = (
            await self.call("GetResponse", user, id=name, **fields)
        ).response
        return response

    async def state(self, name: str) -> str:
        state = (await self.get(name)).state
        return pb.StoredResponse.State.Name(state).removeprefix("STATE_").lower()

    async def run(self, name: str, user: str = "ada", **new: Any) -> ModelCall:
        """Create a background response, and return the call of the model that it gets."""
        async with self.following(name, user, stream=False, **new) as pieces:
            assert [piece async for piece in pieces] == []
        return self.model.calls[name]

    @asynccontextmanager
    async def following(
        self, name: str, user: str = "ada", *, stream: bool = True, **new: Any
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Create a background response, and follow its events.

        Raises:
            GatewayError: what the call ended with.
        """
        created = response(name, **new)
        create = pb.CreateBackgroundResponse(
            response=created, presentation=created.content.body, stream=stream
        )
        call = self._stub.RunInBackground(metadata=_metadata(user))
        try:
            with suppress(asyncio.InvalidStateError):
                await call.write(pb.RunInBackgroundRequest(create=create))
                generate = GenerateRequest(model=name)
                await call.write(pb.RunInBackgroundRequest(generate=generate))
            assert (await _read(call)).queued == created.content.body
            yield _pieces(call)
        finally:
            call.cancel()

    async def refusal_of_run(self, steps: Sequence[pb.RunInBackgroundRequest]) -> GatewayError:
        """Return why messages are refused in place of a background response."""
        call = self._stub.RunInBackground(metadata=_metadata("ada"))
        for step in steps:
            await call.write(step)
        await call.done_writing()
        try:
            await _read(call)
        except GatewayError as error:
            return error
        raise AssertionError("the messages were accepted")

    async def ended(self, name: str) -> pb.StoredResponse:
        """Return a response with its events, once it has ended."""
        return await self.get(name, wait_ms=30_000, with_events=True)


async def _read(call: Any) -> Any:
    try:
        return await call.read()
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None


async def _pieces(call: Any) -> AsyncIterator[bytes]:
    while (message := await _read(call)) is not grpc.aio.EOF:
        yield message.events


async def _made(method: Any, request: Any, user: str) -> Any:
    try:
        return await method(request, metadata=_metadata(user))
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None


def _metadata(user: str) -> Any:
    return call_metadata(f"gw-{user:_<43}", "req_1")


async def _identify(key: str) -> Caller:
    return Caller(key.removeprefix("gw-").rstrip("_"), "", accounts_pb2.PLAN_PERSONAL_FREE)


@asynccontextmanager
async def response_process(
    engine: AsyncEngine, clock: ManualClock, **limits: Any
) -> AsyncIterator[ResponseProcess]:
    """Serve stored responses in a database as one process does."""
    repository = ResponseRepository(engine, clock, replace(LIMITS, **limits))
    runs = ResponseRuns(repository)
    reader = ResponseChainReader(engine, clock, repository.limits)
    talks = ConversationRepository(engine, clock, repository.limits.conversations)
    disk = Disk()
    storage = MemoryStorage(personal_free=STORAGE)
    server = Server(_identify, max_message_bytes=16 << 20)
    model = Model()
    server.add(
        inference_pb2_grpc.add_InferenceServiceServicer_to_server,
        model,
        "gateway.inference.v1.InferenceService",
    )
    budget = open_budget(Limits())
    background = BackgroundResponses(
        runs,
        UserSlots(1, 1, lambda change: None),
        inference_pb2_grpc.InferenceServiceStub(server.channel()),
        budget,
        TextRenderer,
    )
    server.add(
        responses_pb2_grpc.add_ResponseServiceServicer_to_server,
        ResponseServicer(
            repository, talks, runs, background, reader, storage, disk.reserve, budget
        ),
        SERVICE_NAME,
    )
    server.add(
        conversations_pb2_grpc.add_ConversationServiceServicer_to_server,
        ConversationServicer(talks, storage, disk.reserve, budget),
        CONVERSATION_SERVICE,
    )
    await server.start()
    try:
        yield ResponseProcess(server, repository, talks, disk, model, background)
    finally:
        await background.drain(0)
        await server.stop(0)
        await runs.close()


async def charged(engine: AsyncEngine, user: str = "ada") -> int:
    """Return what a user has stored, which is the same by both counts."""
    async with reading(engine) as connection:
        of_owner = await connection.scalar(
            select(owners.c.size_bytes).where(owners.c.owner_id == user)
        )
        of_rows = 0
        for table in (responses, conversations):
            of_rows += await connection.scalar(
                select(func.coalesce(func.sum(table.c.size_bytes), 0)).where(
                    table.c.owner_id == user
                )
            )
    assert (of_owner or 0) == of_rows
    return int(of_rows or 0)


async def rows(engine: AsyncEngine) -> int:
    """Return how many responses there are, which is also the number of contents."""
    async with reading(engine) as connection:
        counts = [
            await connection.scalar(select(func.count()).select_from(table))
            for table in (responses, contents)
        ]
    assert counts[0] == counts[1]
    return counts[0] or 0


async def settled(task: "asyncio.Task[Any]") -> Any:
    """Return the result of a task, which ends within the time of a test."""
    async with asyncio.timeout(30):
        return await task

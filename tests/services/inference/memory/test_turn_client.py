"""Turns taken over gRPC: what is sent, how they end, what failures are told as."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.accounts.v1 import accounts_pb2
from gateway.errors.v1 import errors_pb2
from gateway.memory.v1 import memory_pb2_grpc
from gateway.memory.v1.memory_pb2 import (
    BeginTurn,
    Committed,
    RunTurnRequest,
    RunTurnResponse,
    TurnContext,
)
from services.common.errors import GatewayError, invalid_api_key
from services.common.grpc.authentication import Caller, caller_key
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server
from services.inference.memory.turn_client import TurnClient
from tests.services.inference.memory.builders import assistant, user

KEY = "gw-" + "k" * 43
BEGIN = BeginTurn(memory_id="m", messages=[user("Hi")])
PATIENCE_S = 20


class Servicer(memory_pb2_grpc.MemoryServiceServicer):
    """Takes turns as it is told to; `ended` tells how each of its calls did."""

    def __init__(self) -> None:
        self.asked: list[RunTurnRequest] = []
        self.ended: asyncio.Queue[str] = asyncio.Queue()
        self.refusal: GatewayError | None = None
        self.refuses_after = 0
        self.is_silent = False
        self.begun = asyncio.Event()
        self.closing = asyncio.Event()
        self.released = asyncio.Event()
        self.released.set()

    async def RunTurn(self, request_iterator, context) -> AsyncIterator[RunTurnResponse]:
        try:
            async for request in self._read(request_iterator):
                self.asked.append(request)
                if request.HasField("begin"):
                    yield RunTurnResponse(context=TurnContext(summary="They met."))
                else:
                    yield RunTurnResponse(committed=Committed(turn=1))
            self.closing.set()
            await self.released.wait()
            self.ended.put_nowait("closed")
        except asyncio.CancelledError:
            self.ended.put_nowait("cancelled")
            raise

    async def _read(self, requests) -> AsyncIterator[RunTurnRequest]:
        if self.refusal is not None and self.refuses_after == 0:
            raise self.refusal
        self.begun.set()
        if self.is_silent:
            await asyncio.Event().wait()
        async for request in requests:
            yield request
            if self.refusal is not None and len(self.asked) == self.refuses_after:
                raise self.refusal

    async def how_it_ended(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return await self.ended.get()


@pytest.fixture
def servicer() -> Servicer:
    return Servicer()


@pytest.fixture
async def store(servicer: Servicer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TurnClient]:
    monkeypatch.setattr("services.inference.memory.turn_client._CLOSING_S", PATIENCE_S)

    async def identify(key: str) -> Caller:
        if key != KEY:
            raise invalid_api_key()
        return Caller("u", "", accounts_pb2.PLAN_PERSONAL_FREE)

    server = Server(identify, max_message_bytes=1 << 20)
    server.add(memory_pb2_grpc.add_MemoryServiceServicer_to_server, servicer, "memory")
    port = server.listen("127.0.0.1:0")
    await server.start()
    channel = open_channel(f"127.0.0.1:{port}", max_message_bytes=1 << 20)
    caller_key.set(KEY)
    yield TurnClient(channel)
    await channel.close()
    await server.stop(0)


async def test_a_turn_is_opened_and_committed(store: TurnClient, servicer: Servicer) -> None:
    turn = await store.begin(BEGIN)
    assert turn.context.summary == "They met."
    await turn.commit(assistant("Hello"))
    first, second = servicer.asked
    assert first.begin == BEGIN
    assert second.commit.answer == assistant("Hello")
    assert await servicer.how_it_ended() == "closed"


async def test_a_commit_does_not_wait_for_the_end_of_the_call(
    store: TurnClient, servicer: Servicer
) -> None:
    servicer.released.clear()
    turn = await store.begin(BEGIN)
    await turn.commit(assistant("Hello"))
    await servicer.closing.wait()
    servicer.released.set()
    assert await servicer.how_it_ended() == "closed"


async def test_a_turn_is_closed_or_dropped(store: TurnClient, servicer: Servicer) -> None:
    turn = await store.begin(BEGIN)
    await turn.close()
    assert await servicer.how_it_ended() == "closed"
    servicer.released.clear()
    turn = await store.begin(BEGIN)
    turn.drop()
    assert await servicer.how_it_ended() == "cancelled"


@pytest.mark.parametrize("refuses_after", [0, 1])
async def test_a_refusal_is_reported_as_a_refusal(
    store: TurnClient, servicer: Servicer, refuses_after: int
) -> None:
    servicer.refusal = GatewayError(errors_pb2.REASON_MEMORY_BUSY, "busy", retry_after_s=3)
    servicer.refuses_after = refuses_after
    with pytest.raises(GatewayError) as refused:
        turn = await store.begin(BEGIN)
        assert refuses_after
        await turn.commit(assistant("Hello"))
    assert (refused.value.code, refused.value.retry_after_s) == ("memory_busy", 3)


async def test_a_turn_that_ended_before_the_commit_has_the_reason(
    store: TurnClient, servicer: Servicer
) -> None:
    servicer.refusal = GatewayError(errors_pb2.REASON_CONFLICT, "taken over")
    servicer.refuses_after = 1
    turn = await store.begin(BEGIN)
    ended = asyncio.Event()
    turn._call.add_done_callback(lambda _: ended.set())
    await ended.wait()
    with pytest.raises(GatewayError) as refused:
        await turn.commit(assistant("Hello"))
    assert refused.value.code == "conflict"


async def test_a_wrong_key_is_reported_as_a_wrong_key(store: TurnClient) -> None:
    caller_key.set("gw-" + "x" * 43)
    with pytest.raises(GatewayError) as refused:
        await store.begin(BEGIN)
    assert refused.value.code == "invalid_api_key"


async def test_waiting_for_a_turn_can_be_given_up(store: TurnClient, servicer: Servicer) -> None:
    servicer.is_silent = True
    taking = asyncio.create_task(store.begin(BEGIN))
    await servicer.begun.wait()
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert await servicer.how_it_ended() == "cancelled"


async def test_no_service_is_reported_as_such(servicer: Servicer) -> None:
    channel = open_channel("unix:/nonexistent/socket", max_message_bytes=1 << 20)
    caller_key.set(KEY)
    with pytest.raises(GatewayError) as refused:
        await TurnClient(channel).begin(BEGIN)
    assert refused.value.code == "unavailable"
    await channel.close()

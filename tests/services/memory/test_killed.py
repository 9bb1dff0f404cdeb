"""`kill -9` at any moment: no acknowledged turn is lost, none is half there, work goes on."""

import asyncio
import random
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.memory.v1 import memory_pb2_grpc
from gateway.memory.v1.memory_pb2 import BeginTurn, CommitTurn, RunTurnRequest
from services.accounts.repository import AccountRepository
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import open_channel
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from services.memory.jobs.windows import Windows
from tests.forked import AsyncForkedProcess
from tests.manual_clock import ManualClock
from tests.services.memory.builders import text_of
from tests.services.memory.conversations import model, user
from tests.services.memory.job_worker import (
    MemoryWorker,
    archived_turns,
    fake_inference,
    summary_rows,
)
from tests.services.processes import serving

# A killed process holds what it held for this long; jobs are looked for often.
_SETTINGS = """\
[memory]
lock_lease_s = 1
job_poll_s = 0.1
"""
_MEMORIES = ("one", "two")
_BEFORE_SUMMARIES = 16
_TURNS_OF_A_LIFE = 5
_EXCHANGE = 2  # messages of a turn


@dataclass
class AcknowledgedTurns:
    """The turns of one memory that were acknowledged to its caller.

    Attributes:
        memory_id: which.
        told: what was acknowledged, in order.
        doubtful: what was sent last and not acknowledged.
        number: of what was sent last.
        more: is set whenever something was acknowledged.
    """

    memory_id: str
    told: list[str] = field(default_factory=list)
    doubtful: str = ""
    number: int = 0
    more: asyncio.Event = field(default_factory=asyncio.Event)

    async def reaches(self, count: int) -> None:
        """Wait until so much was acknowledged."""
        while len(self.told) < count:
            self.more.clear()
            await self.more.wait()


@asynccontextmanager
async def _data() -> AsyncIterator[tuple[Path, AsyncEngine, str]]:
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        folder = Path(name)
        engine = open_engine(Storage(data_dir=folder))
        await migrate(engine)
        try:
            yield folder, engine, await AccountRepository(engine).create_key("ada")
        finally:
            await engine.dispose()


async def _talk(
    address: str, key: str, acknowledged: AcknowledgedTurns, chance: random.Random
) -> None:
    async with open_channel(address, max_message_bytes=4 << 20) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        while True:
            acknowledged.number += 1
            acknowledged.doubtful = f"I said {acknowledged.number}."
            call = stub.RunTurn(metadata=call_metadata(key, "req_kill"))
            begin = BeginTurn(
                memory_id=acknowledged.memory_id, personal_memory=chance.random() < 0.2
            )
            begin.messages.append(user(acknowledged.doubtful))
            await call.write(RunTurnRequest(begin=begin))
            answer = await call.read()
            seen = [text_of(turn.messages[0]) for turn in answer.context.turns]
            assert seen == acknowledged.told[len(acknowledged.told) - len(seen) :], (
                "not all is visible"
            )
            reply = model(f"You said {acknowledged.number}.")
            await call.write(RunTurnRequest(commit=CommitTurn(answer=reply)))
            await call.read()
            acknowledged.told.append(acknowledged.doubtful)
            acknowledged.more.set()
            await call.done_writing()
            await call.read()


async def _until_killed(
    address: str,
    process: AsyncForkedProcess,
    key: str,
    acknowledged: list[AcknowledgedTurns],
    chance: random.Random,
    more: int,
) -> None:
    """Let callers talk until one has told so much more, and kill the process soon after."""
    callers = [
        asyncio.create_task(_talk(address, key, one, random.Random(chance.random())))
        for one in acknowledged
    ]
    async with asyncio.timeout(60):
        one = chance.choice(acknowledged)
        await one.reaches(len(one.told) + more)
    # Any moment is a moment to die: this is the one wait that is for nothing.
    await asyncio.sleep(chance.uniform(0, 0.05))
    process.send_signal(signal.SIGKILL)
    await process.wait()
    for outcome in await asyncio.gather(*callers, return_exceptions=True):
        # A call whose connection breaks while it half-closes is told by gRPC that it was cancelled.
        expected = (grpc.aio.AioRpcError, asyncio.CancelledError)
        assert isinstance(outcome, expected), repr(outcome)


async def _assert_consistent(
    engine: AsyncEngine, key: str, acknowledged: AcknowledgedTurns
) -> None:
    """Check a memory against what its caller knows, and its parts against each other."""
    async with fake_inference() as (_, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        owner = await AccountRepository(engine).identify(key)
        record = await worker.repository.find(owner.user_id, acknowledged.memory_id)
        if record is None:
            assert acknowledged.told == []
            return
        turns = await worker.repository.turns(record.id, 1, record.turns)
        stored_texts = [text_of(turn.messages[0]) for turn in turns]
        if stored_texts[len(acknowledged.told) :] == [acknowledged.doubtful]:
            acknowledged.told.append(
                acknowledged.doubtful
            )  # it was durable before anybody heard of it
        assert stored_texts == acknowledged.told
        assert [len(turn.messages) for turn in turns] == [_EXCHANGE] * len(turns)
        assert [turn.number for turn in turns] == list(range(1, len(turns) + 1))
        summary = await worker.stores.summaries.current(record.id)
        assert summary.last_turn == record.summarised
        assert await archived_turns(engine, record) == list(range(1, record.summarised + 1))
        view = Windows().view(record.turns, record.summarised)
        everywhere = [*range(1, record.summarised + 1), *view.pending, *view.window]
        assert everywhere == list(range(1, record.turns + 1))


async def _kill_often(times: int, seed: int) -> None:
    chance = random.Random(seed)
    async with _data() as (folder, engine, key):
        acknowledged = [AcknowledgedTurns(name) for name in _MEMORIES]
        for life in range(times):
            running = serving(folder, ("accounts", "memory"), settings=_SETTINGS)
            async with running as (process, address):
                more = _BEFORE_SUMMARIES if life == 0 else chance.randrange(_TURNS_OF_A_LIFE)
                await _until_killed(address, process, key, acknowledged, chance, more)
            for one in acknowledged:
                await _assert_consistent(engine, key, one)
        assert sum(len(one.told) for one in acknowledged) > _BEFORE_SUMMARIES + times
        assert await summary_rows(engine)


async def test_three_kills_lose_no_turn_and_leave_none_half_there() -> None:
    await _kill_often(3, seed=1)


@pytest.mark.soak
async def test_two_hundred_kills_lose_and_tear_no_turn() -> None:
    await _kill_often(200, seed=2)

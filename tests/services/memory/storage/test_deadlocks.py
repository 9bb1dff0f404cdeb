"""Transactions on one memory at once: they wait for one another in one order, on PostgreSQL."""

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.storage.database import reading, writing
from services.common.storage.owners import charge
from services.memory.storage import quota
from services.memory.storage.memory_records import OWNED, owned
from tests.services.memory.builders import QUOTA, MemoryProcess
from tests.waiting import until

# Only rows of PostgreSQL are locked one by one.
pytestmark = pytest.mark.parametrize("storage", ["postgresql"], indirect=True)

_WAITING = text(
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


async def until_one_waits(engine: AsyncEngine) -> None:
    """Wait until a transaction waits for another."""

    async def count() -> int:
        async with reading(engine) as connection:
            waiting: int = await connection.scalar(_WAITING)
            return waiting

    await until(count)


async def test_memory_that_is_committed_can_be_asked_for(memory: MemoryProcess) -> None:
    record = await memory.make()
    same = replace(record, id="memory_other")

    async def ask() -> object:
        async with writing(memory.engine) as connection:
            return await quota.create(connection, same, QUOTA)

    async with writing(memory.engine) as connection:
        await memory.repository.set_summarised(connection, record.id, 0)
        asking = asyncio.create_task(ask())
        await until_one_waits(memory.engine)
        await charge(connection, record.owner_id, 1)
    assert await asking is None


async def test_memory_that_is_deleted_can_be_waited_for(memory: MemoryProcess) -> None:
    record = await memory.make()
    async with writing(memory.engine) as connection:
        await connection.execute(OWNED.with_for_update(), owned(record.id, record.owner_id))
        entering = asyncio.create_task(memory.locks.write_lock(record).__aenter__())
        await until_one_waits(memory.engine)
        await quota.delete_memory(connection, record)
    with pytest.raises(GatewayError) as raised:
        await entering
    assert raised.value.reason == errors_pb2.REASON_CONFLICT

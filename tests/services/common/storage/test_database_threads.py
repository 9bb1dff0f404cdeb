"""Work in the thread of a connection, on a real database of either kind."""

import asyncio
import threading
from typing import Any

import aiosqlite
import pytest
from sqlalchemy import Connection, delete, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.storage.database import execute_many, reading, write, writing
from services.common.storage.database_threads import Compute, run_in_thread
from services.common.storage.owners import ensure_owner, owners

PATIENCE_S = 20
IDS = ["usr_ada", "usr_bo"]


async def add(engine: AsyncEngine, *ids: str) -> None:
    async with writing(engine) as connection:
        for owner_id in ids:
            await ensure_owner(connection, owner_id)


def read(connection: Connection) -> list[str]:
    return list(connection.execute(select(owners.c.owner_id).order_by(owners.c.owner_id)).scalars())


async def test_a_read_executes_and_computes_by_turns(engine: AsyncEngine) -> None:
    await add(engine, *IDS)

    def work(connection: Connection, compute: Compute) -> tuple[list[str], int, list[str]]:
        return read(connection), compute(sum, [1, 2], start=3), read(connection)

    async with reading(engine) as connection:
        assert await run_in_thread(connection, work) == (IDS, 6, IDS)


async def test_what_computes_leaves_the_event_loop_free(engine: AsyncEngine) -> None:
    seen, loop = asyncio.Event(), asyncio.get_running_loop()

    def work(connection: Connection, compute: Compute) -> int:
        def computed() -> int:
            # The loop goes on while this waits for it.
            asyncio.run_coroutine_threadsafe(seen_by_loop(), loop).result(PATIENCE_S)
            return threading.get_ident()

        thread: int = compute(computed)
        return thread

    async def seen_by_loop() -> None:
        seen.set()

    async with reading(engine) as connection:
        assert await run_in_thread(connection, work) != threading.get_ident()
    assert seen.is_set()


async def test_errors_are_those_of_a_read(engine: AsyncEngine) -> None:
    def fails(connection: Connection, compute: Compute) -> None:
        compute(int, "x")

    def is_silent(connection: Connection, compute: Compute) -> None:
        raise TimeoutError

    async with reading(engine) as connection:
        with pytest.raises(ValueError, match="invalid literal"):
            await run_in_thread(connection, fails)
    with pytest.raises(GatewayError) as refused:
        async with reading(engine) as connection:
            await run_in_thread(connection, is_silent)
    assert refused.value.reason == errors_pb2.REASON_UNAVAILABLE


async def test_a_cancelled_read_leaves_its_connection_usable(engine: AsyncEngine) -> None:
    await add(engine, *IDS)
    began, goes_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(connection: Connection, compute: Compute) -> list[str]:
        def wait() -> None:
            loop.call_soon_threadsafe(began.set)
            goes_on.wait(PATIENCE_S)

        read(connection)
        compute(wait)
        return read(connection)

    async def search() -> None:
        async with reading(engine) as connection:
            await run_in_thread(connection, work)

    searching = asyncio.create_task(search())
    await began.wait()
    searching.cancel()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await searching
    await add(engine, "usr_cy")
    async with reading(engine) as connection:
        assert await connection.run_sync(read) == [*IDS, "usr_cy"]


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
async def test_sqlite_reads_and_computes_in_one_visit(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits: list[Any] = []
    execute: Any = aiosqlite.Connection._execute

    async def counted(self: aiosqlite.Connection, work: Any, *args: Any, **kwargs: Any) -> Any:
        visits.append(work)
        return await execute(self, work, *args, **kwargs)

    def work(connection: Connection, compute: Compute) -> list[int]:
        statements = text("SELECT 1"), text("SELECT 2")
        return [compute(int, connection.execute(one).scalar_one()) for one in statements]

    async with reading(engine) as connection:
        monkeypatch.setattr(aiosqlite.Connection, "_execute", counted)
        assert await run_in_thread(connection, work) == [1, 2]
        assert visits == [work]


async def test_a_transaction_in_one_piece_is_committed(engine: AsyncEngine) -> None:
    async def work(connection: AsyncConnection) -> list[str]:
        rows = [{"owner_id": owner, "memories": 0, "size_bytes": 0} for owner in IDS]
        await execute_many(connection, insert(owners), rows)
        await ensure_owner(connection, IDS[0])
        return list(await connection.scalars(select(owners.c.owner_id)))

    for is_lasting in (True, False):
        assert sorted(await write(engine, work, is_lasting=is_lasting)) == IDS
        async with reading(engine) as connection:
            assert await connection.run_sync(read) == IDS
        await write(engine, lambda connection: connection.execute(delete(owners)))


async def test_a_transaction_in_one_piece_that_fails_leaves_nothing(engine: AsyncEngine) -> None:
    async def work(connection: AsyncConnection) -> None:
        await ensure_owner(connection, IDS[0])
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        await write(engine, work)
    await add(engine, IDS[1])
    async with reading(engine) as connection:
        assert await connection.run_sync(read) == [IDS[1]]


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
async def test_a_cancelled_caller_leaves_a_whole_transaction(engine: AsyncEngine) -> None:
    entered, left = threading.Event(), threading.Event()

    async def work(connection: AsyncConnection) -> None:
        await ensure_owner(connection, IDS[0])
        entered.set()
        assert left.wait(PATIENCE_S)
        await ensure_owner(connection, IDS[1])

    task = asyncio.create_task(write(engine, work))
    await asyncio.to_thread(entered.wait, PATIENCE_S)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    left.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with reading(engine) as connection:
        assert await connection.run_sync(read) == IDS
    await write(engine, lambda connection: connection.execute(delete(owners)))


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
async def test_a_transaction_in_one_piece_awaits_nothing_else(engine: AsyncEngine) -> None:
    async def work(connection: AsyncConnection) -> None:
        await ensure_owner(connection, IDS[0])
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="awaits something else"):
        await write(engine, work)
    async with reading(engine) as connection:
        assert await connection.run_sync(read) == []

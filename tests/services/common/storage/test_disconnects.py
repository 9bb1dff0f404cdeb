"""Connections that a database server closes while they are idle, or in a transaction."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import asyncpg  # type: ignore[import-untyped]  # it brings no types
import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.errors import GatewayError
from services.common.settings import Storage
from services.common.storage.database import (
    open_engine,
    read,
    reading,
    reading_once,
    write,
    writing,
)
from services.common.storage.owners import ensure_owner, owners

_COUNT = select(func.count()).select_from(owners)
_NAME = "disconnected"
# `reading` or `writing`.
Opens = Callable[[AsyncEngine], AbstractAsyncContextManager[AsyncConnection]]
_END = f"""
SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = '{_NAME}'
"""

pytestmark = pytest.mark.parametrize("storage", ["postgresql"], indirect=True)


@pytest.fixture
async def engine(storage: Storage) -> AsyncIterator[AsyncEngine]:
    url = f"{storage.database_url}&application_name={_NAME}"
    engine = open_engine(Storage(data_dir=storage.data_dir, database_url=url))
    yield engine
    await engine.dispose()


async def end_connections(storage: Storage) -> None:
    """Close all connections of `engine`, on the side of the server."""
    connection = await asyncpg.connect(storage.database_url)
    try:
        await connection.execute(_END)
    finally:
        await connection.close()


def end_unnoticed(storage: Storage) -> None:
    """Close them while this thread's event loop does not run, so that it has not noticed yet."""
    thread = threading.Thread(target=lambda: asyncio.run(end_connections(storage)))
    thread.start()
    thread.join()


async def count(connection: AsyncConnection) -> int:
    return await connection.scalar(_COUNT) or 0


async def _read(engine: AsyncEngine) -> int:
    return await read(engine, count)


async def _read_once(engine: AsyncEngine) -> int:
    async with reading_once(engine) as connection:
        return await count(connection)


async def _write(engine: AsyncEngine) -> int:
    return await write(engine, count)


@pytest.mark.parametrize("use", [_read, _read_once, _write])
async def test_a_connection_that_ended_unnoticed_is_replaced(
    engine: AsyncEngine, storage: Storage, use: Callable[[AsyncEngine], Awaitable[int]]
) -> None:
    assert await use(engine) == 0
    end_unnoticed(storage)
    assert await use(engine) == 0


@pytest.mark.parametrize("block", [reading, writing])
async def test_a_connection_known_to_have_ended_is_not_taken(
    engine: AsyncEngine, storage: Storage, block: Opens
) -> None:
    async with block(engine) as connection:
        assert await count(connection) == 0
    await end_connections(storage)
    for _ in range(10):  # the loop reads the ends of the connections
        await asyncio.sleep(0)
    async with block(engine) as connection:
        assert await count(connection) == 0


async def test_a_transaction_cut_before_its_commit_runs_again(
    engine: AsyncEngine, storage: Storage
) -> None:
    attempts: list[int] = []

    async def add(connection: AsyncConnection) -> None:
        attempts.append(await count(connection))
        await ensure_owner(connection, "ada")
        if len(attempts) == 1:
            end_unnoticed(storage)
        await ensure_owner(connection, "bob")

    await write(engine, add)
    assert attempts == [0, 0]
    assert await _read(engine) == 2


async def test_a_transaction_cut_at_its_commit_does_not_run_again(
    engine: AsyncEngine, storage: Storage
) -> None:
    attempts: list[int] = []

    async def add(connection: AsyncConnection) -> None:
        attempts.append(await count(connection))
        await ensure_owner(connection, "ada")
        end_unnoticed(storage)

    with pytest.raises(GatewayError, match="does not answer"):
        await write(engine, add)
    assert attempts == [0]


async def test_a_transaction_that_is_cut_each_time_runs_twice(
    engine: AsyncEngine, storage: Storage
) -> None:
    attempts: list[int] = []

    async def add(connection: AsyncConnection) -> None:
        attempts.append(await count(connection))
        end_unnoticed(storage)
        await ensure_owner(connection, "ada")

    with pytest.raises(GatewayError, match="does not answer"):
        await write(engine, add)
    assert attempts == [0, 0]

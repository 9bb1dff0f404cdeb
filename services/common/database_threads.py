"""Database reads with expensive computations between their statements.

::

    def work(connection: Connection, compute: Compute) -> int:
        rows = connection.execute(select(table)).all()
        return compute(sum, [row.size for row in rows])

    async with reading(engine) as connection:
        total = await run_in_thread(connection, work)
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.util import await_only

# Calls a function with arguments, and returns its result.
Compute = Callable[..., Any]

_T = TypeVar("_T")


async def run_in_thread(
    connection: AsyncConnection, work: Callable[[Connection, Compute], _T]
) -> _T:
    """Run a function with expensive computations between its statements off the event loop.

    On SQLite the whole function runs in the thread of the connection: switching threads for each
    statement and each computation would take longer than a short statement.

    Args:
        connection: the connection.
        work: called with the connection, and with a function by which it calls the expensive
            functions. On SQLite, statements with several parameter sets fail.
    """
    if connection.dialect.name == "postgresql":
        return await connection.run_sync(work, _compute_apart)
    adapted: Any = (await connection.get_raw_connection()).dbapi_connection
    result: _T = await adapted.visit(work, connection.sync_connection, _compute)
    return result


def _compute(function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    return function(*args, **kwargs)


def _compute_apart(function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    return await_only(asyncio.to_thread(function, *args, **kwargs))

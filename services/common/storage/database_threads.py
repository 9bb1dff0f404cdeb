"""Work that runs in the thread of a SQLite connection, without a switch of threads per statement.

::

    def work(connection: Connection, compute: Compute) -> int:
        rows = connection.execute(select(table)).all()
        return compute(sum, [row.size for row in rows])

    total = await read(engine, lambda connection: run_in_thread(connection, work))
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
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
            functions.
    """
    if isinstance(connection, _ConnectionInThread):
        return work(connection.of_this_thread(), _compute)
    if connection.dialect.name == "postgresql":
        return await connection.run_sync(work, _compute_apart)
    adapted: Any = (await connection.get_raw_connection()).dbapi_connection
    result: _T = await adapted.visit(work, connection.sync_connection, _compute)
    return result


def transact(
    engine: AsyncEngine,
    connection: Connection,
    work: Callable[[AsyncConnection], Coroutine[Any, Any, _T]],
) -> _T:
    """Run a coroutine in a transaction, in the current thread; return its result.

    The coroutine executes statements by the connection that it gets, and awaits nothing else.
    """
    with connection.begin():
        return _complete(work(_ConnectionInThread(engine, connection)))


class ConnectionOfReads(AsyncConnection):
    """A connection that is opened for each statement."""

    __slots__ = ("_read",)

    def __init__(
        self,
        engine: AsyncEngine,
        read: Callable[[Callable[[Connection], Any]], Coroutine[Any, Any, Any]],
    ) -> None:
        """Create a connection whose statements are executed by `read`."""
        super().__init__(engine)
        self._read = read

    async def execute(self, *args: Any, **options: Any) -> Any:
        """Execute a statement, as of `AsyncConnection`."""
        return await self._read(lambda connection: connection.execute(*args, **options))

    async def scalar(self, *args: Any, **options: Any) -> Any:
        """Execute a statement, as of `AsyncConnection`."""
        return await self._read(lambda connection: connection.scalar(*args, **options))

    async def scalars(self, *args: Any, **options: Any) -> Any:
        """Execute a statement, as of `AsyncConnection`."""
        return await self._read(lambda connection: connection.scalars(*args, **options))


class _ConnectionInThread(AsyncConnection):
    """A connection whose statements are executed at once, by the current thread."""

    __slots__ = ()

    async def execute(self, *args: Any, **options: Any) -> Any:
        return self.of_this_thread().execute(*args, **options)

    async def scalar(self, *args: Any, **options: Any) -> Any:
        return self.of_this_thread().scalar(*args, **options)

    async def scalars(self, *args: Any, **options: Any) -> Any:
        return self.of_this_thread().scalars(*args, **options)

    async def exec_driver_sql(self, *args: Any, **options: Any) -> Any:
        return self.of_this_thread().exec_driver_sql(*args, **options)

    def of_this_thread(self) -> Connection:
        assert self.sync_connection is not None
        return self.sync_connection


def _complete(work: Coroutine[Any, Any, _T]) -> _T:
    try:
        work.send(None)
    except StopIteration as ended:
        result: _T = ended.value
        return result
    work.close()
    raise RuntimeError("the coroutine awaits something else than statements of its connection")


def _compute(function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    return function(*args, **kwargs)


def _compute_apart(function: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    return await_only(asyncio.to_thread(function, *args, **kwargs))

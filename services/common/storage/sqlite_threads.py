"""Threads of a process, each with a connection to the SQLite file while it runs transactions.

A transaction that runs in one of them is passed to the thread once, and its result back once. By
the driver for event loops, opening and closing alone switch threads twice, each time the loop has
to come round, and while it computes the file is idle.
"""

import sqlite3
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from services.common.storage.sqlite_file import SqliteFile, set_up


class _Cursor(sqlite3.Cursor):
    """A cursor that fetches all rows at once, so that they are there after its transaction."""

    def execute(self, *args: Any) -> Self:
        """Execute a statement, and fetch its rows."""
        super().execute(*args)
        self._rows = deque(super().fetchall() if self.description else ())
        return self

    def fetchone(self) -> Any:
        """Return the next row; None after the last one."""
        return self._rows.popleft() if self._rows else None

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """Return the next rows."""
        return [self._rows.popleft() for _ in range(min(size or 1, len(self._rows)))]

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        rows, self._rows = self._rows, deque()
        return list(rows)


class _File(SqliteFile):
    """A connection of SQLAlchemy's driver for threads."""

    def cursor(self, factory: Any = _Cursor) -> Any:
        """Return a cursor that fetches all rows at once."""
        return super().cursor(factory)

    def begin_to_read(self) -> None:
        """Begin a transaction whose snapshot is taken by its first statement."""
        self.execute("BEGIN")


def open_in_threads(file: Path, connections: int, on_begin: Callable[[Connection], None]) -> Engine:
    """Return an engine for transactions in threads.

    Args:
        file: the SQLite file.
        connections: at most so many are open.
        on_begin: called at the beginning of each transaction.
    """
    engine = create_engine(
        "sqlite://",
        creator=partial(sqlite3.connect, str(file), factory=_File, check_same_thread=False),
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        hide_parameters=True,
    )
    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", on_begin)
    return engine


def connect_and_run(engine: Engine, work: Callable[[Connection], None]) -> None:
    """Call a function with a connection, in the current thread."""
    with engine.connect() as connection:
        work(connection)

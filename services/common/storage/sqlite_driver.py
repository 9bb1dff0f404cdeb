"""SQLite driver for SQLAlchemy that switches to the connection's thread once per statement.

SQLAlchemy's own driver switches to the thread to create a cursor, to execute, to fetch and to
close. Each switch costs as much as a small statement, and takes the GIL from the event loop twice.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import aiosqlite
from sqlalchemy.dialects.sqlite.aiosqlite import (
    AsyncAdapt_aiosqlite_connection,
    AsyncAdapt_aiosqlite_cursor,
    AsyncAdapt_aiosqlite_dbapi,
)
from sqlalchemy.util import EMPTY_DICT, await_only

_T = TypeVar("_T")


class _Executed(NamedTuple):
    """The result of a statement; attributes as of `sqlite3.Cursor`, and the fetched rows."""

    description: Any
    rowcount: int
    lastrowid: int | None
    rows: deque[Any]


_NOTHING = _Executed(None, -1, None, deque())


class _Cursor(AsyncAdapt_aiosqlite_cursor):
    """A cursor that executes a statement and fetches its rows in one thread switch."""

    __slots__ = ("_executed",)

    # The driver's cursor is already closed.
    _awaitable_cursor_close = False

    def __init__(self, adapt_connection: AsyncAdapt_aiosqlite_connection) -> None:
        self._adapt_connection = adapt_connection
        self._connection = adapt_connection._connection
        self._cursor: Any = None
        self._soft_closed_memoized = EMPTY_DICT
        self._executed = _NOTHING
        self._rows = deque()

    @property
    def description(self) -> Any:
        """The columns of the rows; None if the statement returns no rows."""
        return self._executed.description

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""
        return self._executed.rowcount

    @property
    def lastrowid(self) -> Any:
        """The rowid of the last inserted row."""
        return self._executed.lastrowid

    def execute(self, operation: Any, parameters: Any = None) -> None:
        """Execute a statement, in the thread of the connection."""
        adapted: Any = self._adapt_connection
        if adapted.is_in_thread():
            given = () if parameters is None else parameters
            self._keep(_execute(*self._work(sqlite3.Connection.execute, operation, given)))
        else:
            super().execute(operation, parameters)

    def executemany(self, operation: Any, seq_of_parameters: Any) -> None:
        """Execute a statement for each of many parameters, in the thread of the connection."""
        adapted: Any = self._adapt_connection
        if adapted.is_in_thread():
            work = self._work(sqlite3.Connection.executemany, operation, seq_of_parameters)
            self._keep(_execute(*work))
        else:
            super().executemany(operation, seq_of_parameters)

    async def _execute_async(self, operation: Any, parameters: Any) -> None:
        given = () if parameters is None else parameters
        await self._visit(sqlite3.Connection.execute, operation, given)

    async def _executemany_async(self, operation: Any, seq_of_parameters: Any) -> None:
        await self._visit(sqlite3.Connection.executemany, operation, seq_of_parameters)

    async def _visit(self, execute: Any, operation: Any, parameters: Any) -> None:
        driver: Any = self._connection
        async with self._adapt_connection._execute_mutex:
            work = self._work(execute, operation, parameters)
            self._keep(await driver._execute(_execute, *work))

    def _work(self, execute: Any, operation: Any, parameters: Any) -> tuple[Any, ...]:
        """Return the arguments of `_execute`."""
        adapted: Any = self._adapt_connection
        begins, adapted.begins_with_next = adapted.begins_with_next, False
        return adapted._connection._conn, execute, begins, operation, parameters

    def _keep(self, executed: _Executed) -> None:
        self._executed = executed
        self._rows = executed.rows


class SqliteConnection(AsyncAdapt_aiosqlite_connection):
    """A connection of the driver.

    Attributes:
        begins_with_next: whether the next statement begins a transaction, in the same thread
            switch.
    """

    __slots__ = ("begins_with_next",)

    _cursor_cls: type[AsyncAdapt_aiosqlite_cursor] = _Cursor

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.begins_with_next = False

    def is_in_thread(self) -> bool:
        """Return whether the current thread is that of the connection."""
        driver: Any = self._connection
        return threading.current_thread() is driver._thread

    def commit(self) -> None:
        """Commit, in the thread of the connection."""
        if self.is_in_thread():
            self._connection._conn.commit()
        else:
            super().commit()

    def rollback(self) -> None:
        """Roll back, in the thread of the connection."""
        if self.is_in_thread():
            self._connection._conn.rollback()
        else:
            super().rollback()

    def begin_to_read(self) -> None:
        """Begin a transaction with the next statement, which takes its snapshot."""
        self.begins_with_next = True

    def begin_to_write(self) -> None:
        """Begin a transaction that writes, in the thread of the connection."""
        self.begins_with_next = False
        driver: Any = self._connection
        if self.is_in_thread():
            driver._conn.begin_to_write()
        else:
            try:
                await_only(driver._execute(driver._conn.begin_to_write))
            except Exception as error:
                self._handle_exception(error)

    async def visit(self, work: Callable[..., _T], *args: Any) -> _T:
        """Call a function in the connection's thread, where it executes statements itself."""
        driver: Any = self._connection
        result: _T = await driver._execute(work, *args)
        return result


class SqliteDriver(AsyncAdapt_aiosqlite_dbapi):
    """The DBAPI `module` of a SQLite engine."""

    def __init__(self) -> None:
        super().__init__(aiosqlite, sqlite3)

    def connect(self, *args: Any, **kwargs: Any) -> SqliteConnection:
        """Open a connection; arguments as of `aiosqlite.connect`."""
        return SqliteConnection(self, super().connect(*args, **kwargs)._connection)


def _execute(
    connection: sqlite3.Connection, execute: Any, begins: bool, operation: str, parameters: Any
) -> _Executed:
    """Execute a statement and fetch its rows; if it `begins` a transaction, execute BEGIN first."""
    if begins:
        connection.execute("BEGIN")
    cursor = execute(connection, operation, parameters)
    try:
        rows = deque(cursor.fetchall() if cursor.description else ())
        return _Executed(cursor.description, cursor.rowcount, cursor.lastrowid, rows)
    finally:
        cursor.close()

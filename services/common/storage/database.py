"""The database: SQLite beside the data, or a PostgreSQL server.

::

    engine = open_engine(settings.storage)
    async with writing(engine) as connection:
        await connection.execute(insert(table).values(…))

Repositories use SQLAlchemy Core with the shared `metadata`, and behave the same on both. Times are
Unix milliseconds (UTC), ids come from `services.common.ids`.
`services.common.storage.database_errors` converts errors of the database, and
`services.common.storage.migrations.runner` makes its tables.
"""

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Executable,
    MetaData,
    Table,
    event,
    text,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from services.common.grpc.authentication import caller_id
from services.common.settings import SettingsError, Storage
from services.common.storage.connection_turns import ConnectionTurns
from services.common.storage.database_errors import OPERATIONAL_ERRORS, translate_errors
from services.common.storage.database_metrics import metrics_of
from services.common.storage.database_threads import (
    ConnectionOfReads,
    transact,
)
from services.common.storage.disconnects import Sending, again_if_disconnected
from services.common.storage.postgresql import POSTGRESQL_SCHEMES, open_postgresql
from services.common.storage.private import make_private
from services.common.storage.sqlite_file import SqliteFile, set_up

SQLITE_FILE = "gateway.db"

# Each connection has a thread of its own, which competes for the GIL with the event loop.
_READS_AT_ONCE = 2
# SQLAlchemy blocks for 3 µs per row before it passes all rows to the driver.
_ROWS_AT_ONCE = 1_000
# Key of the gateway's PostgreSQL advisory lock: the bytes "gateway".
_LOCK = int.from_bytes(b"gateway", "big")
_WRITES = "gateway_writes"
_LASTING = "gateway_lasting"
_WRITERS = "gateway_writers"
_READERS = "gateway_readers"
_IN_THREADS = "gateway_in_threads"
_ALONE = "gateway_alone"
_NOT_LASTING = text("SET LOCAL synchronous_commit = off")
_SYNCHRONOUS = "gateway_synchronous"

_T = TypeVar("_T")

# The tables are created by the migrations (`services.common.storage.migrations`). PostgreSQL
# options of indexes are only in the migrations: naming the dialect here would load it, which takes
# 2 MB.
metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def is_sqlite(storage: Storage) -> bool:
    """Return whether the database is a SQLite file on this machine."""
    return not storage.database_url


def reports_storage(storage: Storage) -> Storage | None:
    """Return the settings of the replica that reports read, or None if there is none.

    Raises:
        SettingsError: `storage.reports_url` is set without `storage.database_url`, or is not a
            PostgreSQL URL.
    """
    url = storage.reports_url
    if not url:
        return None
    if is_sqlite(storage):
        raise SettingsError(
            "storage.reports_url: needs storage.database_url, the PostgreSQL database that it "
            "replicates; remove it for SQLite"
        )
    if not url.startswith(POSTGRESQL_SCHEMES):
        raise SettingsError(
            "storage.reports_url: must be postgresql://user:password@host:port/database of a "
            "replica; leave it empty to read reports from the database"
        )
    return storage.model_copy(update={"database_url": url, "reports_url": ""})


def open_engine(storage: Storage) -> AsyncEngine:
    """Create the engine for the configured database; it does not connect yet.

    The folder of a SQLite file is created if it is missing.

    Raises:
        SettingsError: `storage.database_url` is not a PostgreSQL URL, or the data folder cannot be
            created.
    """
    if is_sqlite(storage):
        return _open_sqlite(storage.data_dir)
    return open_postgresql(storage.database_url, storage.database_connections)


def sync_engines(engine: AsyncEngine) -> Sequence[Engine]:
    """Return the engines with the events of what is executed: on the event loop, and in threads."""
    in_threads: Engine | None = engine.get_execution_options().get(_IN_THREADS)
    return (engine.sync_engine,) if in_threads is None else (engine.sync_engine, in_threads)


@asynccontextmanager
async def reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Yield a connection for reading.

    On SQLite all statements see one snapshot of the database; on PostgreSQL each statement sees a
    snapshot of its own.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    with translate_errors(engine):
        async with _connected(engine) as connection:
            yield connection


@asynccontextmanager
async def reading_once(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Yield a connection for a single statement that reads.

    A single statement sees one snapshot by itself. Beginning and ending a transaction around it
    would cost as much as the statement.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    turns = _turns(engine, _READERS)

    async def read_in_thread(execute: Callable[[Connection], Any]) -> Any:
        def read_now(connection: Connection) -> Any:
            with connection.execution_options(**{_ALONE: True}).begin():
                return execute(connection)

        assert turns is not None
        return await turns.transact(caller_id(), read_now)

    async def read_alone(execute: Callable[[Connection], Any]) -> Any:
        async def read_now(_: Sending) -> Any:
            async with _connected(engine) as connection:
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                return await connection.run_sync(execute)

        return await again_if_disconnected(read_now)

    with translate_errors(engine):
        yield ConnectionOfReads(engine, read_alone if turns is None else read_in_thread)


async def read(
    engine: AsyncEngine, work: Callable[[AsyncConnection], Coroutine[Any, Any, _T]]
) -> _T:
    """Return the result of `work`, called with a connection as of `reading`.

    On SQLite all of it runs in the thread of the connection, so that no statement waits for the
    event loop.

    Args:
        engine: the database.
        work: executes statements; it awaits nothing else, and computes briefly.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    turns = _turns(engine, _READERS)

    async def read_apart(_: Sending) -> _T:
        async with _connected(engine) as connection:
            return await work(connection)

    def read_now(connection: Connection) -> _T:
        return transact(engine, connection.execution_options(**{_ALONE: False}), work)

    with translate_errors(engine):
        if turns is None:
            return await again_if_disconnected(read_apart)
        return await turns.transact(caller_id(), read_now)


@asynccontextmanager
async def writing(
    engine: AsyncEngine, *, is_lasting: bool = True
) -> AsyncIterator[AsyncConnection]:
    """Yield a connection in a transaction: committed at the end, rolled back by an exception.

    On SQLite the transaction holds the write lock from its beginning, so that the data it read
    cannot change before it writes.

    Args:
        engine: the database.
        is_lasting: whether the commit must survive a power failure. Data that are useless after a
            power failure, such as lock holders, are written in a fraction of the time.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    turns = _turns(engine, _WRITERS)
    # When the file is locked, SQLite sleeps and retries. Writers of this process therefore queue
    # here: their users are served in turn, and in half the time.
    async with turns.turn(caller_id()) if turns else nullcontext():
        with translate_errors(engine):
            async with _transaction(engine, is_lasting) as connection:
                yield connection


async def write(
    engine: AsyncEngine,
    work: Callable[[AsyncConnection], Coroutine[Any, Any, _T]],
    *,
    is_lasting: bool = True,
) -> _T:
    """Return the result of `work`, called with a connection in a transaction as of `writing`.

    On SQLite the whole transaction runs in the thread of its connection. Since no statement waits
    for the event loop, others wait for the write lock a fraction of the time.

    Args:
        engine: the database.
        work: executes statements; it awaits nothing else, and computes briefly. It is called again
            when the connection to a server turned out to be broken before the commit.
        is_lasting: as of `writing`.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    turns = _turns(engine, _WRITERS)

    async def transact_apart(sending: Sending) -> _T:
        async with _transaction(engine, is_lasting) as connection:
            result = await work(connection)
            sending.is_commit_sent = True
            return result

    def transact_now(connection: Connection) -> _T:
        return transact(engine, connection.execution_options(**_options(is_lasting)), work)

    with translate_errors(engine):
        if turns is None:
            return await again_if_disconnected(transact_apart)
        return await turns.transact(caller_id(), transact_now)


@asynccontextmanager
async def writing_alone(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Like `writing`, but only one such transaction runs at a time in all processes.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    async with writing(engine) as connection:
        if connection.dialect.name == "postgresql":
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        yield connection


async def execute_many(
    connection: AsyncConnection, statement: Executable, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Execute a statement for each of many rows, in batches that block the event loop briefly."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        await connection.execute(statement, rows[start : start + _ROWS_AT_ONCE])


def insert_into(connection: AsyncConnection, table: Table) -> Any:
    """Return an INSERT with support for ON CONFLICT, which SQLAlchemy has per dialect."""
    return insert_in(connection.dialect.name, table)


async def insert_if_absent(
    connection: AsyncConnection, table: Table, values: Mapping[str, Any]
) -> bool:
    """Insert a row unless it would violate a unique constraint; return whether it was inserted."""
    statement = _insert_if_absent(connection.dialect.name, table)
    return (await connection.execute(statement, values)).rowcount == 1


def insert_in(dialect: str, table: Table) -> Any:
    """Return the INSERT of `insert_into` for the name of a dialect."""
    # Imported here, so that only one of the two dialects is loaded.
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


@cache
def _insert_if_absent(dialect: str, table: Table) -> Any:
    """Return the statement of `insert_if_absent`; cached, since building it is slow."""
    return insert_in(dialect, table).on_conflict_do_nothing()


@asynccontextmanager
async def _transaction(engine: AsyncEngine, is_lasting: bool) -> AsyncIterator[AsyncConnection]:
    """Yield a connection in a transaction that writes."""
    async with _connected(engine) as connection:
        await connection.execution_options(**_options(is_lasting))
        async with connection.begin():
            if not is_lasting and connection.dialect.name == "postgresql":
                await connection.execute(_NOT_LASTING)
            yield connection


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    connection = await _connect(engine)
    try:
        yield connection
    finally:
        await connection.close()


def _turns(engine: AsyncEngine, which: str) -> ConnectionTurns | None:
    """Return the order of the readers or writers of this process, or None if they need none."""
    turns: ConnectionTurns | None = engine.get_execution_options().get(which)
    return turns


def _options(is_lasting: bool) -> dict[str, bool]:
    return {_WRITES: True, _LASTING: is_lasting}


async def _connect(engine: AsyncEngine) -> AsyncConnection:
    # Drivers raise OSError while they connect. Later an OSError may come from the caller's own
    # code in the transaction, and is not an error of the database.
    metrics = metrics_of(engine)
    with (
        translate_errors(engine, (*OPERATIONAL_ERRORS, OSError)),
        nullcontext() if metrics is None else metrics.waiting(),
    ):
        return await engine.connect()


def _open_sqlite(folder: Path) -> AsyncEngine:
    file = folder / SQLITE_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            # SQLite creates its other files with the mode of this file.
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise SettingsError(f"storage.data_dir: {folder}: {error.strerror}") from error
    for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        make_private(path)
    from services.common.storage.sqlite_driver import SqliteDriver
    from services.common.storage.sqlite_threads import connect_and_run, open_in_threads

    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(file)),
        module=SqliteDriver(),
        connect_args={"factory": SqliteFile},
        hide_parameters=True,
    )
    in_threads = open_in_threads(file, 1 + _READS_AT_ONCE, _begin_sqlite)
    connected = partial(connect_and_run, in_threads)
    engine.update_execution_options(
        **{
            _IN_THREADS: in_threads,
            _WRITERS: ConnectionTurns(1, connected),
            _READERS: ConnectionTurns(_READS_AT_ONCE, connected),
        }
    )
    event.listen(engine.sync_engine, "connect", set_up)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    event.listen(engine.sync_engine, "engine_disposed", lambda _: in_threads.dispose())
    return engine


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    is_writing = options.get(_WRITES, False)
    adapted: Any = connection.connection.dbapi_connection
    if not is_writing:
        if not options.get(_ALONE, False):
            adapted.begin_to_read()
        return
    # The connection keeps the mode, so it is set only when it changes.
    how = "FULL" if options.get(_LASTING, True) else "NORMAL"
    if connection.info.get(_SYNCHRONOUS) != how:
        connection.exec_driver_sql(f"PRAGMA synchronous = {how}")
        connection.info[_SYNCHRONOUS] = how
    adapted.begin_to_write()

"""The database: SQLite beside the data, or a PostgreSQL server.

::

    engine = open_engine(settings.storage)
    await migrate(engine)
    async with writing(engine) as connection:
        await connection.execute(insert(table).values(…))

Repositories speak SQLAlchemy Core over the one `metadata` and behave the same on both.
Times are Unix milliseconds (UTC), ids come from `services.common.ids`. What becomes of a
database that does not work says `services.common.database_errors`.
"""

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Executable,
    MetaData,
    Table,
    event,
    inspect,
    text,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from services.common import migrations
from services.common.database_errors import SILENCE, translated
from services.common.errors import unavailable
from services.common.migrations import HEAD
from services.common.migrations.record import Record, insert_record, read_record, write_oldest
from services.common.private import make_private
from services.common.settings import SettingsError, Storage

SQLITE_FILE = "gateway.db"
POSTGRESQL_SCHEMES = ("postgresql://", "postgres://")

# How long a statement waits for another writer of a SQLite file.
_BUSY_TIMEOUT_MS = 10_000
_BUSY_PAUSE_S = 0.005
# Each has a thread of its own. More of them than the pool keeps open are half as fast
# together, since those beyond are opened anew each time.
_READS_AT_ONCE = 4
# SQLAlchemy takes 3 µs for each row, before the driver has them all.
_ROWS_AT_ONCE = 1_000
# Connections to PostgreSQL that a process keeps open; those beyond are closed after use.
_KEPT_CONNECTIONS = 5
_CONNECT_TIMEOUT_S = 5.0
_COMMAND_TIMEOUT_S = 30.0
_MIGRATIONS = Path(migrations.__file__).parent
_SNAPSHOT = _MIGRATIONS / "sqlite.sql"
# Which of a PostgreSQL server's advisory locks is ours: the bytes "gateway".
_LOCK = int.from_bytes(b"gateway", "big")
_WRITES = "gateway_writes"
_LASTING = "gateway_lasting"
_WRITERS = "gateway_writers"
_READS = "gateway_reads"
_ALONE = "gateway_alone"
_SYNCHRONOUS = "gateway_synchronous"

log = logging.getLogger(__name__)

# The steps make the tables (`services.common.migrations`). What they say to PostgreSQL of an index
# is not said again here: to name its dialect loads it, and takes 2 MB.
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
    """Return whether the data live in a SQLite file of this machine."""
    return not storage.database_url


def open_engine(storage: Storage) -> AsyncEngine:
    """Return the engine for what the settings name; nothing is connected yet.

    The folder of a SQLite file is made when it is missing.

    Raises:
        SettingsError: `storage.database_url` is no address of a PostgreSQL server, or the
            data folder cannot be made.
    """
    if is_sqlite(storage):
        return _open_sqlite(storage.data_dir)
    return _open_postgresql(storage.database_url, storage.database_connections)


@asynccontextmanager
async def reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Yield a connection that sees one state of the database and changes nothing.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    connection = await _connect(engine)
    with translated(engine):
        try:
            yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def reading_once(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Yield a connection for one statement that reads.

    One statement sees one state by itself. To open a transaction around it and to end that
    would cost as much as the statement.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    async with _turn(engine, _READS), reading(engine) as connection:
        if engine.dialect.name == "postgresql":
            await connection.execution_options(isolation_level="AUTOCOMMIT")
        else:
            await connection.execution_options(**{_ALONE: True})
        yield connection


@asynccontextmanager
async def writing(
    engine: AsyncEngine, *, is_lasting: bool = True
) -> AsyncIterator[AsyncConnection]:
    """Yield a connection in a transaction: committed at the end, rolled back by an exception.

    On SQLite it holds the write lock from its beginning, so that what it read is still
    so when it writes.

    Args:
        engine: the database.
        is_lasting: whether what was committed must survive a power cut. What is of no use
            after one, such as who holds a lock, is written in a fraction of the time.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    # SQLite makes a process that finds the file locked sleep for a while and retry: writers in
    # a queue are served in order, and in half the time.
    async with _turn(engine, _WRITERS):
        connection = await _connect(engine)
        with translated(engine):
            try:
                await connection.execution_options(**{_WRITES: True, _LASTING: is_lasting})
                async with connection.begin():
                    if not is_lasting and connection.dialect.name == "postgresql":
                        await connection.execute(text("SET LOCAL synchronous_commit = off"))
                    yield connection
            finally:
                await connection.close()


@asynccontextmanager
async def writing_alone(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Yield a transaction as `writing` does, of which one at a time runs in all processes.

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
    """Execute a statement for each of many rows, without keeping the event loop for long."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        await connection.execute(statement, rows[start : start + _ROWS_AT_ONCE])


async def migrate(engine: AsyncEngine) -> None:
    """Bring the tables to what this version needs; any number of processes may do so at once.

    Tables that a newer version has taken further are left as they are.

    Raises:
        GatewayError: unavailable, when the database does not answer, or a newer version has
            taken away what this one needs.
    """
    async with reading(engine) as connection:
        if _is_usable(await connection.run_sync(read_record)):
            return
    async with writing_alone(engine) as connection:
        await connection.run_sync(_migrate)


def insert_into(connection: AsyncConnection, table: Table) -> Any:
    """Return an INSERT that knows ON CONFLICT, which SQLAlchemy has for each engine apart."""
    return _insert_into(connection.dialect.name, table)


async def insert_if_absent(
    connection: AsyncConnection, table: Table, values: Mapping[str, Any]
) -> None:
    """Insert a row unless it would break a unique constraint of its table."""
    await connection.execute(_insert_if_absent(connection.dialect.name, table), values)


def _insert_into(dialect: str, table: Table) -> Any:
    # Only one of the two is ever loaded.
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


@cache
def _insert_if_absent(dialect: str, table: Table) -> Any:
    """Return the statement of `insert_if_absent`, which takes long to make."""
    return _insert_into(dialect, table).on_conflict_do_nothing()


def _turn(engine: AsyncEngine, whose: str) -> AbstractAsyncContextManager[object]:
    """Wait for others of this process, where the database does not take any number at once."""
    turns: asyncio.Semaphore | None = engine.get_execution_options().get(whose)
    return turns or nullcontext()


async def _connect(engine: AsyncEngine) -> AsyncConnection:
    # Drivers raise OSError while they connect. Later it may come from the caller's own
    # work in the transaction and says nothing about the database.
    with translated(engine, (*SILENCE, OSError)):
        return await engine.connect()


def _is_usable(record: Record) -> bool:
    """Return whether the tables can be used as they are; a newer version's are logged.

    Raises:
        GatewayError: unavailable, when they are too new.
    """
    if record.is_newer:
        steps = {"step": record.step, "known": HEAD, "oldest": record.oldest}
        if not record.is_usable:
            log.error("the database is too new for this version", extra=steps)
            raise unavailable(
                f"the database is at step {record.step}, which this version of the gateway cannot "
                f"use (it knows steps up to {HEAD}): {record.advice()}"
            )
        log.warning("the database is of a newer version, which this one works with", extra=steps)
    return record.is_usable


def _migrate(connection: Connection) -> None:
    is_new = not inspect(connection).get_table_names()
    if is_new and connection.dialect.name == "sqlite":
        _make(connection)
    # Another process may have been here since; then there is no need for Alembic.
    elif not _is_usable(read_record(connection)):
        upgrade(connection)


def _make(connection: Connection) -> None:
    """Create the tables of a new SQLite file at once, as all migrations together do."""
    for statement in _SNAPSHOT.read_text().split(";\n")[:-1]:
        connection.exec_driver_sql(statement)
    insert_record(connection)
    log.info("the database was made", extra={"step": HEAD})


def upgrade(connection: Connection) -> None:
    """Apply the migrations that are missing, in the transaction that has begun.

    Raises:
        GatewayError: unavailable, when they do not follow on the step that the tables are at.
    """
    # It tells every step of its own; one line of ours says the same.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        log.error("no way to migrate the database", exc_info=error)
        raise unavailable(
            f"the database is at step {read_record(connection).step}, which this version of the "
            f"gateway does not know (it knows steps up to {HEAD}): run the version that made it"
        ) from error
    write_oldest(connection)
    log.info("the database was migrated", extra={"step": HEAD})


def _open_sqlite(folder: Path) -> AsyncEngine:
    file = folder / SQLITE_FILE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            # SQLite gives its other files the mode that this one has.
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise SettingsError(f"storage.data_dir: {folder}: {error.strerror}") from error
    for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        make_private(path)
    from services.common.sqlite_driver import SqliteDriver

    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(file)),
        module=SqliteDriver(),
        connect_args={"factory": _SqliteConnection},
        hide_parameters=True,
        execution_options={
            _WRITERS: asyncio.Semaphore(1),
            _READS: asyncio.Semaphore(_READS_AT_ONCE),
        },
    )
    event.listen(engine.sync_engine, "connect", _set_up_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


class _SqliteConnection(sqlite3.Connection):
    """A connection whose transaction ends when it is closed.

    One that is closed because its caller was cancelled may have a statement under way, or one
    that something still refers to. SQLite keeps the transaction then, and with it the lock that
    every other writer waits for.
    """

    def close(self) -> None:
        """Roll back and close."""
        # It may be closed already.
        with suppress(sqlite3.Error):
            if self.in_transaction:
                self.rollback()
        super().close()


def _set_up_sqlite(connection: Any, _record: object) -> None:
    # Without this Python's driver begins transactions as it sees fit, and none for DDL.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {_BUSY_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        _execute_patiently(cursor, f"PRAGMA {pragma}")
    cursor.close()


def _execute_patiently(cursor: Any, statement: str) -> None:
    """Execute a statement, again and again while the database is locked.

    `busy_timeout` does not hold for the change to a write-ahead log, which several processes
    make at once where all of them open a new file.
    """
    until = time.monotonic() + _BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            cursor.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_BUSY_PAUSE_S)


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    is_writing = options.get(_WRITES, False)
    adapted: Any = connection.connection.dbapi_connection
    # The first statement decides which state is read, not BEGIN.
    adapted.begins_with_next = not (is_writing or options.get(_ALONE, False))
    if not is_writing:
        return
    # A connection keeps it, so each writer says what it needs, if that is not the last one's.
    how = "FULL" if options.get(_LASTING, True) else "NORMAL"
    if connection.info.get(_SYNCHRONOUS) != how:
        connection.exec_driver_sql(f"PRAGMA synchronous = {how}")
        connection.info[_SYNCHRONOUS] = how
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _open_postgresql(url: str, connections: int) -> AsyncEngine:
    if not url.startswith(POSTGRESQL_SCHEMES):
        raise SettingsError(
            "storage.database_url: takes postgresql://user:password@host:port/database; "
            f"leave it empty for SQLite ({SQLITE_FILE} in storage.data_dir)"
        )

    async def connect() -> Any:
        import asyncpg

        # The driver reads the address itself, with all that libpq allows in it.
        return await asyncpg.connect(
            url, timeout=_CONNECT_TIMEOUT_S, command_timeout=_COMMAND_TIMEOUT_S
        )

    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        pool_size=_KEPT_CONNECTIONS,
        max_overflow=connections - _KEPT_CONNECTIONS,
        pool_timeout=_CONNECT_TIMEOUT_S,
        pool_pre_ping=True,
        hide_parameters=True,
    )

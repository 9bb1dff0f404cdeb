"""Adds batches of usage records and their sums in one transaction.

Binding the values of several hundred rows by SQLAlchemy would block the event loop of a worker. For
PostgreSQL a batch is passed as one array per column, and the server computes the sums. SQLite's
driver binds the values in its own thread, several rows per statement, so that values shared by many
rows are bound once, and the GIL is acquired once for all of them.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import orjson
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.usage.adding import adding_records_to_postgresql, adding_rows_to_sqlite
from services.accounts.usage.label_sums import add_label_sums
from services.accounts.usage.partitions import (
    create_partitions,
    day_of_id,
    is_partition_missing,
)
from services.accounts.usage.sums import sums_of
from services.accounts.usage.tables import days, hours, model_hours, records
from services.common.messages.usage_batch import OWN, SHARED, UsageBatch
from services.common.storage.database import write

# Rows of one statement; binding their values holds the GIL for 50 microseconds.
_ROWS = 25


class _KnownError(Exception):
    """Error raised when some records of a batch have already been added."""


async def add_records(engine: AsyncEngine, batch: UsageBatch) -> int:
    """Add new records and update the sums; return the number of new records.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    if engine.dialect.name == "postgresql":

        async def transact(connection: AsyncConnection) -> Any:
            return await _add_to_postgresql(connection, batch)

        try:
            return await write(engine, transact)
        except IntegrityError as error:
            if not is_partition_missing(error):
                raise
        await create_partitions(engine, _days_of(batch))
        return await write(engine, transact)

    async def add_new(connection: AsyncConnection) -> int:
        new = batch.without(await _known_to_sqlite(connection, batch))
        await _add_to_sqlite(connection, new)
        return new.size

    try:
        await write(engine, partial(_add_to_sqlite, batch=batch))
    except _KnownError:
        # The batch was sent before, and its response was lost. This transaction was rolled back.
        return await write(engine, add_new)
    return batch.size


async def _add_to_postgresql(connection: AsyncConnection, batch: UsageBatch) -> int:
    """Add new rows, even while another transaction adds them; return the number of new rows."""
    # All transactions insert in this order, which prevents deadlocks.
    rows = sorted({own[0]: (*own, *shared) for shared, own in _rows(batch)}.values())
    columns = tuple(map(_storable, zip(*rows, strict=True)))
    if not batch.labels:
        added = await connection.exec_driver_sql(_ADD_TO_POSTGRESQL, columns)
        return int(added.scalar_one())
    new_ids = set(
        (await connection.exec_driver_sql(_ADD_LABELLED_TO_POSTGRESQL, columns)).scalars()
    )
    known_ids = {own[0] for _, own in _rows(batch)} - new_ids
    await add_label_sums(connection, batch.without(known_ids))
    return len(new_ids)


def _days_of(batch: UsageBatch) -> set[int]:
    """Return the days of the records of a batch."""
    return {day for _, own in _rows(batch) if (day := day_of_id(own[0])) is not None}


def _rows(batch: UsageBatch) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    return ((shared, own) for shared, rows in batch.groups.items() for own in rows)


def _storable(column: Sequence[Any]) -> Sequence[Any]:
    """Return values with NUL replaced, which PostgreSQL's texts cannot contain.

    Names in requests may contain NUL.
    """
    if isinstance(column[0], str) and "\0" in "".join(column):
        return [value.replace("\0", "\ufffd") for value in column]
    return column


async def _known_to_sqlite(connection: AsyncConnection, batch: UsageBatch) -> set[str]:
    """Return the ids of a batch that are already in the database."""
    ids = orjson.dumps([own[0] for _, own in _rows(batch)]).decode()
    return set((await connection.execute(_KNOWN_TO_SQLITE, {"ids": ids})).scalars())


async def _add_to_sqlite(connection: AsyncConnection, batch: UsageBatch) -> None:
    """Add rows and update the sums. The transaction holds the write lock.

    Raises:
        _KnownError: some rows are already in the database.
    """
    added = 0
    for statement, rows in ((_ADD_MANY_TO_SQLITE, _ROWS), (_ADD_TO_SQLITE, 1)):
        if parameters := list(_parameters(batch, rows)):
            added += (await connection.exec_driver_sql(statement, parameters)).rowcount
    if added != batch.size:
        raise _KnownError
    if added:
        for statement, sums in zip(_ADD_SUMS_TO_SQLITE, sums_of(batch), strict=True):
            await connection.exec_driver_sql(statement, sums)
        if batch.labels:
            await add_label_sums(connection, batch)


def _parameters(batch: UsageBatch, rows: int) -> Iterator[Sequence[Any]]:
    """Yield the parameters of each statement that adds `rows` rows: 1 or `_ROWS`."""
    for shared, of_group in batch.groups.items():
        in_full_batches = len(of_group) - len(of_group) % _ROWS
        start, end = (0, in_full_batches) if rows == _ROWS else (in_full_batches, len(of_group))
        for first in range(start, end, rows):
            yield (*shared, *chain.from_iterable(of_group[first : first + rows]))


def _adding_to_sqlite(rows: int) -> str:
    """Return the statement that adds a number of rows; the shared values are bound first."""
    shared = ", ".join(f"?{number + 1}" for number in range(len(SHARED)))
    own = ", ".join(f"column{number + 1}" for number in range(len(OWN)))
    values = ", ".join([f"({', '.join('?' * len(OWN))})"] * rows)
    return (
        f"INSERT INTO {records.name} ({', '.join((*SHARED, *OWN))}) "
        f"SELECT {shared}, {own} FROM (VALUES {values}) WHERE true ON CONFLICT (id) DO NOTHING"
    )


_ADD_TO_POSTGRESQL = adding_records_to_postgresql((*OWN, *SHARED))
_ADD_LABELLED_TO_POSTGRESQL = adding_records_to_postgresql((*OWN, *SHARED), returns="id")
_KNOWN_TO_SQLITE = text(
    f"SELECT id FROM {records.name} WHERE id IN (SELECT value FROM json_each(:ids))"
)
_ADD_TO_SQLITE = _adding_to_sqlite(1)
_ADD_MANY_TO_SQLITE = _adding_to_sqlite(_ROWS)
_ADD_SUMS_TO_SQLITE = [adding_rows_to_sqlite(table) for table in (days, hours, model_hours)]

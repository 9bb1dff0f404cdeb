"""Adds batches of usage records, and what they sum up to, in one transaction.

To bind the values of some hundred rows by SQLAlchemy would keep the event loop of a worker from its
requests. PostgreSQL takes a batch as one array for each column, and adds it up itself. SQLite's
driver takes the values in its own thread, piece by piece: those of some rows in one statement, so
that what many of them share is bound once, and the interpreter's lock is taken once for them all.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import aiosqlite
import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.usage_pb2 import USAGE_OUTCOME_FAILED
from services.accounts.usage.sums import GROUP, SUMS, sums_of
from services.accounts.usage.tables import DAY_MS, TOKENS, days, records
from services.common.database import writing
from services.common.database_errors import translated
from services.common.usage_batch import OWN, SHARED, UsageBatch

# Rows of one statement: what they bind holds the interpreter's lock for 50 microseconds.
_ROWS = 25


class _KnownError(Exception):
    """Error raised when some records of a batch are there already."""


async def add_records(engine: AsyncEngine, batch: UsageBatch) -> int:
    """Add records that are not there yet, and count them in the sums; return how many were new.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    if engine.dialect.name == "postgresql":
        async with writing(engine) as connection:
            return await _add_to_postgresql(connection, batch)
    try:
        async with writing(engine) as connection:
            await _add_to_sqlite(connection, batch)
    except _KnownError:
        # The batch was sent before, and its answer was lost; nothing is added so far.
        async with writing(engine) as connection:
            batch = batch.without(await _known_to_sqlite(connection, batch))
            await _add_to_sqlite(connection, batch)
    return batch.size


async def _add_to_postgresql(connection: AsyncConnection, batch: UsageBatch) -> int:
    """Add rows that are not there, also while another transaction adds them; return how many."""
    # In one order everywhere, so that two transactions never wait for each other.
    rows = sorted({own[0]: (*own, *shared) for shared, own in _rows(batch)}.values())
    columns = tuple(map(_storable, zip(*rows, strict=True)))
    added = await connection.exec_driver_sql(_ADD_TO_POSTGRESQL, columns)
    return int(added.scalar_one())


def _rows(batch: UsageBatch) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    return ((shared, own) for shared, rows in batch.groups.items() for own in rows)


def _storable(column: Sequence[Any]) -> Sequence[Any]:
    """Return values without the one character that PostgreSQL's texts cannot have.

    A name in a request may have it.
    """
    if isinstance(column[0], str) and "\0" in "".join(column):
        return [value.replace("\0", "\ufffd") for value in column]
    return column


async def _known_to_sqlite(connection: AsyncConnection, batch: UsageBatch) -> set[str]:
    """Return the ids of a batch that are there."""
    ids = orjson.dumps([own[0] for _, own in _rows(batch)]).decode()
    return set((await connection.execute(_KNOWN_TO_SQLITE, {"ids": ids})).scalars())


async def _add_to_sqlite(connection: AsyncConnection, batch: UsageBatch) -> None:
    """Add rows, and count them. Nobody else writes meanwhile.

    Raises:
        _KnownError: some of them are there.
    """
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, aiosqlite.Connection)
    added = 0
    with translated(connection.engine, (sqlite3.DatabaseError,)):
        for statement, rows in ((_ADD_MANY_TO_SQLITE, _ROWS), (_ADD_TO_SQLITE, 1)):
            async with driver.executemany(statement, _parameters(batch, rows)) as cursor:
                added += max(0, cursor.rowcount)
        if added != batch.size:
            raise _KnownError
        if added:
            await (await driver.executemany(_COUNT_IN_SQLITE, sums_of(batch))).close()


def _parameters(batch: UsageBatch, rows: int) -> Iterator[Sequence[Any]]:
    """Yield what is bound for each statement that adds so many rows: 1, or `_ROWS`."""
    for shared, of_group in batch.groups.items():
        whole = len(of_group) - len(of_group) % _ROWS
        start, end = (0, whole) if rows == _ROWS else (whole, len(of_group))
        for first in range(start, end, rows):
            yield (*shared, *chain.from_iterable(of_group[first : first + rows]))


def _adding_to_sqlite(rows: int) -> str:
    """Return the statement that adds so many rows, whose shared values come first."""
    shared = ", ".join(f"?{number + 1}" for number in range(len(SHARED)))
    own = ", ".join(f"column{number + 1}" for number in range(len(OWN)))
    values = ", ".join([f"({', '.join('?' * len(OWN))})"] * rows)
    return (
        f"INSERT INTO {records.name} ({', '.join((*SHARED, *OWN))}) "
        f"SELECT {shared}, {own} FROM (VALUES {values}) WHERE true ON CONFLICT (id) DO NOTHING"
    )


def _adding_to_postgresql() -> str:
    """Return the statement that adds rows, counts the new ones in sums, and returns their number.

    It takes an array for each column, those of `OWN` and then of `SHARED`.
    """
    names = (*OWN, *SHARED)
    arrays = ", ".join(
        f"CAST(${number} AS {records.c[name].type.compile()}[])"
        for number, name in enumerate(names, 1)
    )
    sums = {
        "requests": "SUM(requests)",
        "failed_requests": (
            f"SUM(CASE WHEN outcome = {USAGE_OUTCOME_FAILED} THEN requests ELSE 0 END)"
        ),
        **{name: f"SUM({name})" for name in TOKENS},
        "cost_pusd": "COALESCE(SUM(cost_pusd), 0)",
        "unpriced": "SUM(CASE WHEN cost_pusd IS NULL THEN 1 ELSE 0 END)",
    }
    places = ", ".join(str(place + 1) for place in range(len(GROUP)))
    return (
        f"WITH added AS (INSERT INTO {records.name} ({', '.join(names)}) "
        f"SELECT * FROM unnest({arrays}) ON CONFLICT (id) DO NOTHING "
        f"RETURNING time_ms, outcome, requests, cost_pusd, {', '.join((*GROUP[1:], *TOKENS))}), "
        f"counted AS (INSERT INTO {days.name} ({', '.join((*GROUP, *SUMS))}) "
        f"SELECT CAST(time_ms / {DAY_MS} AS integer), {', '.join(GROUP[1:])}, "
        f"{', '.join(sums[name] for name in SUMS)} FROM added "
        f"GROUP BY {places} ORDER BY {places} {_ADDED_UP}) SELECT count(*) FROM added"
    )


_ADDED_UP = f"ON CONFLICT ({', '.join(GROUP)}) DO UPDATE SET " + ", ".join(
    f"{name} = {days.name}.{name} + excluded.{name}" for name in SUMS
)
_ADD_TO_POSTGRESQL = _adding_to_postgresql()
_KNOWN_TO_SQLITE = text(
    f"SELECT id FROM {records.name} WHERE id IN (SELECT value FROM json_each(:ids))"
)
_ADD_TO_SQLITE = _adding_to_sqlite(1)
_ADD_MANY_TO_SQLITE = _adding_to_sqlite(_ROWS)
_COUNT_IN_SQLITE = (
    f"INSERT INTO {days.name} ({', '.join((*GROUP, *SUMS))}) "
    f"VALUES ({', '.join('?' * len((*GROUP, *SUMS)))}) {_ADDED_UP}"
)

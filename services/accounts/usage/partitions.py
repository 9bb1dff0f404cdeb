"""Partitions of the usage records by day (UTC), on PostgreSQL.

The table is partitioned by ranges of ids, which begin with the time. A unique index of a
partitioned table has to contain the key of its partitions, and the id of a record is the same
whenever a worker sends it again: it is in one partition, and counts once.

A partition is created beside the table and attached to it, which blocks no transaction that reads
or adds records. Dropping one waits for the transactions that use the table, for a bounded time.
"""

import logging
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import partial

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.usage.tables import DAY_MS, records
from services.common.ids import RECORD, time_prefix
from services.common.storage.database import reading_once, write, writing_alone

_PARENT = records.name
_NAME = re.compile(rf"{_PARENT}_(\d{{4}})_(\d\d)_(\d\d)")
_ID = re.compile(rf"{RECORD}([0-9a-f]{{11}})")
_EPOCH = date(1970, 1, 1).toordinal()
_CHECK_VIOLATION = "23514"  # also the SQLSTATE of a row without a partition
_LOCK_NOT_AVAILABLE = "55P03"
_PARTITIONS = text(
    "SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid "
    f"WHERE inhparent = CAST('{_PARENT}' AS regclass) ORDER BY relname"
)
# All other transactions that use the table wait behind one that waits for its lock.
_WAIT_BRIEFLY = text("SET LOCAL lock_timeout = '2s'")

log = logging.getLogger(__name__)


class _InUseError(Exception):
    """Raised when other transactions use a table for longer than to wait for."""


def day_of_id(record_id: str) -> int | None:
    """Return the day, since 1970-01-01, of a record's id; None if the id has another form. Pure."""
    matched = _ID.match(record_id)
    return int(matched[1], 16) // DAY_MS if matched else None


def name_of(day: int) -> str:
    """Return the name of the partition of a day. Pure."""
    return f"{_PARENT}_{datetime.fromtimestamp(day * DAY_MS / 1000, UTC):%Y_%m_%d}"


def day_of_name(name: str) -> int | None:
    """Return the day of a partition; None for tables that have other names. Pure."""
    matched = _NAME.fullmatch(name)
    if matched is None:
        return None
    year, month, day = map(int, matched.groups())
    return date(year, month, day).toordinal() - _EPOCH


def is_partition_missing(error: IntegrityError) -> bool:
    """Return whether a statement failed as there is no partition for a record. Pure."""
    return _sqlstate(error) == _CHECK_VIOLATION


def _sqlstate(error: DBAPIError) -> str:
    return str(getattr(error.orig, "sqlstate", ""))


async def create_partitions(engine: AsyncEngine, days: Iterable[int]) -> Sequence[str]:
    """Create the partitions of days that have none; return their names.

    Raises:
        GatewayError: unavailable, when the database does not answer, or others use the table.
    """
    days_by_name = {name_of(day): day for day in sorted(days)}
    if days_by_name.keys() <= set(await _names(engine)):
        return []
    # No other process creates one or changes the columns meanwhile.
    async with writing_alone(engine) as connection:
        await connection.execute(_WAIT_BRIEFLY)
        existing = set((await connection.scalars(_PARTITIONS)).all())
        missing = {name: day for name, day in days_by_name.items() if name not in existing}
        for name, day in missing.items():
            await _create(connection, name, day)
    return list(missing)


async def _create(connection: AsyncConnection, name: str, day: int) -> None:
    first, end = (time_prefix(RECORD, (day + more) * DAY_MS) for more in (0, 1))
    await connection.execute(
        text(f"CREATE TABLE IF NOT EXISTS {name} (LIKE {_PARENT} INCLUDING DEFAULTS)")
    )
    await connection.execute(
        text(
            f"ALTER TABLE {_PARENT} ATTACH PARTITION {name} "
            f"FOR VALUES FROM ('{first}') TO ('{end}')"
        )
    )


async def drop_partitions(engine: AsyncEngine, oldest: int) -> Sequence[str]:
    """Drop the partitions of days before `oldest`, with their records; return their names.

    One whose table is in use for long, as by a backup, stays until the next call.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    dropped = []
    for name in await _names(engine):
        day = day_of_name(name)
        if day is None or day >= oldest:
            continue
        try:
            await write(engine, partial(_drop, name=name))
        except _InUseError:
            log.warning("old usage records are in use and stay for now", extra={"table": name})
            break
        dropped.append(name)
    return dropped


async def _drop(connection: AsyncConnection, name: str) -> None:
    await connection.execute(_WAIT_BRIEFLY)
    try:
        await connection.execute(text(f"DROP TABLE IF EXISTS {name}"))
    except DBAPIError as error:
        if _sqlstate(error) == _LOCK_NOT_AVAILABLE:
            raise _InUseError from error
        raise


async def _names(engine: AsyncEngine) -> Sequence[str]:
    """Return the names of all partitions, sorted."""
    async with reading_once(engine) as connection:
        return (await connection.scalars(_PARTITIONS)).all()

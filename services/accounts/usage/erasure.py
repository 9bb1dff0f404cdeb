"""Erasure of a user from stored usage: records are removed, sums stay without the user and the key.

The sums by hour name the hours in which the user has records, which have no index by user. They
lose the user after the records of the hour are gone.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Column, Table, delete, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.usage.adding import adding_to
from services.accounts.usage.label_sums import unname_labels
from services.accounts.usage.sums import KEYS, SUMS
from services.accounts.usage.tables import HOUR_MS, MAXIMUMS, days, hours, records
from services.common.ids import RECORD, time_prefix
from services.common.storage.database import execute_many, reading_once, write
from services.common.storage.erasing import CountErased

_RECORDS_AT_ONCE = 500
# Hours or days, of which each has a row for each key, model and provider.
_TIMES_AT_ONCE = 24
# Keys of sums that name the user.
_PERSONAL = ("user_id", "key_id")


class UsageErasure:
    """Removes batches of a user's usage."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove some records, or take the user out of some sums; return the number of rows.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        first = select(hours.c.hour).where(hours.c.user_id == user_id).order_by(hours.c.hour)
        async with reading_once(self._engine) as connection:
            hour = await connection.scalar(first.limit(1))
        if hour is None:
            removed = await write(self._engine, partial(_unname, days, days.c.day, user_id))
            return removed or await write(
                self._engine,
                lambda connection: unname_labels(connection, user_id, _TIMES_AT_ONCE),
            )
        removed = await self._remove_records(user_id, hour, count)
        return removed or await write(
            self._engine, partial(_unname, hours, hours.c.hour, user_id, at_once=1)
        )

    async def _remove_records(self, user_id: str, hour: int, count: CountErased) -> int:
        """Remove some records of an hour; return their number."""
        begin, end = (time_prefix(RECORD, (hour + more) * HOUR_MS) for more in (0, 1))
        # Both statements name the hour, so that PostgreSQL uses the partition of its day alone.
        of_hour = (records.c.id >= begin, records.c.id < end)
        query = select(records.c.id).where(*of_hour, records.c.user_id == user_id)
        async with reading_once(self._engine) as connection:
            record_ids = (await connection.scalars(query.limit(_RECORDS_AT_ONCE))).all()
        if not record_ids:
            return 0

        async def remove(connection: AsyncConnection) -> None:
            removal = delete(records).where(*of_hour, records.c.id.in_(record_ids))
            removed = await connection.execute(removal)
            await count(connection, "usage_records", removed.rowcount)

        await write(self._engine, remove)
        return len(record_ids)


async def _unname(
    table: Table,
    time: Column[int],
    user_id: str,
    connection: AsyncConnection,
    at_once: int = _TIMES_AT_ONCE,
) -> int:
    """Move some sums of a user to those of nobody; return the number of rows.

    Args:
        table: a table of sums.
        time: its column of the day or the hour.
        user_id: the user.
        connection: a connection in a transaction.
        at_once: number of days or hours.
    """
    theirs = table.c.user_id == user_id
    first = select(time).where(theirs).distinct().order_by(time).limit(at_once)
    columns = [table.c[name] for name in (*KEYS[table.name], *SUMS)]
    removal = delete(table).where(theirs, time.in_(first)).returning(*columns)
    rows = [row._mapping for row in await connection.execute(removal)]
    names = ", ".join(column.name for column in columns)
    values = ", ".join(f":{column.name}" for column in columns)
    addition = f"INSERT INTO {table.name} ({names}) VALUES ({values}) {adding_to(table)}"
    await execute_many(connection, text(addition), _without_user(rows, KEYS[table.name]))
    return len(rows)


def _without_user(rows: Iterable[Any], key: Sequence[str]) -> Sequence[dict[str, Any]]:
    """Return the sums of rows without the user and the key, in the order of their keys. Pure."""
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        unnamed = {**row, **dict.fromkeys(_PERSONAL, "")}
        place = tuple(unnamed[name] for name in key)
        before = sums.setdefault(place, unnamed)
        if before is not unnamed:
            for name in SUMS:
                add = max if name in MAXIMUMS else sum
                amounts = [one[name] for one in (before, unnamed) if one[name] is not None]
                before[name] = add(amounts) if amounts else None
    return [sums[place] for place in sorted(sums)]

"""Adds batches of usage records, and what they sum up to, in one transaction.

To bind the values of some hundred rows by SQLAlchemy would keep the event loop of a worker from its
requests. PostgreSQL takes a batch as one parameter, a JSON array, and SQLite binds the rows in a
thread.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.accounts.v1.usage_pb2 import USAGE_OUTCOME_FAILED, UsageRecord
from services.accounts.usage.tables import DAY_MS, TOKENS, days, records
from services.common.database import writing

# The values of a record in the order of the table's columns.
Row = tuple[Any, ...]

_BIGGEST = 2**63 - 1


async def add_records(engine: AsyncEngine, batch: Sequence[UsageRecord]) -> int:
    """Add records that are not there yet, and count them in the sums; return how many were new.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    # In one order everywhere, so that two transactions never wait for each other.
    rows = [row for _, row in sorted({record.id: _row(record) for record in batch}.items())]
    async with writing(engine) as connection:
        if connection.dialect.name == "postgresql":
            ids, counting = await _add_to_postgresql(connection, rows), _COUNT_IN_POSTGRESQL
        else:
            ids, counting = await _add_to_sqlite(connection, rows), _COUNT_IN_SQLITE
        if ids:
            await connection.execute(counting, {"ids": orjson.dumps(ids).decode()})
    return len(ids)


async def _add_to_postgresql(connection: AsyncConnection, rows: Sequence[Row]) -> Sequence[str]:
    """Add rows that are not there, also while another transaction adds them; return their ids."""
    # PostgreSQL has no text with this character, which a name in a request may have.
    batch = orjson.dumps(rows).replace(rb"\u0000", rb"\ufffd").decode()
    added = await connection.execute(_ADD_TO_POSTGRESQL, {"batch": batch})
    return added.scalars().all()


async def _add_to_sqlite(connection: AsyncConnection, rows: Sequence[Row]) -> Sequence[str]:
    """Add rows that are not there; return their ids. Nobody else writes meanwhile."""
    ids = orjson.dumps([row[0] for row in rows]).decode()
    known = set((await connection.execute(_KNOWN_TO_SQLITE, {"ids": ids})).scalars())
    new = [row for row in rows if row[0] not in known]
    if new:
        await connection.exec_driver_sql(_ADD_TO_SQLITE, new)
    return [row[0] for row in new]


def _row(record: UsageRecord) -> Row:
    """Return the values of a record in the order of the table's columns."""
    return (
        record.id,
        record.time_ms,
        record.request_id,
        record.user_id,
        record.team_id,
        record.key_id,
        record.endpoint,
        record.requested_model,
        record.model,
        record.provider,
        record.upstream_model,
        record.step,
        record.outcome,
        int(not record.is_part),
        record.attempts,
        record.first_content_ms if record.HasField("first_content_ms") else None,
        record.duration_ms,
        min(record.input_tokens, _BIGGEST),
        min(record.output_tokens, _BIGGEST),
        min(record.cached_tokens, _BIGGEST),
        min(record.cache_written_tokens, _BIGGEST),
        min(record.reasoning_tokens, _BIGGEST),
        record.cost_pusd if record.HasField("cost_pusd") else None,
    )


def _counting(ids: str) -> str:
    """Return the statement that adds the records of some ids to the sums of their days."""
    by = [column.name for column in days.primary_key.columns]
    sums = {
        "requests": "SUM(requests)",
        "failed_requests": (
            f"SUM(CASE WHEN outcome = {USAGE_OUTCOME_FAILED} THEN requests ELSE 0 END)"
        ),
        **{name: f"SUM({name})" for name in TOKENS},
        "cost_pusd": "COALESCE(SUM(cost_pusd), 0)",
        "unpriced": "SUM(CASE WHEN cost_pusd IS NULL THEN 1 ELSE 0 END)",
    }
    places = ", ".join(str(place) for place in range(1, len(by) + 1))
    added = ", ".join(f"{name} = {days.name}.{name} + excluded.{name}" for name in sums)
    return (
        f"INSERT INTO {days.name} ({', '.join([*by, *sums])}) "
        f"SELECT CAST(time_ms / {DAY_MS} AS integer), {', '.join(by[1:])}, "
        f"{', '.join(sums.values())} FROM {records.name} WHERE id IN ({ids}) "
        f"GROUP BY {places} ORDER BY {places} "
        f"ON CONFLICT ({', '.join(by)}) DO UPDATE SET {added}"
    )


_NAMES = ", ".join(column.name for column in records.columns)
_IDS = {
    "postgresql": "SELECT value FROM json_array_elements_text(CAST(:ids AS json))",
    "sqlite": "SELECT value FROM json_each(:ids)",
}
_VALUES = ", ".join(
    f"CAST(value ->> {index} AS {column.type.compile()})"
    for index, column in enumerate(records.columns)
)
_ADD_TO_POSTGRESQL = text(
    f"INSERT INTO {records.name} ({_NAMES}) SELECT {_VALUES} "
    "FROM json_array_elements(CAST(:batch AS json)) ON CONFLICT (id) DO NOTHING RETURNING id"
)
_KNOWN_TO_SQLITE = text(f"SELECT id FROM {records.name} WHERE id IN ({_IDS['sqlite']})")
_ADD_TO_SQLITE = (
    f"INSERT INTO {records.name} ({_NAMES}) VALUES ({', '.join('?' * len(records.columns))})"
)
_COUNT_IN_POSTGRESQL = text(_counting(_IDS["postgresql"]))
_COUNT_IN_SQLITE = text(_counting(_IDS["sqlite"]))

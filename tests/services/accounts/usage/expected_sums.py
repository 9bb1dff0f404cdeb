"""Sums of usage records, computed a record at a time, as tests expect them in the database."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import Table, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import UsageRecord
from services.accounts.usage.latency import BOUNDS
from services.accounts.usage.tables import DAY_MS, HOUR_MS, TOKENS, days, hours, model_hours
from services.common.storage.database import reading

Sums = Mapping[tuple[Any, ...], Mapping[str, int]]

KEYS: Mapping[str, Callable[[UsageRecord], tuple[Any, ...]]] = {
    "usage_days": lambda one: (one.time_ms // DAY_MS, *_caller(one), one.model, one.provider),
    "usage_hours": lambda one: (one.time_ms // HOUR_MS, *_caller(one), one.model, one.provider),
    "usage_model_hours": lambda one: (one.time_ms // HOUR_MS, one.model, one.provider),
}


def _caller(one: UsageRecord) -> tuple[str, str, str]:
    return one.user_id, one.team_id, one.key_id


def expected(records: Iterable[UsageRecord], table: Table) -> Sums:
    """Return the sums of records in a table, by key; columns without a count are left out."""
    totals: dict[tuple[Any, ...], dict[str, int]] = {}
    for one in records:
        row = totals.setdefault(KEYS[table.name](one), {})

        def add(name: str, amount: int, row: dict[str, int] = row) -> None:
            row[name] = row.get(name, 0) + amount

        requests = int(not one.is_part)
        add("requests", requests)
        add("failed_requests", requests * (one.outcome == usage_pb2.USAGE_OUTCOME_FAILED))
        add("cancelled_requests", requests * (one.outcome == usage_pb2.USAGE_OUTCOME_CANCELLED))
        for name in (*TOKENS, "cost_pusd", "estimated"):
            add(name, int(getattr(one, name)))
        add("unpriced", int(not one.HasField("cost_pusd")))
        if requests and one.outcome == usage_pb2.USAGE_OUTCOME_SERVED:
            for measure in ("first_content_ms", "duration_ms"):
                if not one.HasField("first_content_ms") and measure == "first_content_ms":
                    continue
                ms = getattr(one, measure)
                bound = next((bound for bound in BOUNDS if ms <= bound), None)
                add(measure, ms)
                add(f"{measure}_longer" if bound is None else f"{measure}_le_{bound}", 1)
                row[f"{measure}_max"] = max(row.get(f"{measure}_max", 0), ms)
    return {key: _without_zeros(row) for key, row in totals.items()}


async def stored(engine: AsyncEngine, table: Table) -> Sums:
    """Return the rows of a table of sums, by key."""
    keys = tuple(column.name for column in table.primary_key.columns)
    async with reading(engine) as connection:
        rows = (await connection.execute(select(table))).mappings().all()
    return {
        tuple(row[name] for name in keys): _without_zeros(
            {name: value for name, value in row.items() if name not in keys}
        )
        for row in rows
    }


def _without_zeros(row: Mapping[str, int | None]) -> Mapping[str, int]:
    return {name: value for name, value in row.items() if value}


async def differences(engine: AsyncEngine, records: Iterable[UsageRecord]) -> list[str]:
    """Return what differs between the sums in the database and those of records."""
    remaining = list(records)
    return [
        f"{table.name} {key}: {of_database.get(key)}, expected {of_records.get(key)}"
        for table in (days, hours, model_hours)
        for of_database, of_records in [(await stored(engine, table), expected(remaining, table))]
        for key in of_database.keys() | of_records.keys()
        if of_database.get(key) != of_records.get(key)
    ]

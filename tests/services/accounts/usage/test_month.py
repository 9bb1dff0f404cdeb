"""What reports over a month read: sums alone, by few statements, of bounded numbers of rows."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.usage.activity import report_activity
from services.common.storage.database import sync_engines
from tests.manual_clock import ManualClock
from tests.services.accounts.usage.month import make_month, report, reports

USERS = 30

# The tables of sums that each report reads. `usage_hours` is large: of a page by hour it reads a
# bounded number of rows, or those of one user, team or key.
TABLES = {
    "by day and model": {"usage_model_hours"},
    "by hour, all of them": {"usage_model_hours"},
    "by hour and model, 1,000 rows": {"usage_model_hours"},
    "by hour and user, 1,000 rows": {"usage_hours"},
    "by day and user, 1,000 rows": {"usage_days"},
    "by model": {"usage_model_hours"},
    "by user, 100 rows": {"usage_days"},
    "by user, 1,000 rows": {"usage_days"},
    "by team": {"usage_days"},
    "by hour, of a user": {"usage_hours"},
    "by hour and user, of a team": {"usage_hours"},
    "by hour, of a key": {"usage_hours"},
}
# The cut of a page by hour, the sums, the latencies, and names of both groupings.
MAX_STATEMENTS = 5


@contextmanager
def executed(engine: AsyncEngine) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that an engine executes, with their parameters."""
    statements: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, sql: str, parameters: Any, *___: Any) -> None:
        statements.append((sql, parameters))

    for sync_engine in sync_engines(engine):
        event.listen(sync_engine, "before_cursor_execute", note)
    yield statements
    for sync_engine in sync_engines(engine):
        event.remove(sync_engine, "before_cursor_execute", note)


async def test_reports_read_sums_alone(engine: AsyncEngine) -> None:
    await make_month(engine, USERS, 48)
    read: dict[str, set[str]] = {}
    for name, request in reports():
        with executed(engine) as statements:
            await report_activity(engine, request, ManualClock())
        assert len(statements) <= MAX_STATEMENTS, name
        read[name] = set(re.findall(r"usage_\w+(?=\.|\s)", " ".join(sql for sql, _ in statements)))
    tables = {name: {table for table in read[name] if not table.endswith("_ms")} for name in read}
    assert tables == TABLES


@pytest.mark.parametrize(
    ("of", "index"),
    [
        ({"user_id": "user_7"}, "user_id"),
        ({"team_id": "team_7"}, "team_id"),
        ({"key_id": "key_7"}, "key_id"),
    ],
)
@pytest.mark.parametrize("by", ["hour", "model"])
async def test_filters_use_an_index(
    engine: AsyncEngine, of: dict[str, str], index: str, by: str
) -> None:
    if by == "model" and index == "key_id":
        return  # a month has few rows of days
    await make_month(engine, USERS, 240)
    with executed(engine) as statements:
        await report_activity(engine, report(by, **of), ManualClock())
    explain = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "
    time = "hour" if by == "hour" else "day"
    async with engine.connect() as connection:
        for sql, parameters in statements:
            if "SELECT" in sql and "usage_" in sql:
                plan = await connection.exec_driver_sql(explain + sql, parameters)
                words = "\n".join(str(row) for row in plan)
                # PostgreSQL prefers the primary key while the tables are small.
                assert "Seq Scan on usage_" not in words, words
                if engine.dialect.name == "sqlite":
                    assert f"ix_usage_{time}s_{index}_{time}" in words, words

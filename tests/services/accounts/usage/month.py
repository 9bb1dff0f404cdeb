"""A month of sums at 100 requests a second, made by SQL, for tests and measurements of reports.

`python -m tests.services.accounts.usage.month [USERS]` prints the times of reports on SQLite and
PostgreSQL.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Table, text
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import (
    ReportActivityRequest,
    ReportUsageRequest,
    UsageFilter,
    UsageGrouping,
)
from services.accounts.usage.activity import report_activity
from services.accounts.usage.latency import BUCKETS, DURATION, FIRST_CONTENT
from services.accounts.usage.reporting import report as report_usage
from services.accounts.usage.sums import KEYS, SUMS
from services.accounts.usage.tables import USAGE_SUMS, days, model_hours
from services.common.settings import Storage
from services.common.storage.database import open_engine, writing
from services.common.storage.migrations.runner import migrate
from tests.databases import postgresql_server
from tests.manual_clock import ManualClock
from tests.services.accounts.usage.usage_records import DAY_MS, MIDNIGHT_MS

DAYS = 30
HOURS = 24 * DAYS
MODELS = 5
TEAMS = 20
REQUESTS_PER_HOUR = 100 * 3_600
FIRST_HOUR = MIDNIGHT_MS // 3_600_000
# Values of a tag, of each key, and end users of one user.
TAG_VALUES = 3
END_USERS = 1_000
# Every user calls two models each hour. A row has requests in 16 buckets of each measure.
MODELS_OF_USER = 2
_FILLED = {name for measure in (FIRST_CONTENT, DURATION) for name in BUCKETS[measure][12:28]}


async def make_month(engine: AsyncEngine, users: int, hour_count: int = HOURS) -> None:
    """Make the sums of a month, or of its first hours."""
    each = REQUESTS_PER_HOUR // (users * MODELS_OF_USER)
    values = {
        "hour": f"{FIRST_HOUR} + h.n",
        "user_id": "'user_' || (c.n / 2)",
        "team_id": f"'team_' || (c.n / 2 % {TEAMS})",
        "key_id": "'key_' || (c.n / 2)",
        "model": f"'model_' || ((c.n / 2 + c.n % 2) % {MODELS})",
        "provider": "'openai'",
        **{name: str(each) if name == "requests" else "1" for name in SUMS},
        **{
            name: str(each // 16) if name in _FILLED else "NULL"
            for measure in (FIRST_CONTENT, DURATION)
            for name in BUCKETS[measure]
        },
        f"{DURATION}_max": "60000",
        f"{FIRST_CONTENT}_max": "60000",
    }
    statement = (
        "WITH RECURSIVE h (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM h WHERE n < :hours - 1), "
        "c (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < :callers - 1) "
        f"INSERT INTO usage_hours ({', '.join(values)}) "
        f"SELECT {', '.join(values.values())} FROM h, c ORDER BY h.n"
    )
    if engine.dialect.name == "sqlite":
        head, tail = statement.split("INSERT INTO", 1)
        target, query = tail.split("SELECT", 1)
        statement = f"INSERT INTO{target} {head} SELECT{query}"
    async with writing(engine) as connection:
        numbers = {"hours": hour_count, "callers": users * MODELS_OF_USER}
        for name, number in numbers.items():
            statement = statement.replace(f":{name}", str(number))
        await connection.execute(text(statement))
        await connection.execute(text(_from_hours(days, "hour / 24")))
        await connection.execute(text(_from_hours(model_hours, "hour")))
        await connection.execute(text(_labels("project", f"key_id || '_' || (day % {TAG_VALUES})")))
    async with writing(engine) as connection:
        await connection.execute(text("ANALYZE"))


async def make_end_users(engine: AsyncEngine) -> None:
    """Make the sums of a user with a thousand end users, who send requests each day."""
    numbers = (
        "WITH RECURSIVE e (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM e "
        f"WHERE n < {END_USERS - 1}) "
    )
    query = _labels("end_user", "'end user ' || e.n").replace(
        " FROM usage_days", " FROM usage_days, e WHERE user_id = 'user_7'"
    )
    head, tail = query.split(" SELECT ", 1)
    async with writing(engine) as connection:
        await connection.execute(text(f"{head} {numbers} SELECT {tail}"))
    async with writing(engine) as connection:
        await connection.execute(text("ANALYZE"))


def _labels(label: str, value_sql: str) -> str:
    """Return the statement that makes sums of a label of those of days."""
    columns = ("user_id", "team_id", "key_id", "model", "provider", *USAGE_SUMS)
    return (
        f"INSERT INTO usage_label_days (day, label, value, {', '.join(columns)}) "
        f"SELECT day, '{label}', {value_sql}, {', '.join(columns)} FROM usage_days"
    )


def label_reports() -> Iterator[tuple[str, ReportUsageRequest]]:
    """Yield reports of tags and end users, with what they are."""
    days = {"from_day": "2026-11-23", "to_day": "2026-12-22", "page_size": 1_000}
    of_user = UsageFilter(user_id="user_7")
    tag = UsageFilter(tag="project=key_7_1")
    groupings = usage_pb2
    yield "by tag", ReportUsageRequest(by=groupings.USAGE_GROUPING_TAG, tag="project", **days)
    yield (
        "by day, of a tag",
        ReportUsageRequest(by=groupings.USAGE_GROUPING_DAY, filter=tag, **days),
    )
    yield (
        "by end user",
        ReportUsageRequest(by=groupings.USAGE_GROUPING_END_USER, filter=of_user, **days),
    )


def _from_hours(table: Table, time_sql: str) -> str:
    key = KEYS[table.name]
    places = ", ".join(str(place) for place in range(1, len(key) + 1))
    sums = [f"{'MAX' if name.endswith('_max') else 'SUM'}({name})" for name in SUMS]
    return (
        f"INSERT INTO {table.name} ({', '.join((*key, *SUMS))}) "
        f"SELECT {', '.join((time_sql, *key[1:], *sums))} FROM usage_hours GROUP BY {places}"
    )


def report(by: str, split_by: str = "", page_size: int = 100, **filters: Any) -> Any:
    """Return the request of a report over the month."""
    return ReportActivityRequest(
        by=UsageGrouping.Value(f"USAGE_GROUPING_{by.upper()}"),
        split_by=UsageGrouping.Value(f"USAGE_GROUPING_{(split_by or 'unspecified').upper()}"),
        since_ms=MIDNIGHT_MS,
        until_ms=MIDNIGHT_MS + DAYS * DAY_MS,
        page_size=page_size,
        filter=UsageFilter(**filters),
    )


def reports() -> Iterator[tuple[str, Any]]:
    """Yield reports, with what they are."""
    yield "by day and model", report("day", "model")
    yield "by hour, all of them", report("hour", page_size=1_000)
    yield "by hour and model, 1,000 rows", report("hour", "model", page_size=1_000)
    yield "by hour and user, 1,000 rows", report("hour", "user", page_size=1_000)
    yield "by day and user, 1,000 rows", report("day", "user", page_size=1_000)
    yield "by model", report("model")
    yield "by user, 100 rows", report("user")
    yield "by user, 1,000 rows", report("user", page_size=1_000)
    yield "by team", report("team")
    yield "by hour, of a user", report("hour", page_size=1_000, user_id="user_7")
    yield "by hour and user, of a team", report("hour", "user", page_size=1_000, team_id="team_7")
    yield "by hour, of a key", report("hour", page_size=1_000, key_id="key_7")


async def measure(engine: AsyncEngine) -> Mapping[str, float]:
    """Return the median seconds of five calls of each report."""
    times: dict[str, float] = {}
    calls = {
        **{name: partial(report_activity, engine, one, ManualClock()) for name, one in reports()},
        **{name: partial(report_usage, engine, one) for name, one in label_reports()},
    }
    for name, call in calls.items():
        taken = []
        for _ in range(5):
            began = time.perf_counter()
            await call()
            taken.append(time.perf_counter() - began)
        times[name] = sorted(taken)[2]
    return times


async def _measure_new(storage: Storage, users: int) -> Mapping[str, float]:
    engine = open_engine(storage)
    await migrate(engine)
    # The sums are made by statements that take longer than a service may wait.
    await make_month(engine, users)
    await make_end_users(engine)
    times = await measure(engine)
    await engine.dispose()
    return times


def _main(users: int) -> None:
    with tempfile.TemporaryDirectory() as folder, postgresql_server() as server:
        of_sqlite = asyncio.run(_measure_new(Storage(data_dir=Path(folder)), users))
        url = Storage(data_dir=Path(folder), database_url=server.url)
        of_postgresql = asyncio.run(_measure_new(url, users))
    print(f"{users} users, ms           SQLite  PostgreSQL")
    for name, seconds in of_sqlite.items():
        print(f"{name:32} {1000 * seconds:6.0f} {1000 * of_postgresql[name]:6.0f}")


if __name__ == "__main__":
    import services.common.storage.database as database

    database._COMMAND_TIMEOUT_S = 3_600.0
    _main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)

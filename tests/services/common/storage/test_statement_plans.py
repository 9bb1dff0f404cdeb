"""The plans of statements: none reads all rows of a table that grows.

A gateway is used in many ways, and all that it executes meanwhile is explained, on filled tables:
statements of requests, of jobs and of sweepers.
"""

import asyncio
import hashlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import asyncpg
from sqlalchemy import BigInteger, Boolean, Column, Engine, Float, Integer, LargeBinary, event

from services.accounts.usage.partitions import create_partitions
from services.articles.tables import PERMISSIONS
from services.common.ids import LOGGED_REQUEST, RECORD, time_prefix
from services.common.settings import Storage
from services.common.storage.database import SQLITE_FILE, metadata, open_engine
from services.common.storage.sweeping import Sweeper
from tests.e2e.users import User
from tests.gateway_in_process import running_gateway
from tests.hosts.cluster import ADMIN_KEY, Administrator
from tests.hosts.database_work import kinds
from tests.waiting import until

ROWS = 4_000
# Hours of the usage records, of several days.
RECORD_HOURS = 48
DAY_MS = 86_400_000
# Tables that statements may read whole.
EXEMPT = {
    # A row for each kind of sweeper, each secret, each admin key, each database.
    *("alembic_version", "leases", "secrets", "admin_keys", "schema_record"),
    # A row for each turn of a memory that runs or waits; sweepers remove those of dead workers.
    "memory_claims",
    # A row for each user with files or documents: sweepers compare them with quotas, and sum them.
    *("file_usage", "article_usage"),
}
GROWING = set(metadata.tables) - EXEMPT
# Indexes of some rows only, which statements read whole.
PARTIAL = {
    index.name
    for table in metadata.sorted_tables
    for index in table.indexes
    if index.dialect_options["sqlite"]["where"] is not None
}
# Values that the checks of tables accept.
_CHECKED = {
    "permission": PERMISSIONS[0],
    "plan": "personal_free",
    "purpose": "user_data",
    "role": "user",
    "subject_kind": "user",
}
QUERIES = (
    *("users", "keys", "teams", "audit", "requests", "requests?text=a", "requests?user_id=a"),
    *("requests?tag=a=b", "requests?end_user=a", "requests?tag=a=b&end_user=a&user_id=a"),
    *("requests?key_id=a&since=1", "requests?request_id=a", "usage?from_day={}"),
    *("usage?from_day={}&by=tag&tag=a", "usage?from_day={}&by=end_user&user_id=a"),
    *("usage?from_day={}&by=model", "activity?by=hour&split_by=model", "activity?by=user"),
    *("activity?by=day&user_id=a", "activity?by=day&team_id=a", "activity?by=day&key_id=a"),
)

Statements = Mapping[str, Sequence[Any]]


@contextmanager
def collected() -> Iterator[Statements]:
    """Collect the statements that engines of this process execute, with parameters."""
    statements: dict[str, Sequence[Any]] = {}

    def executing(_: Any, __: Any, statement: str, parameters: Any, ___: Any, many: bool) -> None:
        if re.match(r"\s*(SELECT|WITH|UPDATE|DELETE)", statement):
            statements.setdefault(statement, parameters[0] if many else parameters)

    event.listen(Engine, "before_cursor_execute", executing)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", executing)


@contextmanager
def sweeping_soon() -> Iterator[Callable[[], bool]]:
    """Start sweepers without a delay; yield a function that returns whether all have swept."""
    started: set[Sweeper] = set()
    swept: set[Sweeper] = set()
    start, sweep = Sweeper.start, Sweeper.sweep

    def starting(sweeper: Sweeper) -> None:
        started.add(sweeper)
        start(sweeper)

    async def sweeping(sweeper: Sweeper) -> bool:
        has_swept = await sweep(sweeper)
        swept.add(sweeper)
        return has_swept

    with (
        patch("services.common.storage.sweeping._AFTER_START_S", 0.05),
        patch.object(Sweeper, "start", starting),
        patch.object(Sweeper, "sweep", sweeping),
    ):
        yield lambda: len(started) > 5 and started == swept


async def use(folder: Path, storage: Storage) -> Statements:
    """Return what a gateway executes that is used in many ways for a while."""
    soon = {"write_every_s": 0.02}
    with collected() as statements, sweeping_soon() as all_have_swept:
        async with running_gateway(
            folder,
            storage={"data_dir": str(folder), "database_url": storage.database_url},
            admin={"key_sha256": hashlib.sha256(ADMIN_KEY.encode()).hexdigest()},
            limits={"sweep_every_s": 0.2, "lease_every_s": 0.1},
            memory={"job_poll_s": 0.1},
            usage=soon,
            request_log={"enabled": True, **soon},
        ) as gateway:
            administrator = Administrator(gateway.http, gateway.url)
            limits = {"requests_per_minute": 1_000, "concurrent_requests": 10}
            limited = await administrator.user("limited", **limits)
            # Limits of several subjects are looked up together.
            [owner] = (await administrator.call("GET", "users?name=limited"))["data"]
            await administrator.call("PUT", f"users/{owner['id']}/limits", limits)
            user = User(gateway.http, gateway.url, gateway.key)
            for ask in (await kinds(user, limited)).values():
                for number in range(2):
                    assert (await ask(number)).status == 200
            await do_what_is_rare(user)
            headers = {"Authorization": f"Bearer {limited.key}"}
            url = f"{gateway.url}/beta/v1/usage/me"
            async with gateway.http.get(url, headers=headers) as usage:
                assert usage.status == 200
            await until(lambda: has_records(administrator))
            await until(all_have_swept)
            yesterday = date.today() - timedelta(days=1)
            for query in QUERIES:
                await administrator.call("GET", query.format(yesterday))
            await administrator.call("POST", f"users/{owner['id']}/erase")

            async def is_erased() -> bool:
                path = f"users/{owner['id']}/erasure"
                return (await administrator.call("GET", path))["state"] == "finished"

            await until(is_erased)
    return statements


async def do_what_is_rare(user: User) -> None:
    await user.files()
    uploaded = await user.upload(b"content")
    await user.delete_file(uploaded.body["id"])
    upload = (await user.begin_upload(4)).body["id"]
    part = await user.add_part(upload, b"part")
    await user.complete_upload(upload, [part.body["id"]])
    await user.cancel_upload((await user.begin_upload(4)).body["id"])
    await user.turns("talk-0")
    await user.delete_memory("talk-0")
    conversation = await user.create_conversation()
    await user.add_item(conversation, "An item")
    await user.response("Hello", conversation=conversation)
    stored = await user.response("Hello", background=True)
    await user.stored_response(stored.body["id"])
    await user.delete_response(stored.body["id"])
    session = await user.open_document(await user.create_document())
    await user.read(session)


async def has_records(administrator: Administrator) -> bool:
    """Return whether usage and requests have been written."""
    reports = [(await administrator.call("GET", path))["data"] for path in ("usage", "requests")]
    return all(reports)


def fakes(column: Column[Any]) -> Sequence[Any]:
    """Return the values of a column, in the order of the rows.

    Times are now, except for those of usage: the rows are what a gateway stores that removes the
    old ones. All other values differ between rows.
    """
    numbers = range(ROWS)
    now_ms = int(time.time() * 1000)
    match column.table.name, column.name:
        case "uploads", "status":
            return ["pending"] * ROWS
        case _, name if name in _CHECKED:
            return [_CHECKED[name]] * ROWS
        case _, name if name.endswith("_ms"):
            return range(now_ms, now_ms + ROWS)
        case _, name if name.endswith("_at_s"):
            return [now_ms // 1000 + 60] * ROWS
        case _, "hour":
            return [now_ms // 3_600_000 - number % 700 for number in numbers]
        case _, "day":
            return [now_ms // DAY_MS - number % 700 for number in numbers]
        case "usage_records", "id":
            # Those of today are of all its hours: shortly after midnight all are in one otherwise.
            start_ms = now_ms // DAY_MS * DAY_MS - DAY_MS
            hours_ms = (number % RECORD_HOURS * 3_600_000 + number for number in numbers)
            return [time_prefix(RECORD, start_ms + ms) for ms in hours_ms]
        case "request_log", "id":
            return [time_prefix(LOGGED_REQUEST, now_ms + number) for number in numbers]
    match column.type:
        case Boolean():
            return [False] * ROWS
        case LargeBinary():
            return [number.to_bytes(100) for number in numbers]
        case BigInteger() | Integer() | Float():
            return range(1, ROWS + 1)
        case _:
            length = getattr(column.type, "length", None)
            return [f"{number:08}"[:length] for number in numbers]


async def make_partitions(storage: Storage) -> None:
    """Make the partitions of the days of usage records."""
    engine = open_engine(storage)
    today = int(time.time() * 1000) // DAY_MS
    await create_partitions(engine, range(today - RECORD_HOURS // 24, today + 1))
    await engine.dispose()


async def postgresql_scans(url: str, statements: Statements) -> Sequence[str]:
    """Fill all tables, and return the statements that read whole tables, with their plans."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET session_replication_role = replica")
        is_part = "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'"
        parts = {row[0] for row in await connection.fetch(is_part)}
        assert len(parts) > RECORD_HOURS // 24
        for table in metadata.sorted_tables:
            rows = zip(*map(fakes, table.columns), strict=True)
            names = [column.name for column in table.columns]
            await connection.execute(f"DELETE FROM {table.name}")
            await connection.copy_records_to_table(table.name, records=rows, columns=names)
        await connection.execute("ANALYZE")
        scans = []
        for statement, parameters in statements.items():
            plan = [row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *parameters)]
            # An index without a condition is read whole if few rows pass the filter.
            text = "\n".join(plan)
            scanned = re.findall(r"Seq Scan on (\w+)", text)
            filtered = re.findall(r"Index .*Scan .*on (\w+) .*\n +Filter", text)
            # What reads usage records names a time, and reads the partition of one day.
            days = parts & {*re.findall(r"Scan .*on (\w+)", text)}
            if (GROWING | parts) & {*scanned, *filtered} or len(days) > 1:
                scans.append("\n".join([statement, *plan]))
        return scans
    finally:
        await connection.close()


def sqlite_scans(file: Path, statements: Statements) -> Sequence[str]:
    """Return the statements that read whole tables, with their plans.

    SQLite makes plans without looking at rows, as long as nothing has analysed them.
    """
    scans = []
    with closing(sqlite3.connect(file)) as connection:
        for statement, parameters in statements.items():
            explained = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plan = [row[3] for row in explained]
            # A page of all rows is read in the order of an index, which ends at the limit.
            until_limit, _, after_limit = statement.partition(" LIMIT ")
            is_page = bool(after_limit) and "WHERE" not in until_limit
            for line in plan:
                scan = re.match(r"SCAN (\w+)(?: USING .*INDEX (\w+))?", line)
                if scan and scan[1] in GROWING and scan[2] not in PARTIAL:
                    if not (is_page and scan[2]):
                        scans.append("\n".join([statement, *plan]))
    return scans


async def test_no_statement_reads_a_whole_table_that_grows(
    storage: Storage, tmp_path: Path
) -> None:
    statements = await use(tmp_path, storage)
    assert len(statements) > 100
    if storage.database_url:
        await make_partitions(storage)
        scans = await postgresql_scans(storage.database_url, statements)
    else:
        scans = await asyncio.to_thread(sqlite_scans, tmp_path / SQLITE_FILE, statements)
    assert scans == [], "\n\n".join(scans)

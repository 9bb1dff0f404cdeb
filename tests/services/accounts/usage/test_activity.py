"""Sums of usage records with latencies, a page at a time."""

from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1 import usage_pb2
from gateway.accounts.v1.usage_pb2 import (
    ActivitySum,
    Latencies,
    ReportActivityRequest,
    UsageFilter,
    UsageGrouping,
    UsageRecord,
)
from services.accounts.repository import AccountRepository
from services.accounts.usage import activity
from services.accounts.usage.activity import report_activity
from services.accounts.usage.grouping import token_of
from services.common.errors import GatewayError
from services.common.ids import time_prefix
from tests.manual_clock import ManualClock
from tests.services.accounts.usage.usage_records import DAY_MS, MIDNIGHT_MS, add, record, unpriced

HOUR_MS = 3_600_000
END_MS = MIDNIGHT_MS + DAY_MS
# After all of the records.
LATER_S = (MIDNIGHT_MS + 9 * DAY_MS) / 1000


def at(number: int, time_ms: int, **fields: Any) -> UsageRecord:
    """Return a record of a time, by which its id sorts."""
    return record(
        number, id=f"{time_prefix('use_', time_ms)}{number:05}", time_ms=time_ms, **fields
    )


async def sums(
    engine: AsyncEngine, by: str, split_by: str = "", **fields: Any
) -> list[ActivitySum]:
    request_fields = {"page_size": 100, "since_ms": MIDNIGHT_MS, "until_ms": END_MS} | fields
    request = ReportActivityRequest(
        by=UsageGrouping.Value(f"USAGE_GROUPING_{by.upper()}"),
        split_by=UsageGrouping.Value(f"USAGE_GROUPING_{(split_by or 'unspecified').upper()}"),
        **request_fields,
    )
    all_sums: list[ActivitySum] = []
    while True:
        page = await report_activity(engine, request, ManualClock(LATER_S))
        assert len(page.sums) <= request.page_size
        all_sums += page.sums
        if not page.next_page_token:
            return all_sums
        request.page_token = page.next_page_token


async def test_hours_have_usage_and_latencies(engine: AsyncEngine) -> None:
    slow = [at(n, MIDNIGHT_MS + 5 * HOUR_MS, duration_ms=n, first_content_ms=n) for n in range(100)]
    late = at(100, MIDNIGHT_MS + 6 * HOUR_MS - 1, duration_ms=1000, cost_pusd=1)
    next_hour = unpriced(101, id=time_prefix("use_", late.time_ms + 1), time_ms=late.time_ms + 1)
    next_hour.ClearField("first_content_ms")
    await add(engine, [*slow, late, next_hour])
    earlier, later = await sums(engine, "hour")
    assert [earlier.usage.group, later.usage.group] == [
        "2026-11-23T05:00:00Z",
        "2026-11-23T06:00:00Z",
    ]
    assert (earlier.usage.requests, earlier.usage.input_tokens) == (101, 10_100)
    assert earlier.usage.cost_dollars == "0.035000000001"
    assert earlier.duration == Latencies(
        count=101, mean_ms=5950 / 101, p50_ms=50, p95_ms=96, p99_ms=100, max_ms=1000
    )
    assert (earlier.first_content.count, earlier.first_content.max_ms) == (101, 99)
    assert (later.usage.unpriced, later.duration.p50_ms, later.duration.p99_ms) == (1, 9, 9)
    assert not later.HasField("first_content")
    assert not later.HasField("split")


async def test_only_served_requests_have_latencies(engine: AsyncEngine) -> None:
    outcomes = (
        usage_pb2.USAGE_OUTCOME_SERVED,
        usage_pb2.USAGE_OUTCOME_FAILED,
        usage_pb2.USAGE_OUTCOME_FAILED,
        usage_pb2.USAGE_OUTCOME_CANCELLED,
    )
    ended = [at(n, MIDNIGHT_MS, outcome=outcome) for n, outcome in enumerate(outcomes)]
    helper = at(9, MIDNIGHT_MS, is_part=True, duration_ms=70)
    await add(engine, [*ended, helper])
    [day_sum] = await sums(engine, "day")
    assert day_sum.usage.group == "2026-11-23"
    assert (day_sum.usage.requests, day_sum.usage.failed_requests, day_sum.cancelled_requests) == (
        4,
        2,
        1,
    )
    assert day_sum.usage.input_tokens == 500
    assert (day_sum.duration.count, day_sum.duration.max_ms) == (1, 9)


@pytest.mark.parametrize("page_size", [1, 2, 100])
async def test_rows_are_split_further(engine: AsyncEngine, page_size: int) -> None:
    requests = [(hour, model) for hour in (1, 2, 3) for model in ("fast", "slow")][1:]
    await add(
        engine,
        [at(n, MIDNIGHT_MS + h * HOUR_MS, model=model) for n, (h, model) in enumerate(requests)],
    )
    hourly_sums = await sums(engine, "hour", "model", page_size=page_size)
    assert [(int(row.usage.group[11:13]), row.split) for row in hourly_sums] == requests
    assert all(row.duration.count == 1 for row in hourly_sums)
    by_model = await sums(engine, "model", page_size=page_size)
    assert [(row.usage.group, row.usage.requests) for row in by_model] == [("fast", 2), ("slow", 3)]


async def test_names_are_told_of_both(engine: AsyncEngine, repository: AccountRepository) -> None:
    key = await repository.create_key("ada", team="lab")
    caller = await repository.identify(key)
    ids = {"user_id": caller.user_id, "team_id": caller.team_id, "key_id": caller.key_id}
    await add(engine, [at(1, MIDNIGHT_MS, **ids)])
    [team_sum] = await sums(engine, "team", "user")
    assert (team_sum.usage.name, team_sum.split_name, team_sum.split) == (
        "lab",
        "ada",
        caller.user_id,
    )


@pytest.mark.parametrize("field", ["user_id", "team_id", "key_id", "model", "provider"])
async def test_filters_leave_others_out(engine: AsyncEngine, field: str) -> None:
    await add(
        engine, [at(1, MIDNIGHT_MS, **{field: "mine"}), at(2, MIDNIGHT_MS, **{field: "yours"})]
    )
    [hour_sum] = await sums(engine, "hour", filter=UsageFilter(**{field: "mine"}))
    assert (hour_sum.usage.requests, hour_sum.duration.count) == (1, 1)
    assert await sums(engine, "hour", filter=UsageFilter(**{field: "theirs"})) == []


async def test_a_time_has_its_beginning_and_not_its_end(engine: AsyncEngine) -> None:
    times = [MIDNIGHT_MS - 1, MIDNIGHT_MS, END_MS - 1, END_MS]
    await add(engine, [at(n, time_ms) for n, time_ms in enumerate(times)])
    assert sum(row.usage.requests for row in await sums(engine, "model")) == 2


async def test_without_a_time_it_is_the_last_day(engine: AsyncEngine) -> None:
    now_ms = ManualClock().now_ms()
    first_ms = (now_ms - DAY_MS) // HOUR_MS * HOUR_MS
    times = [first_ms - 1, first_ms, now_ms - 1]
    await add(engine, [at(n, time_ms) for n, time_ms in enumerate(times)])
    request = ReportActivityRequest(by=usage_pb2.USAGE_GROUPING_USER, page_size=9)
    [day_sum] = (await report_activity(engine, request, ManualClock())).sums
    assert day_sum.usage.requests == 2


GROUPINGS = ("hour", "day", "user", "team", "key", "model", "provider")


@pytest.mark.parametrize(
    ("since_h", "until_h"), [(0, 72), (3, 70), (26, 46), (3, 24), (-30, 80), (24, 48)]
)
async def test_reports_have_the_hours_they_touch(
    engine: AsyncEngine, since_h: int, until_h: int
) -> None:
    """Sums of days and of hours are combined, and each record is in one of them."""
    hours = range(72)
    batch = [
        at(n, MIDNIGHT_MS + n * HOUR_MS, user_id=f"u{n % 5}", team_id="t", duration_ms=1 + n % 7)
        for n in hours
    ]
    await add(engine, batch)
    interval = {
        "since_ms": MIDNIGHT_MS + since_h * HOUR_MS + (1 if since_h else 0),
        "until_ms": MIDNIGHT_MS + until_h * HOUR_MS - 1,
    }
    expected = sum(since_h <= hour < until_h for hour in hours)
    for by in GROUPINGS:
        for split_by in ("", "user", "model"):
            if by == split_by:
                continue
            rows = await sums(engine, by, split_by, **interval)
            requests = sum(row.usage.requests for row in rows)
            measured = sum(row.duration.count for row in rows)
            assert (by, split_by, requests, measured) == (by, split_by, expected, expected)


async def test_a_page_reads_a_bounded_number_of_hours(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "_MAX_HOUR_ROWS", 6)
    batch = [
        at(4 * hour + n, MIDNIGHT_MS + hour * HOUR_MS, user_id=f"u{n}", team_id=f"t{n % 2}")
        for hour in range(10)
        for n in range(4)
    ]
    await add(engine, batch)
    request = ReportActivityRequest(
        by=usage_pb2.USAGE_GROUPING_HOUR,
        split_by=usage_pb2.USAGE_GROUPING_TEAM,
        page_size=100,
        since_ms=MIDNIGHT_MS,
        until_ms=END_MS,
    )
    page = await report_activity(engine, request, ManualClock())
    assert [row.usage.group[11:13] for row in page.sums] == ["00", "00", "01", "01"]
    assert page.next_page_token
    all_rows = await sums(engine, "hour", "team")
    assert [(row.usage.group[11:13], row.split, row.usage.requests) for row in all_rows] == [
        (f"{hour:02}", f"t{team}", 2) for hour in range(10) for team in range(2)
    ]


async def test_an_interval_may_be_in_any_time(engine: AsyncEngine) -> None:
    latest = 2**63 - 1
    assert await sums(engine, "hour", "user", since_ms=latest - 5, until_ms=latest) == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"by": usage_pb2.USAGE_GROUPING_UNSPECIFIED}, "by"),
        ({"split_by": usage_pb2.USAGE_GROUPING_HOUR}, "split_by"),
        (
            {"by": usage_pb2.USAGE_GROUPING_USER, "split_by": usage_pb2.USAGE_GROUPING_USER},
            "split_by",
        ),
        ({"page_size": 0}, "page_size"),
        ({"page_size": 1001}, "page_size"),
        ({"since_ms": 5, "until_ms": 4}, "since_ms"),
        ({"since_ms": 0, "until_ms": 31 * DAY_MS + 1}, "since_ms"),
        ({"page_token": "x"}, "page_token"),
        ({"page_token": "YWZ0ZXI6MQ=="}, "page_token"),
        ({"page_token": "YWZ0ZXI6WyJhIiwgImIiXQ=="}, "page_token"),  # of another grouping
        ({"page_token": token_of('[2147483648,""]')}, "page_token"),
    ],
)
async def test_wrong_requests_name_the_field(
    engine: AsyncEngine, fields: dict[str, Any], param: str
) -> None:
    request_fields = {"by": usage_pb2.USAGE_GROUPING_HOUR, "page_size": 10} | fields
    with pytest.raises(GatewayError) as caught:
        await report_activity(engine, ReportActivityRequest(**request_fields), ManualClock())
    assert caught.value.param == param

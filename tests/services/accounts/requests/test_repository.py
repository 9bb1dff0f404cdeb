"""Entries of the request log: what filters select, pages, and retention."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.usage_pb2 import UsageLabel
from gateway.requests.v1.requests_pb2 import LoggedRequest, RequestBodies, RequestFilter
from services.accounts.requests.bodies import BodyStore
from services.accounts.requests.repository import RequestRepository
from services.accounts.requests.sweeper import request_sweeper
from services.accounts.requests.tables import request_log_labels
from services.common.clock import Clock
from services.common.settings import RequestLog
from services.common.storage.byte_store import Folder
from services.common.storage.database import reading
from services.common.storage.disk import DiskReserve
from services.common.storage.sweeping import sweeper_lease
from tests.manual_clock import ManualClock
from tests.services.accounts.requests.logged_requests import START_MS, entry


def labels(**values: str) -> list[UsageLabel]:
    return [UsageLabel(name=name, value=value) for name, value in values.items()]


async def labelled(engine: AsyncEngine) -> list[int]:
    """Return the numbers of the entries with labels."""
    async with reading(engine) as connection:
        ids = await connection.scalars(select(request_log_labels.c.entry_id))
    return sorted((int(one.rpartition("_")[2]) for one in ids), reverse=True)


async def listed(repository: RequestRepository, size: int = 100, **fields: Any) -> list[int]:
    """Return the numbers of the entries that a filter selects, over all pages."""
    numbers: list[int] = []
    token = ""
    while True:
        page = await repository.page(RequestFilter(**fields), size, token)
        assert len(page.requests) <= size
        numbers += numbers_of(page.requests)
        token = page.next_token
        if not token:
            return numbers


def numbers_of(requests: Sequence[LoggedRequest]) -> list[int]:
    return [int(request.id.rpartition("_")[2]) for request in requests]


@pytest.mark.parametrize(
    ("fields", "selected"),
    [
        ({}, [3, 2, 1, 0]),
        ({"user_id": "user_b"}, [1]),
        ({"key_id": "key_b"}, [2]),
        ({"team_id": "team_b"}, [2]),
        ({"provider": "other"}, [3]),
        ({"request_id": "req_2"}, [2]),
        ({"model": "slow"}, [3, 1]),
        ({"min_status": 400, "max_status": 499}, [1]),
        ({"min_cost_pusd": 10, "max_cost_pusd": 20}, [2, 1]),
        ({"max_cost_pusd": 0}, [0]),
        ({"since_ms": START_MS + 1000, "until_ms": START_MS + 3000}, [2, 1]),
        ({"text": "RATE_LIM"}, [1]),
        ({"text": "straße"}, [3]),
        ({"text": "a_b"}, []),
        ({"user_id": "user_a", "text": "messages"}, [2]),
        ({"tag": "project=a"}, [2, 1]),
        ({"tag": "project=a", "end_user": "ada"}, [2]),
        ({"end_user": "ada", "user_id": "user_b"}, []),
    ],
)
async def test_filters_select_entries(
    engine: AsyncEngine, fields: dict[str, Any], selected: list[int]
) -> None:
    repository = RequestRepository(engine)
    unpriced = entry(3, model="slow", provider="other", requested_model="STRASSE axb")
    unpriced.ClearField("cost_pusd")
    await repository.add(
        [
            entry(0),
            entry(
                1,
                user_id="user_b",
                status=429,
                error_code="rate_limited",
                model="",
                requested_model="slow",
                labels=labels(project="a"),
            ),
            entry(
                2,
                labels=labels(end_user="ada", project="a"),
                key_id="key_b",
                team_id="team_b",
                endpoint="POST /beta/v1/messages",
            ),
            unpriced,
        ]
    )
    assert await listed(repository, **fields) == selected


async def test_an_entry_is_returned_as_it_was_added(engine: AsyncEngine) -> None:
    repository = RequestRepository(engine)
    first = entry(0, first_content_ms=2, attempts=3, error_code="x", labels=labels(a="b", c="d"))
    second = entry(1)
    second.ClearField("cost_pusd")
    await repository.add([first, second])
    await repository.add([entry(0, status=500), second])
    assert [await repository.get(one.id) for one in (first, second)] == [first, second]
    assert await repository.get("log_none") is None


async def test_names_with_nul_are_stored(engine: AsyncEngine) -> None:
    repository = RequestRepository(engine)
    await repository.add([entry(0, requested_model="a\0b")])
    assert await listed(repository, text="a\0B") == [0]


async def test_pages_continue_where_the_last_one_ended(engine: AsyncEngine) -> None:
    repository = RequestRepository(engine)
    await repository.add([entry(number) for number in range(7)])
    for size in (1, 3, 7):
        assert await listed(repository, size) == [6, 5, 4, 3, 2, 1, 0]


async def test_a_page_looks_at_a_bounded_number_of_entries(engine: AsyncEngine) -> None:
    repository = RequestRepository(engine, max_scanned=3)
    await repository.add([entry(number, status=500 if number == 1 else 200) for number in range(7)])
    page = await repository.page(RequestFilter(min_status=500), 5)
    assert (list(page.requests), page.next_token) == ([], entry(4).id)
    assert await listed(repository, min_status=500) == [1]


async def test_old_entries_and_those_beyond_the_maximum_go(
    engine: AsyncEngine, tmp_path: Path
) -> None:
    repository = RequestRepository(engine)
    bodies = BodyStore(Folder(tmp_path / "bodies", DiskReserve(tmp_path, 0)))
    await repository.add([entry(number, labels=labels(a="b")) for number in range(100)])
    await bodies.put([RequestBodies(id=entry(number).id, request="r") for number in range(100)])
    clock = ManualClock(START_MS / 1000 + 100)
    timed = Clock(now=clock.now)
    for settings, left in (
        (RequestLog(keep_s=61), range(99, 38, -1)),
        (RequestLog(keep_s=1000, max_entries=3), range(99, 96, -1)),
    ):
        lease = sweeper_lease(engine, "requests", 60, timed)
        await request_sweeper(repository, bodies, lease, 60, settings, timed).sweep()
        await lease.release()
        assert await listed(repository) == await labelled(engine) == list(left)
        stored = [await bodies.get(entry(number).id) for number in range(100)]
        assert [number for number in reversed(range(100)) if stored[number]] == list(left)

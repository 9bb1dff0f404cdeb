"""Listing, held against a plain model: a sorted list in memory."""

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.files.v1 import files_pb2
from gateway.files.v1.files_pb2 import File, ListFilesRequest
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.settings import Storage
from services.common.storage.database import reading
from services.files.repository import FileRepository
from tests.engine_events import EXECUTES, listening
from tests.services.files.running_file_store import reason_of

NOW_S = 1_700_000_000
_OWNERS = count()
# A database is opened for a test, and every example in it is an owner of its own.
_SHARED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=25,
)

# A file: how old it is in seconds, what its id ends in, what it is for.
Kept = tuple[int, int, int]
KEPT = st.tuples(st.integers(0, 2), st.integers(0, 10**6), st.sampled_from([1, 2, 3]))


class Change(NamedTuple):
    """Something that happens between two pages: a file comes, or the n-th goes."""

    comes: Kept | None
    goes: int


CHANGE = st.builds(Change, st.none() | KEPT, st.integers(0, 100))


class Listed:
    """The files of one owner, in the repository and in the model."""

    def __init__(self, repository: FileRepository) -> None:
        self.repository = repository
        self.owner = f"user_{next(_OWNERS)}"
        self.model: list[tuple[int, str, int]] = []

    async def add(self, kept: Kept) -> None:
        age, number, purpose = kept
        owner = int(self.owner.removeprefix("user_"))
        file_id = f"file-{owner:012}{number:014}"
        if any(file_id == listed_id for _, listed_id, _ in self.model):
            return
        file = File(
            id=file_id,
            filename="a",
            purpose=purpose,  # type: ignore[arg-type]  # a purpose is a number
            mime_type="text/plain",
            created_at=NOW_S - age,
            expires_at=NOW_S + 1,
            sha256="",
        )
        await self.repository.add(self.owner, file, 0, lambda: True)
        self.model = sorted([*self.model, (NOW_S - age, file_id, purpose)])

    async def remove(self, file_id: str) -> None:
        await self.repository.remove(self.owner, file_id)
        self.model = [entry for entry in self.model if entry[1] != file_id]

    async def page(self, **fields: Any) -> tuple[list[str], bool]:
        files, more = await self.repository.page(self.owner, ListFilesRequest(**fields))
        return [file.id for file in files], more

    def expected(self, *, ascending: bool, purpose: int) -> list[str]:
        ids = [file_id for _, file_id, meant in self.model if purpose in (0, meant)]
        return ids if ascending else ids[::-1]


@pytest.fixture
def repository(engine: AsyncEngine) -> FileRepository:
    return FileRepository(engine, Clock(now=lambda: NOW_S))


@_SHARED
@given(
    kept=st.lists(KEPT, max_size=12),
    limit=st.integers(1, 14),
    ascending=st.booleans(),
    purpose=st.integers(0, 3),
    cursor=st.integers(0, 20),
    before=st.booleans(),
)
async def test_a_page_is_what_a_sorted_list_says(
    repository: FileRepository,
    kept: list[Kept],
    limit: int,
    ascending: bool,
    purpose: int,
    cursor: int,
    before: bool,
) -> None:
    listed = Listed(repository)
    for one in kept:
        await listed.add(one)
    whole = listed.expected(ascending=ascending, purpose=0)
    matching = listed.expected(ascending=ascending, purpose=purpose)
    fields: dict[str, Any] = {"limit": limit, "ascending": ascending, "purpose": purpose}
    if cursor >= len(whole):
        expected, more = matching[:limit], len(matching) > limit
    elif before:
        fields["before_id"] = whole[cursor]
        remaining = [file_id for file_id in matching if file_id in whole[:cursor]]
        expected, more = remaining[-limit:], len(remaining) > limit
    else:
        fields["after_id"] = whole[cursor]
        remaining = [file_id for file_id in matching if file_id in whole[cursor + 1 :]]
        expected, more = remaining[:limit], len(remaining) > limit
    assert await listed.page(**fields) == (expected, more)


@_SHARED
@given(
    kept=st.lists(KEPT, min_size=1, max_size=12),
    changes=st.lists(st.lists(CHANGE, max_size=3), max_size=12),
    limit=st.integers(1, 4),
    ascending=st.booleans(),
    backwards=st.booleans(),
)
async def test_paging_sees_each_file_that_stays_once_and_in_order(
    repository: FileRepository,
    kept: list[Kept],
    changes: list[list[Change]],
    limit: int,
    ascending: bool,
    backwards: bool,
) -> None:
    listed = Listed(repository)
    for one in kept:
        await listed.add(one)
    stay = set(listed.expected(ascending=True, purpose=0))
    seen: list[str] = []
    cursor, more = "", True
    if backwards:
        # From the last file on towards the first, page before page.
        cursor = listed.expected(ascending=ascending, purpose=0)[-1]
        seen = [cursor]
    to_come = iter(changes)
    while more:
        field = "before_id" if backwards else "after_id"
        page, more = await listed.page(limit=limit, ascending=ascending, **{field: cursor})
        assert page or not more
        seen = page + seen if backwards else seen + page
        cursor = (page[0] if backwards else page[-1]) if page else cursor
        for change in next(to_come, []):
            if change.comes is not None:
                await listed.add(change.comes)
                continue
            others = [file_id for _, file_id, _ in listed.model if file_id != cursor]
            if others:
                gone = others[change.goes % len(others)]
                await listed.remove(gone)
                stay.discard(gone)
    assert len(set(seen)) == len(seen)
    assert stay <= set(seen)
    order = {file_id: at for at, file_id, _ in listed.model}
    still = [(order[file_id], file_id) for file_id in seen if file_id in order]
    assert still == sorted(still, reverse=not ascending)


async def test_without_a_limit_a_page_has_ten_thousand_files(
    repository: FileRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.files.repository.MAX_PAGE", 2)
    listed = Listed(repository)
    for number in range(3):
        await listed.add((0, number, 1))
    ids = listed.expected(ascending=False, purpose=0)
    assert await listed.page() == (ids[:2], True)


async def test_a_cursor_that_is_none_of_the_owners_files_is_refused(
    repository: FileRepository,
) -> None:
    adas, bobs = Listed(repository), Listed(repository)
    await adas.add((0, 1, 1))
    await bobs.add((0, 1, 1))
    [(_, of_ada, _)] = adas.model
    for cursor in (of_ada, "file-" + "9" * 26, "nonsense", of_ada + "\0"):
        for field in ("after_id", "before_id"):
            with pytest.raises(GatewayError) as raised:
                await bobs.page(**{field: cursor})
            assert (reason_of(raised), raised.value.param) == ("invalid_request", field)
            assert field in raised.value.message


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 10_001}, "limit"),
        ({"after_id": "a", "before_id": "b"}, "before_id"),
        ({"purpose": 9}, "purpose"),
    ],
)
async def test_a_list_request_that_breaks_a_rule_is_refused(
    file_store: Any, place: Storage, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(GatewayError) as raised:
        await file_store.client().page(**fields)
    assert (reason_of(raised), raised.value.param) == ("invalid_request", named)


async def _statements(engine: AsyncEngine, work: Callable[[], Any]) -> list[tuple[str, Any]]:
    ran: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        ran.append((statement, parameters))

    with listening(engine, EXECUTES, note):
        await work()
    return [one for one in ran if one[0].startswith("SELECT")]


@pytest.mark.parametrize("purpose", [0, files_pb2.PURPOSE_BATCH])
@pytest.mark.parametrize("field", ["after_id", "before_id"])
# PostgreSQL plans by how many rows there are.
@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
async def test_a_page_is_read_off_an_index_without_sorting(
    engine: AsyncEngine, repository: FileRepository, field: str, purpose: int
) -> None:
    listed = Listed(repository)
    await listed.add((0, 1, 1))
    [(_, cursor, _)] = listed.model
    statements = await _statements(
        engine, lambda: listed.page(limit=20, purpose=purpose, **{field: cursor})
    )
    statement, parameters = statements[-1]
    async with reading(engine) as connection:
        plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        steps = [row[-1] for row in plan]
    index = "ix_files_owner_id_purpose" if purpose else "ix_files_owner_id"
    # Only for expired files: whether documents show them.
    step, *shown = steps
    assert all("SUBQUERY" in each or "_files USING" in each for each in shown), shown
    assert f"USING INDEX {index} " in step
    assert "(created_at_s,id)" in step

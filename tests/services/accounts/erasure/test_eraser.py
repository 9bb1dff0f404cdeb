"""Passes of erasures: failures, interruptions, later passes, and the end of reports."""

from collections.abc import Sequence
from functools import partial

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.accounts.admin.users import UserAdministration
from services.accounts.erasure.eraser import Eraser
from services.accounts.erasure.repository import ErasureRepository
from services.common.errors import GatewayError
from services.common.storage.database import write
from services.common.storage.erasing import CountErased
from tests.manual_clock import ManualClock

DAY_S = 86_400


class Store:
    """A store that has a number of things of each user.

    Attributes:
        things: their numbers, by user.
        broken: users whose things it cannot remove now.
    """

    def __init__(self, engine: AsyncEngine, user_ids: Sequence[str], number: int) -> None:
        self._engine = engine
        self.things = dict.fromkeys(user_ids, number)
        self.broken: set[str] = set()

    async def erase(self, user_id: str, count: CountErased) -> int:
        if user_id in self.broken:
            raise GatewayError(errors_pb2.REASON_STORAGE_UNAVAILABLE, "out of order")
        removed = min(2, self.things[user_id])
        self.things[user_id] -= removed
        await write(self._engine, partial(count, kind="things", items=removed, size_bytes=removed))
        return removed


@pytest.fixture
def erasures(engine: AsyncEngine, clock: ManualClock) -> ErasureRepository:
    return ErasureRepository(engine, clock)


async def erased_users(people: UserAdministration, *names: str) -> Sequence[str]:
    """Create users and begin to erase them; return their ids."""
    return [(await people.erase((await people.create(name)).id)).user_id for name in names]


async def go_on() -> bool:
    return True


async def test_a_failing_store_delays_only_what_it_has(
    engine: AsyncEngine, people: UserAdministration, erasures: ErasureRepository
) -> None:
    ada, bob = await erased_users(people, "ada", "bob")
    store = Store(engine, [ada, bob], 3)
    store.broken.add(ada)
    eraser = Eraser(erasures, [store.erase])
    await eraser.run_due(go_on)
    assert not (await erasures.get(ada)).HasField("finished_at_ms")
    assert (await erasures.get(bob)).HasField("finished_at_ms")
    assert await erasures.unfinished() == 1
    store.broken.clear()
    await eraser.run_due(go_on)
    assert await erasures.unfinished() == 0
    for user_id in (ada, bob):
        [things] = (await erasures.get(user_id)).erased
        assert (things.kind, things.items, things.size_bytes) == ("things", 3, 3)


async def test_a_lost_lease_ends_a_pass_without_finishing(
    engine: AsyncEngine, people: UserAdministration, erasures: ErasureRepository
) -> None:
    [ada] = await erased_users(people, "ada")
    store = Store(engine, [ada], 3)

    async def is_lost() -> bool:
        return False

    await Eraser(erasures, [store.erase]).run_due(is_lost)
    assert store.things[ada] == 1
    assert not (await erasures.get(ada)).HasField("finished_at_ms")


async def test_later_passes_remove_what_came_late(
    engine: AsyncEngine,
    people: UserAdministration,
    erasures: ErasureRepository,
    clock: ManualClock,
) -> None:
    [ada] = await erased_users(people, "ada")
    store = Store(engine, [ada], 1)
    eraser = Eraser(erasures, [store.erase])
    await eraser.run_due(go_on)
    first = await erasures.get(ada)
    for later_s, left in ((59, 1), (1, 0), (3_000, 1), (540, 0), (2 * DAY_S, 0), (DAY_S, 1)):
        store.things[ada] = 1
        clock.now_s += later_s
        await eraser.run_due(go_on)
        assert store.things[ada] == left, later_s
    last = await erasures.get(ada)
    assert last.finished_at_ms == first.finished_at_ms
    assert last.erased[0].items == 4


async def test_a_report_is_kept_as_long_as_the_audit_log(
    engine: AsyncEngine,
    people: UserAdministration,
    erasures: ErasureRepository,
    clock: ManualClock,
) -> None:
    [ada] = await erased_users(people, "ada")
    eraser = Eraser(erasures, [Store(engine, [ada], 1).erase])
    for _ in range(4):
        await eraser.run_due(go_on)
        clock.now_s += DAY_S
    assert await erasures.remove_older(5 * DAY_S, 10) == 0
    clock.now_s += 2 * DAY_S
    assert await erasures.remove_older(5 * DAY_S, 10) == 1
    with pytest.raises(GatewayError, match="no such erasure"):
        await erasures.get(ada)

"""Renewal of the leases of one process."""

import asyncio
from collections.abc import Collection

from services.common.errors import unavailable
from services.common.storage.leased_rows import LeaseRenewer, wait_briefly

PATIENCE_S = 20
LEASE_S = 0.05


class Leases:
    """Leases that a test takes away."""

    def __init__(self) -> None:
        self.held = {"a", "b"}
        self.is_down = False
        self.renewals: list[list[str]] = []
        self.renewed = asyncio.Event()

    async def renew(self, keys: Collection[str]) -> set[str]:
        self.renewals.append(sorted(keys))
        self.renewed.set()
        if self.is_down:
            raise unavailable("the database is down")
        return self.held & set(keys)

    async def next_renewal(self) -> list[str]:
        self.renewed.clear()
        async with asyncio.timeout(PATIENCE_S):
            await self.renewed.wait()
        return self.renewals[-1]


async def test_all_leases_are_renewed_together_until_discarded() -> None:
    leases = Leases()
    renewer = LeaseRenewer(leases.renew, LEASE_S)
    for key in ("a", "b"):
        renewer.add(key, lambda: None)
    assert await leases.next_renewal() == ["a", "b"]
    renewer.discard("a")
    assert await leases.next_renewal() == ["b"]
    renewer.discard("b")
    await renewer.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_lost_lease_is_reported_once_and_not_renewed_again() -> None:
    leases = Leases()
    renewer = LeaseRenewer(leases.renew, LEASE_S)
    lost: list[str] = []
    for key in ("a", "b"):
        renewer.add(key, lambda key=key: lost.append(key))
    leases.held.discard("a")
    await leases.next_renewal()
    assert await leases.next_renewal() == ["b"]
    assert lost == ["a"]
    renewer.discard("b")
    await renewer.close()


async def test_renewal_continues_after_a_database_outage() -> None:
    leases = Leases()
    leases.is_down = True
    renewer = LeaseRenewer(leases.renew, LEASE_S)
    lost = asyncio.Event()
    renewer.add("a", lost.set)
    await leases.next_renewal()
    leases.is_down = False
    assert await leases.next_renewal() == ["a"]
    await wait_briefly(lost, 0.01)
    assert not lost.is_set()
    renewer.discard("a")
    await renewer.close()

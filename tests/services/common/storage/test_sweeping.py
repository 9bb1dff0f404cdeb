"""The runner of sweepers: leases, batches and failures."""

import asyncio

import pytest

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches


class FakeLease:
    """A lease that can be taken a number of times."""

    def __init__(self, times: int = 1_000) -> None:
        self.is_released = False
        self._times = times

    async def take(self) -> bool:
        self._times -= 1
        return self._times >= 0

    async def release(self) -> None:
        self.is_released = True


async def test_a_failed_sweep_is_tried_again(caplog: pytest.LogCaptureFixture):
    failures = [GatewayError(errors_pb2.REASON_UNAVAILABLE, "no database"), ValueError("a bug")]
    is_done = asyncio.Event()

    async def remove(renew: Renew) -> None:
        if failures:
            raise failures.pop(0)
        is_done.set()

    lease = FakeLease()
    sweeper = Sweeper(lease, 0, remove)
    sweeper.start()
    async with asyncio.timeout(60):  # only a failing test waits so long
        await is_done.wait()
    await sweeper.stop()
    assert [record.getMessage() for record in caplog.records] == [
        "a sweep was interrupted",
        "a sweep failed",
    ]
    assert lease.is_released


async def test_nothing_is_removed_without_the_lease():
    async def remove(renew: Renew) -> None:
        raise AssertionError("another sweeper has the lease")

    assert not await Sweeper(FakeLease(times=0), 60, remove).sweep()


@pytest.mark.parametrize(
    ("times", "expected"),
    [(9, [100, 100, 30]), (2, [100, 100])],
    ids=["until a batch is smaller", "until the lease is lost"],
)
async def test_rows_are_removed_in_batches(times: int, expected: list[int]):
    rows, removed = 230, []

    async def remove(at_most: int) -> int:
        removed.append(min(rows - sum(removed), at_most))
        return removed[-1]

    # The first renewal begins the sweep.
    lease = FakeLease(times=times)
    await Sweeper(lease, 60, lambda renew: remove_in_batches(remove, 100, renew)).sweep()
    assert removed == expected

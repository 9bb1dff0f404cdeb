"""`Deadline` does what `asyncio.timeout_at` does."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from services.common.process.timer_wheel import Deadline, TimerWheel
from tests.services.inference.fallback.virtual_time import in_no_time

Bound = Callable[[float], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def ours(when: float):
    with Deadline(TimerWheel(), when):
        yield


BOTH = pytest.mark.parametrize("bound", [ours, asyncio.timeout_at], ids=["ours", "asyncio's"])


def after(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


@BOTH
@in_no_time
async def test_what_ends_in_time_is_left_alone(bound: Bound) -> None:
    async with bound(after(1)):
        await asyncio.sleep(0.5)
    await asyncio.sleep(1)


@BOTH
@pytest.mark.parametrize("seconds", [1, 0, -1])
@in_no_time
async def test_what_takes_longer_ends_then(bound: Bound, seconds: float) -> None:
    began = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        async with bound(after(seconds)):
            await asyncio.sleep(5)
    assert asyncio.get_running_loop().time() - began == pytest.approx(max(seconds, 0), abs=1e-6)
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
    await asyncio.sleep(1)


@BOTH
@in_no_time
async def test_another_failure_is_raised_as_it_is(bound: Bound) -> None:
    with pytest.raises(LookupError):
        async with bound(after(1)):
            raise LookupError


@BOTH
@pytest.mark.parametrize("at", [0.5, 1.0])
@in_no_time
async def test_a_cancellation_from_outside_is_not_lost(bound: Bound, at: float) -> None:
    async def work() -> None:
        async with bound(after(1)):
            await asyncio.sleep(5)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(at, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task


@BOTH
@pytest.mark.parametrize(("outer", "inner"), [(1, 2), (2, 1), (1, 1)])
@in_no_time
async def test_of_two_the_earlier_ends_it(bound: Bound, outer: float, inner: float) -> None:
    ended = []
    with pytest.raises(TimeoutError):
        async with bound(after(outer)):
            try:
                async with bound(after(inner)):
                    await asyncio.sleep(5)
            except TimeoutError:
                ended.append("inner")
                raise
    assert ended == (["inner"] if inner < outer else [])
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0

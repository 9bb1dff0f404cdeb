"""Timers of a wheel call at their time, however they are set and cancelled."""

import asyncio
import weakref

import pytest

from services.common.process.timer_wheel import TimerHandle, TimerWheel
from tests.services.inference.fallback.virtual_time import in_no_time


@in_no_time
async def test_each_function_is_called_at_its_time() -> None:
    timers = TimerWheel()
    called: list[tuple[float, float]] = []
    times = [0.25, 0.75, 1.0, 1.5, 1.9, 600.2, 0.5]
    for when in times:
        TimerHandle(timers, when, lambda when=when: called.append((when, timers.loop.time())))
    await asyncio.sleep(700)
    assert [when for when, _ in called] == sorted(times)
    assert [now for _, now in called] == pytest.approx(sorted(times), abs=1e-6)


@in_no_time
async def test_a_time_that_is_over_counts_as_now() -> None:
    timers = TimerWheel()
    called: list[float] = []
    await asyncio.sleep(2.5)
    for when in (1, 2.1, 2.4):
        TimerHandle(timers, when, lambda: called.append(timers.loop.time()))
    await asyncio.sleep(1)
    assert called == pytest.approx([2.5, 2.5, 2.5], abs=1e-6)


@in_no_time
async def test_a_cancelled_timer_calls_nothing() -> None:
    timers = TimerWheel()
    called: list[str] = []
    far = TimerHandle(timers, 5.5, lambda: called.append("far"))
    near = TimerHandle(timers, 1.5, lambda: called.append("near"))
    kept = TimerHandle(timers, 5.5, lambda: called.append("kept"))
    await asyncio.sleep(1.2)  # in the second of the near one
    near.cancel()
    far.cancel()
    far.cancel()
    await asyncio.sleep(10)
    kept.cancel()
    assert called == ["kept"]


@in_no_time
async def test_a_cancelled_timer_is_held_by_nobody() -> None:
    class Owner:
        def __init__(self) -> None:
            self.timer = TimerHandle(timers, 5, self.called)

        def called(self) -> None:
            raise AssertionError

    timers = TimerWheel()
    owner = Owner()
    gone = weakref.ref(owner)
    owner.timer.cancel()
    del owner
    assert gone() is None

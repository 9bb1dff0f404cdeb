import asyncio
import weakref

from services.common.process.timer_wheel import IdleTimer, TimerWheel
from tests.services.inference.fallback.virtual_time import in_no_time


def now() -> float:
    return round(asyncio.get_running_loop().time(), 3)


@in_no_time
async def test_it_calls_back_each_time_nothing_happened_for_so_long() -> None:
    called: list[float] = []
    timer = IdleTimer(TimerWheel(), 10, lambda: called.append(now()))
    await asyncio.sleep(35)
    timer.stop()
    assert called == [10, 20, 30]


@in_no_time
async def test_touching_it_begins_anew() -> None:
    called: list[float] = []
    timer = IdleTimer(TimerWheel(), 10, lambda: called.append(now()))
    for _ in range(5):
        await asyncio.sleep(7)
        timer.touch()
    await asyncio.sleep(14)
    timer.touch()
    await asyncio.sleep(14)
    timer.stop()
    assert called == [45, 59]


@in_no_time
async def test_it_is_stopped_at_any_time_also_by_whom_it_calls() -> None:
    called: list[float] = []

    def stop() -> None:
        called.append(now())
        own.stop()

    own, other = (
        IdleTimer(TimerWheel(), 10, stop),
        IdleTimer(TimerWheel(), 10, lambda: called.append(-1)),
    )
    await asyncio.sleep(5)
    other.stop()
    other.stop()
    await asyncio.sleep(100)
    assert called == [10]


@in_no_time
async def test_once_stopped_it_holds_nobody() -> None:
    class Owner:
        def __init__(self) -> None:
            self.timer = IdleTimer(TimerWheel(), 10, self.silent)

        def silent(self) -> None:
            raise AssertionError

    owner = Owner()
    gone = weakref.ref(owner), weakref.ref(owner.timer)
    owner.timer.stop()
    del owner
    assert [one() for one in gone] == [None, None]

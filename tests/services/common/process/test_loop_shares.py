"""Shares of the event loop: who has used much of it lately lets others go first."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, cast

import pytest

from services.common.process.loop_shares import LoopShares, is_waited_for, user_of_task

MANY = 20
STEPS = 50


class Time:
    """A clock that the steps of the tests advance."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Pauses:
    """The running loop, whose timers are over at once.

    Attributes:
        lengths_s: how long each would have been.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.lengths_s: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> asyncio.Handle:
        self.lengths_s.append(delay_s)
        return self._loop.call_soon(callback)


@contextmanager
def shared(time: Time) -> Iterator[Pauses]:
    """Set the task factory of `LoopShares` on the running loop, within the block."""
    loop, pauses = asyncio.get_running_loop(), Pauses()
    loop.set_task_factory(LoopShares(cast(asyncio.AbstractEventLoop, pauses), time).create_task)
    try:
        yield pauses
    finally:
        loop.set_task_factory(None)


def begin(
    user: str, step: Callable[[], None], *, holds: bool = False, steps: int = STEPS
) -> asyncio.Task[None]:
    """Begin a task of a user, which runs `step` in each iteration of the loop."""

    async def run() -> None:
        user_of_task.set(user)
        is_waited_for.set(holds)
        for _ in range(steps):
            step()
            await asyncio.sleep(0)

    return asyncio.get_running_loop().create_task(run(), context=Context())


async def steps_of_many(other: str, step_s: float = 0.01, *, holds: bool = False) -> list[int]:
    """Return how many steps a user with many tasks has between two of another task."""
    time, counts, since = Time(), list[int](), 0

    def step_of_many() -> None:
        nonlocal since
        since += 1
        time.now += step_s

    def step() -> None:
        nonlocal since
        counts.append(since)
        since = 0

    with shared(time):
        many = [begin("many", step_of_many, holds=holds) for _ in range(MANY)]
        await begin(other, step)
        await asyncio.gather(*many)
    # In the first iterations it is not known yet that he uses much.
    return counts[5:]


async def test_a_users_many_steps_delay_another_by_one() -> None:
    counts = await steps_of_many("one")
    assert max(counts) == 1
    assert sum(counts) > len(counts) / 4


async def pauses_of(step_s: float, other_step_s: float) -> set[float]:
    """Return the pauses between steps of a user with much, beside one whose steps take so long."""
    time = Time()

    def step() -> None:
        time.now += step_s

    def other_step() -> None:
        time.now += other_step_s

    with shared(time) as pauses:
        time.now += 1.0
        tasks = [begin("many", step) for _ in range(MANY)] + [begin("one", other_step)]
        await asyncio.gather(*tasks)
    return {round(length_s, 4) for length_s in pauses.lengths_s[1:]}


async def test_after_a_long_step_there_are_none_three_times_as_long() -> None:
    assert 0.03 in await pauses_of(0.01, 0.0)
    assert await pauses_of(0.5, 0.0) == {0.2}
    assert await pauses_of(0.00001, 0.0) == set()


async def test_a_user_alone_runs_all_that_is_ready() -> None:
    assert set(await steps_of_many("")) == {MANY}


async def test_what_others_wait_for_does_not_wait() -> None:
    assert set(await steps_of_many("one", holds=True)) == {MANY}


async def test_users_with_many_steps_take_turns() -> None:
    time, order = Time(), list[str]()

    def step_of(user: str) -> None:
        order.append(user)
        time.now += 0.01

    with shared(time):
        tasks = [begin("a", lambda: step_of("a")) for _ in range(MANY)]
        tasks += [begin("b", lambda: step_of("b")) for _ in range(4)]
        tasks.append(begin("one", lambda: None, steps=20 * STEPS))
        await asyncio.gather(*tasks)
    # Once both have used much, until the tasks of one of them have ended.
    assert 15 <= order[120:160].count("b") <= 20


async def test_a_step_that_waits_can_be_cancelled() -> None:
    time, ended = Time(), list[str]()

    async def run() -> None:
        user_of_task.set("many")
        time.now += 10
        try:
            await asyncio.sleep(0)
            ended.append("went on")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with shared(time):
        one = begin("one", lambda: None)
        await asyncio.sleep(0)
        tasks = [asyncio.get_running_loop().create_task(run(), context=Context()) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.wait(tasks)
        await one
    assert sorted(ended) == ["cancelled", "went on", "went on"]
    assert tasks[2].cancelled()


async def test_results_and_errors_pass() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise ArithmeticError

    async def succeed() -> str:
        return await asyncio.wait_for(asyncio.sleep(0, "result"), 10)

    async def never() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)

    with shared(Time()):
        loop = asyncio.get_running_loop()
        with pytest.raises(ArithmeticError):
            await loop.create_task(fail())
        assert await loop.create_task(succeed()) == "result"
        cancelled = loop.create_task(never())
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled


async def test_a_failure_leaves_nothing_for_the_garbage_collector() -> None:
    class Held:
        """An object that the frames of a failed task hold, such as a body that is refused."""

    freed: list[weakref.ref[Held]] = []

    def failing() -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, ArithmeticError())
        return future

    async def fail() -> None:
        held = Held()
        freed.append(weakref.ref(held))
        await failing()

    async def run() -> None:
        try:
            await fail()
        except ArithmeticError:
            pass

    gc.disable()
    try:
        with shared(Time()):
            await asyncio.get_running_loop().create_task(run())
            await asyncio.sleep(0)
        assert freed[0]() is None
    finally:
        gc.enable()

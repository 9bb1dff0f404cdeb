"""Bytes that are held for requests: what is reserved, awaited, refused and given back."""

import asyncio

import pytest

from services.common.errors import GatewayError
from services.common.process.byte_budget import ByteBudget, Charge


class Timeouts:
    """Timeouts that end when a test says so."""

    def __init__(self) -> None:
        self._running: list[asyncio.Timeout] = []

    def __call__(self, delay_s: float) -> asyncio.Timeout:
        timeout = asyncio.timeout(None)
        self._running.append(timeout)
        return timeout

    def end(self, index: int) -> None:
        self._running[index].reschedule(asyncio.get_running_loop().time())


def budget_of(total: int = 100, per_user: int = 10, timeouts: Timeouts | None = None) -> ByteBudget:
    return ByteBudget(total, per_user, 10, timeouts or Timeouts())


def held(budget: ByteBudget, user: str, size: int) -> Charge:
    charge = Charge(budget, user)
    charge.reserve(size)
    return charge


def refusal(charge: Charge, size: int) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        charge.reserve(size)
    return caught.value


async def waiting(charge: Charge, size: int) -> "asyncio.Task[None]":
    """Return a task that waits for room."""
    before = charge._budget.waiting
    task = asyncio.create_task(charge.acquire(size))
    await asyncio.sleep(0)
    assert charge._budget.waiting == before + 1
    return task


async def admitted(*tasks: "asyncio.Task[None]") -> list[bool]:
    """Return which of the tasks have been admitted."""
    for _ in range(3):
        await asyncio.sleep(0)
    return [task.done() and task.exception() is None for task in tasks]


def test_a_users_bodies_have_a_bound_together():
    budget = budget_of()
    held(budget, "a", 6)
    error = refusal(Charge(budget, "a"), 5)
    assert (error.http_status, error.limit) == (429, "limits.max_buffered_bytes_per_user")
    assert error.retry_after_s == 1
    held(budget, "a", 4)
    held(budget, "b", 10)
    assert budget.held == 20


def test_the_bodies_of_all_users_have_a_bound_together():
    budget = budget_of(total=15)
    first = held(budget, "a", 10)
    error = refusal(Charge(budget, "b"), 6)
    assert (error.http_status, error.limit) == (503, "limits.max_buffered_bytes")
    assert error.retry_after_s == 1
    first.release()
    held(budget, "b", 6)


def test_a_body_alone_always_has_room():
    budget = budget_of(total=15)
    alone = held(budget, "a", 20)
    alone.reserve(20)
    assert refusal(Charge(budget, "a"), 1).http_status == 429
    assert refusal(Charge(budget, "b"), 1).http_status == 503
    alone.release()
    assert budget.held == 0


def test_a_body_that_grows_beside_another_is_refused():
    budget = budget_of()
    first, second = held(budget, "a", 4), held(budget, "a", 4)
    assert refusal(first, 3).http_status == 429
    second.release()
    first.reserve(30)


async def test_a_request_waits_for_room_in_its_users_share():
    budget = budget_of()
    first, second = held(budget, "a", 8), Charge(budget, "a")
    task = await waiting(second, 5)
    held(budget, "b", 10)  # another user is served meanwhile
    first.release(2)
    assert await admitted(task) == [False]
    first.release(1)
    assert await admitted(task) == [True]
    assert (first.size, second.size, budget.held) == (5, 5, 20)


async def test_an_item_larger_than_the_share_passes_alone():
    budget = budget_of()
    first, large = held(budget, "a", 1), Charge(budget, "a")
    task = await waiting(large, 50)
    first.release()
    assert await admitted(task) == [True]
    await large.acquire(50)
    assert large.size == 100


async def test_requests_of_a_user_wait_in_order():
    budget = budget_of()
    first = held(budget, "a", 10)
    large = await waiting(Charge(budget, "a"), 9)
    small = await waiting(Charge(budget, "a"), 1)
    first.release(5)
    assert await admitted(large, small) == [False, False]
    first.release()
    assert await admitted(large, small) == [True, True]


async def test_users_take_turns():
    budget = budget_of(total=10)
    first = held(budget, "c", 10)
    tasks = [await waiting(Charge(budget, user), 5) for user in ("a", "a", "b", "b")]
    first.release()
    assert await admitted(*tasks) == [True, False, True, False]


async def test_a_large_request_is_not_overtaken_for_ever():
    budget = budget_of(total=10)
    first = held(budget, "c", 6)
    large = await waiting(Charge(budget, "a"), 8)
    small = await waiting(Charge(budget, "b"), 1)
    assert await admitted(small) == [False]
    first.release()
    assert await admitted(large, small) == [True, True]


async def test_a_request_that_holds_bytes_goes_first():
    budget = budget_of()
    first, second = held(budget, "a", 6), held(budget, "a", 4)
    new = await waiting(Charge(budget, "a"), 4)
    more = await waiting(second, 4)
    first.release(4)
    assert await admitted(new, more) == [False, True]
    first.release()
    assert await admitted(new) == [False]
    second.release()
    assert await admitted(new) == [True]


async def test_a_wait_has_an_end():
    timeouts = Timeouts()
    budget = budget_of(total=15, timeouts=timeouts)
    held(budget, "a", 10)
    tasks = [await waiting(Charge(budget, user), 6) for user in ("a", "b")]
    timeouts.end(0)
    timeouts.end(1)
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert [error.http_status for error in errors] == [429, 503]
    assert [error.retry_after_s for error in errors] == [1, 1]
    assert (budget.waiting, budget.held) == (0, 10)


async def test_requests_that_wait_for_one_another_end():
    timeouts = Timeouts()
    budget = budget_of(timeouts=timeouts)
    first, second = held(budget, "a", 5), held(budget, "a", 5)
    tasks = [await waiting(first, 4), await waiting(second, 4)]
    timeouts.end(0)
    with pytest.raises(GatewayError):
        await tasks[0]
    first.release()  # as its request has failed
    assert await admitted(tasks[1]) == [True]


async def test_a_caller_who_leaves_frees_its_place():
    budget = budget_of()
    first = held(budget, "a", 8)
    leaving = await waiting(Charge(budget, "a"), 9)
    behind = await waiting(Charge(budget, "a"), 2)
    leaving.cancel()
    assert await admitted(behind) == [True]
    assert (budget.waiting, budget.held) == (0, 10)
    first.release()
    assert budget.held == 2


async def test_a_caller_admitted_while_it_leaves_holds_nothing():
    budget = budget_of()
    first, left = held(budget, "a", 8), Charge(budget, "a")
    leaving = await waiting(left, 9)
    first.release()
    leaving.cancel()
    await asyncio.wait([leaving])
    assert (left.size, budget.held) == (0, 0)


async def test_a_caller_who_has_just_left_is_not_admitted():
    budget = budget_of()
    first, left = held(budget, "a", 8), Charge(budget, "a")
    leaving = await waiting(left, 9)
    leaving.cancel()
    first.release()  # before the task has run
    await asyncio.wait([leaving])
    assert (left.size, budget.held, budget.waiting) == (0, 0, 0)

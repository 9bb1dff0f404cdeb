"""The order in which transactions of several users write."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any

import pytest
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from services.common.grpc.authentication import Caller, caller
from services.common.settings import Storage
from services.common.storage import owners
from services.common.storage.connection_turns import ConnectionTurns
from services.common.storage.database import open_engine, writing
from services.common.storage.migrations.runner import migrate

PATIENCE_S = 30


def no_thread(run: object) -> None:
    raise AssertionError("no transaction runs in a thread here")


class Time:
    """A clock that stands still."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def served(
    turns: ConnectionTurns, arrivals: str, leaving: str = "", late: str = "", after: int = 0
) -> str:
    """Return the order in which owners are served; a space is no owner.

    Args:
        turns: the lock.
        arrivals: the owners who come while the lock is held, in order.
        leaving: those of them who are cancelled before it is free.
        late: the owners who come when `after` have been served.
    """
    order: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def take(owner: str) -> None:
        async with turns.turn(owner.strip()):
            order.append(owner)
            if len(order) == after:
                await come(late)

    async def come(owners: str) -> None:
        for owner in owners:
            tasks.append(asyncio.create_task(take(owner)))
            await asyncio.sleep(0)

    async with turns.turn("first"):
        await come(arrivals)
        for owner, task in zip(arrivals, tasks, strict=True):
            if owner in leaving:
                task.cancel()
        await asyncio.sleep(0)
        assert not order, "a turn began while another one was held"
    while not all(task.done() for task in tasks):
        await asyncio.wait(tasks)
    return "".join(order)


async def test_owners_are_served_in_turn() -> None:
    assert await served(ConnectionTurns(1, no_thread, Time()), "aaaabbc") == "abcabaa"


async def test_one_owner_is_served_in_order() -> None:
    assert await served(ConnectionTurns(1, no_thread, Time()), "aaa") == "aaa"


async def test_what_has_no_owner_goes_first() -> None:
    assert await served(ConnectionTurns(1, no_thread, Time()), "ab a ") == "  aba"


async def test_those_who_leave_hold_nothing_up() -> None:
    turns = ConnectionTurns(1, no_thread, Time())
    assert await served(turns, "abab", leaving="a") == "bb"
    assert await served(turns, "aab") == "aba", "a round was left from before"


async def test_who_has_nothing_waiting_comes_next() -> None:
    turns = ConnectionTurns(1, no_thread, Time())
    assert await served(turns, "aaaaaa", late=" b", after=2) == "aa baaaa"


async def test_who_has_had_much_lately_comes_later() -> None:
    time = Time()
    turns = ConnectionTurns(1, no_thread, time)
    for owner, seconds in ("a", 0.1), ("b", 0.01):
        async with turns.turn(owner):
            time.now += seconds
    assert await served(turns, "abc") == "cba"
    time.now += 60
    assert await served(turns, "abc") == "abc", "it is long ago"


async def test_who_has_had_much_is_served_after_a_while() -> None:
    time = Time()
    turns = ConnectionTurns(1, no_thread, time)
    async with turns.turn("a"):
        time.now += 4
    order: list[str] = []

    async def take(owner: str) -> None:
        async with turns.turn(owner):
            order.append(owner)

    async with turns.turn("first"):
        waiting = [asyncio.create_task(take("a"))]
        for number in range(4):
            await asyncio.sleep(0)
            waiting.append(asyncio.create_task(take(str(number))))
            await asyncio.sleep(0)
            time.now += 0.9
    await asyncio.gather(*waiting)
    assert order == ["0", "1", "2", "a", "3"]


async def test_cancelled_as_its_turn_begins_passes_it_on() -> None:
    turns = ConnectionTurns(1, no_thread, Time())

    async def take() -> None:
        async with turns.turn("a"):
            raise AssertionError("cancelled before it ran")

    async def wait() -> str:
        async with turns.turn("b"):
            return "served"

    async with turns.turn("first"):
        cancelled = asyncio.create_task(take())
        following = asyncio.create_task(wait())
        await asyncio.sleep(0)
    cancelled.cancel()  # after the turn was given to it, before it runs
    async with asyncio.timeout(PATIENCE_S):
        assert await following == "served"
    assert cancelled.cancelled()


async def test_a_users_many_writes_delay_another_by_one(tmp_path) -> None:
    engine = open_engine(Storage(data_dir=tmp_path))
    try:
        await migrate(engine)
        assert await written(engine, ["many"] * 20 + ["one"]) == ["many", "one"] + ["many"] * 19
    finally:
        await engine.dispose()


async def written(engine: AsyncEngine, users: list[str]) -> list[str]:
    """Return the order in which transactions of users ran that began while another one did."""
    order: list[str] = []

    async def write(number: int, user: str) -> None:
        caller.set(Caller(user, "", PLAN_ENTERPRISE))
        async with writing(engine) as connection:
            await connection.execute(
                insert(owners.owners).values(owner_id=f"{user}{number}", memories=0, size_bytes=0)
            )
            order.append(user)

    async with writing(engine):
        tasks = []
        for number, user in enumerate(users):
            tasks.append(asyncio.create_task(write(number, user), context=Context()))
            await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    return order


class Threads:
    """Runs transactions with connections that are numbered from 1."""

    def __init__(self) -> None:
        self.opened = 0
        self.open = 0
        self.goes_on = threading.Event()

    def run(self, work: Callable[[Any], None]) -> None:
        self.opened += 1
        self.open += 1
        try:
            work(self.opened)
        finally:
            self.open -= 1

    def wait(self, connection: int) -> int:
        """Wait until the test goes on; return the connection."""
        assert self.goes_on.wait(PATIENCE_S)
        return connection


async def held(turns: ConnectionTurns, threads: Threads) -> asyncio.Task[int]:
    """Return a transaction that holds the only turn until the test goes on."""
    task = asyncio.create_task(turns.transact("first", threads.wait))
    await asyncio.sleep(0)
    return task


def note(order: list[str], owner: str, connection: int) -> int:
    order.append(owner)
    return connection


async def test_transactions_are_served_in_turn() -> None:
    threads = Threads()
    turns = ConnectionTurns(1, threads.run, Time())
    first, order = await held(turns, threads), list[str]()
    waiting = [
        asyncio.create_task(turns.transact(owner, partial(note, order, owner))) for owner in "aaab"
    ]
    await asyncio.sleep(0)
    threads.goes_on.set()
    assert sorted(await asyncio.gather(first, *waiting)) == [1, 2, 3, 4, 5]
    assert "".join(order) == "abaa"
    assert not threads.open, "a result came before its connection was closed"


async def test_blocks_and_transactions_take_turns() -> None:
    threads = Threads()
    turns = ConnectionTurns(1, threads.run)
    first, order = await held(turns, threads), list[str]()

    async def block() -> None:
        async with turns.turn("b"):
            order.append("block")
            await asyncio.sleep(0)
            order.append("end")

    waiting: list[asyncio.Task[Any]] = [
        asyncio.create_task(turns.transact("a", partial(note, order, "1"))),
        asyncio.create_task(block()),
        asyncio.create_task(turns.transact("c", partial(note, order, "2"))),
    ]
    await asyncio.sleep(0)
    threads.goes_on.set()
    await asyncio.gather(first, *waiting)
    assert order == ["1", "block", "end", "2"]


async def test_a_failed_transaction_fails_alone() -> None:
    threads = Threads()
    turns = ConnectionTurns(1, threads.run)
    first = await held(turns, threads)

    def fail(_: int) -> int:
        raise ArithmeticError

    failing = asyncio.create_task(turns.transact("a", fail))
    following = asyncio.create_task(turns.transact("b", int))
    await asyncio.sleep(0)
    threads.goes_on.set()
    with pytest.raises(ArithmeticError):
        await failing
    assert [await first, await following] == [1, 3]


async def test_no_connection_fails_one_transaction() -> None:
    threads = Threads()

    def run(work: Callable[[Any], None]) -> None:
        if threads.opened == 1:
            threads.opened += 1
            raise ConnectionRefusedError
        threads.run(work)

    turns = ConnectionTurns(1, run)
    first = await held(turns, threads)
    failing = asyncio.create_task(turns.transact("a", int))
    following = asyncio.create_task(turns.transact("b", int))
    await asyncio.sleep(0)
    threads.goes_on.set()
    with pytest.raises(ConnectionRefusedError):
        await failing
    assert [await first, await following] == [1, 3]


async def test_who_leaves_before_his_turn_runs_nothing() -> None:
    threads = Threads()
    turns = ConnectionTurns(1, threads.run)
    first, order = await held(turns, threads), list[str]()
    leaving = asyncio.create_task(turns.transact("a", partial(note, order, "a")))
    following = asyncio.create_task(turns.transact("b", partial(note, order, "b")))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    threads.goes_on.set()
    await asyncio.gather(first, following)
    assert leaving.cancelled()
    assert order == ["b"]


async def test_who_leaves_in_his_turn_waits_for_its_end() -> None:
    threads, began, ends = Threads(), threading.Event(), threading.Event()
    turns = ConnectionTurns(1, threads.run)
    first = await held(turns, threads)

    def last(_: int) -> None:
        began.set()
        assert ends.wait(PATIENCE_S)

    leaving = asyncio.create_task(turns.transact("a", last))
    await asyncio.sleep(0)
    threads.goes_on.set()
    await first
    assert await asyncio.to_thread(began.wait, PATIENCE_S)
    for _ in range(2):
        leaving.cancel()
        await asyncio.sleep(0)
    assert not leaving.done()
    ends.set()
    await asyncio.wait([leaving])
    assert leaving.cancelled()


async def test_several_turns_are_held_at_once() -> None:
    threads = Threads()
    turns = ConnectionTurns(2, threads.run)
    running = [asyncio.create_task(turns.transact("a", threads.wait)) for _ in range(3)]
    await asyncio.sleep(0)
    assert threads.opened == 2
    threads.goes_on.set()
    assert sorted(await asyncio.gather(*running)) == [1, 2, 3]

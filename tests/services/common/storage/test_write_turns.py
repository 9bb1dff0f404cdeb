"""The order in which transactions of several users write."""

import asyncio
from contextvars import Context

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from services.common.grpc.authentication import Caller, caller
from services.common.settings import Storage
from services.common.storage import owners
from services.common.storage.database import migrate, open_engine, writing
from services.common.storage.write_turns import WriteTurns

PATIENCE_S = 30


async def served(
    turns: WriteTurns, arrivals: str, leaving: str = "", late: str = "", after: int = 0
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
    assert await served(WriteTurns(), "aaaabbc") == "abcabaa"


async def test_one_owner_is_served_in_order() -> None:
    assert await served(WriteTurns(), "aaa") == "aaa"


async def test_what_has_no_owner_goes_first() -> None:
    assert await served(WriteTurns(), "ab a ") == "  aba"


async def test_those_who_leave_hold_nothing_up() -> None:
    turns = WriteTurns()
    assert await served(turns, "abab", leaving="a") == "bb"
    assert await served(turns, "aab") == "aba", "a round was left from before"


async def test_who_comes_later_waits_one_round() -> None:
    assert await served(WriteTurns(), "aaaaaa", late="b", after=2) == "aaabaaa"


async def test_what_has_no_owner_leaves_the_rounds_as_they_are() -> None:
    assert await served(WriteTurns(), "aaaaaa", late=" b", after=2) == "aa abaaa"


async def test_cancelled_as_its_turn_begins_passes_it_on() -> None:
    turns = WriteTurns()

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

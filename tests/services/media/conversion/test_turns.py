"""Turns: owners one after the other, and no place is lost."""

import asyncio

import pytest

from services.common.errors import GatewayError
from services.media.conversion.turns import Turns
from tests.waiting import until


class Scene:
    """Holders of places, by their names."""

    def __init__(self, most: int, waiting: int = 100) -> None:
        self.turns = Turns(most, waiting)
        self.order: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str) -> None:
        """Ask for a place as the owner that the first letter names."""
        self._ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._hold(name))
        await asyncio.sleep(0)

    async def _hold(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.order.append(name)
            await self._ends[name].wait()

    def end(self, name: str) -> None:
        self._ends[name].set()

    async def leave(self, name: str) -> None:
        self.end(name)
        await self.tasks[name]

    async def holding(self, *names: str) -> None:
        await until(lambda: set(names) <= set(self.order))


async def test_owners_take_turns():
    scene = Scene(1)
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        await scene.come(name)
    for name in ("a1", "a2", "b1", "c1", "a3", "b2"):
        await scene.holding(name)
        await scene.leave(name)
    assert scene.order == ["a1", "a2", "b1", "c1", "a3", "b2"]


async def test_one_that_gives_up_leaves_its_place_to_others():
    scene = Scene(1)
    for name in ("a1", "a2", "b1"):
        await scene.come(name)
    scene.tasks["a2"].cancel()
    await scene.leave("a1")
    await scene.holding("b1")
    await scene.leave("b1")
    await scene.come("a3")
    assert scene.order == ["a1", "b1", "a3"]
    await scene.leave("a3")


async def test_one_that_gives_up_as_its_turn_comes_passes_it_on():
    scene = Scene(1)
    for name in ("a1", "a2", "b1"):
        await scene.come(name)
    scene.end("a1")
    await until(scene.tasks["a1"].done, every_s=0)
    assert scene.order == ["a1"]  # the place has come to a2, which has not run since
    scene.tasks["a2"].cancel()
    await scene.holding("b1")
    await scene.leave("b1")
    await scene.come("c1")
    assert scene.order[-1] == "c1"
    await scene.leave("c1")


async def test_a_place_for_each_that_may_run():
    scene = Scene(2)
    for name in ("a1", "b1", "c1"):
        await scene.come(name)
    assert scene.order == ["a1", "b1"]
    await scene.leave("b1")
    await scene.holding("c1")
    await scene.leave("a1")
    await scene.leave("c1")


async def test_an_owner_leaves_the_last_place_to_others():
    scene = Scene(3)
    for name in ("a1", "a2", "a3", "b1"):
        await scene.come(name)
    assert scene.order == ["a1", "a2", "b1"]
    await scene.leave("b1")
    await asyncio.sleep(0)
    assert scene.order == ["a1", "a2", "b1"]  # a3 may not have the place that is free
    await scene.come("c1")
    assert scene.order[-1] == "c1"
    await scene.leave("a1")
    await scene.holding("a3")
    for name in ("a2", "a3", "c1"):
        await scene.leave(name)


async def test_a_free_place_passes_owners_that_hold_enough():
    scene = Scene(2)
    for name in ("a1", "b1", "a2", "c1"):
        await scene.come(name)
    await scene.leave("b1")
    await scene.holding("c1")  # not a2, which came first
    await scene.leave("a1")
    await scene.holding("a2")
    for name in ("a2", "c1"):
        await scene.leave(name)


async def test_an_owner_waits_in_half_of_the_queue():
    scene = Scene(1, waiting=4)
    for name in ("a1", "a2", "a3", "a4"):
        await scene.come(name)
    with pytest.raises(GatewayError, match="too many conversions"):
        await scene.tasks["a4"]
    await scene.come("b1")
    for name in ("a1", "a2", "b1", "a3"):
        await scene.holding(name)
        await scene.leave(name)
    assert scene.order == ["a1", "a2", "b1", "a3"]

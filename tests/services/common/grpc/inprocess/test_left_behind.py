"""Calls that are abandoned in any state and way leave nothing behind."""

import asyncio
import gc
import random

import grpc
import pytest

from services.common.grpc.inprocess.call import InProcessCall
from services.common.grpc.inprocess.context import MessageQueue
from services.common.grpc.inprocess.response_stream import deliver
from tests.services.common.grpc.inprocess.carriers import (
    echo,
    echo_all,
    everything,
    message,
    served,
    soon,
)
from tests.waiting import until

HOUR_S = 3600


def held() -> int:
    """Count the parts of calls."""
    gc.collect()
    return sum(isinstance(one, InProcessCall | MessageQueue) for one in gc.get_objects())


class Abandoned:
    """Calls that are opened, brought into some state, and left in some way."""

    def __init__(self, at, chance):
        self.at, self.chance = at, chance

    async def one(self):
        state = self.chance.choice([self.waiting, self.unread, self.half_sent, self.ended])
        leave = self.chance.choice(["cancel", "drop", "deadline", "task"])
        timeout_s = 0.01 if leave == "deadline" else None
        task = asyncio.create_task(state(timeout_s))
        if leave == "task":
            for _ in range(self.chance.randrange(6)):
                await asyncio.sleep(0)
            task.cancel()
        (call,) = await asyncio.gather(task, return_exceptions=True)
        if leave == "cancel" and hasattr(call, "cancel"):
            call.cancel()

    async def waiting(self, timeout_s):
        if timeout_s is None:  # nobody else would end it
            timeout_s = 0.05
        await self.at.unary(message(), timeout=timeout_s)

    async def unread(self, timeout_s):
        call = self.at.down(message(), timeout=timeout_s)
        if self.chance.random() < 0.8:
            await call.read()
        return call

    async def half_sent(self, timeout_s):
        call = self.at.both(timeout=timeout_s)
        writing = asyncio.create_task(call.write(message(bytes(700_000))))
        for _ in range(self.chance.randrange(6)):
            await asyncio.sleep(0)
        if self.chance.random() < 0.5:
            writing.cancel()
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        return call

    async def ended(self, timeout_s):
        call = self.at.both(timeout=timeout_s)
        try:
            await call.write(message(b"a"))
            await call.read()
        finally:
            call.cancel()
        return call


async def abandon(inprocess, count):
    async def unary(request, context):
        await asyncio.Event().wait()

    async def down(request, context):
        while True:
            yield message(bytes(10_000))

    async with served(inprocess, unary=unary, down=down, both=echo_all) as at:
        held_before = held()
        tasks_before = len(asyncio.all_tasks())
        chance = random.Random(7)
        for _ in range(count // 50):
            await soon(asyncio.gather(*[Abandoned(at, chance).one() for _ in range(50)]))
        await until(lambda: len(asyncio.all_tasks()) <= tasks_before and held() <= held_before)
        assert not at.server.calls
        call = at.both()
        await call.write(message(b"last"))
        await call.done_writing()
        assert await everything(call) == [b"last"]


async def test_abandoned_calls_leave_nothing_behind(inprocess):
    await abandon(inprocess, 300)


@pytest.mark.soak
async def test_ten_thousand_abandoned_calls_leave_nothing_behind(inprocess):
    await abandon(inprocess, 10_000)


@pytest.mark.parametrize("kind", ["unary", "deliver"])
@pytest.mark.parametrize("way", ["failed", "cancelled"])
async def test_an_ended_call_is_freed_without_a_collection(inprocess, kind, way):
    async def unary(request, context):
        if way == "failed":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no")
        await asyncio.Event().wait()

    class Failing:
        def receive(self, received):
            raise ConnectionError

    async def down(request, context):
        if way == "failed":
            yield message()
        await asyncio.Event().wait()

    async def call(at):
        if kind == "unary":
            await at.unary(message())
        else:
            await deliver(at.down(message()), Failing())

    async with served(inprocess, unary=unary, down=down) as at:
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                calling = asyncio.create_task(call(at))
                for _ in range(3):
                    await asyncio.sleep(0)
                if way == "cancelled":
                    calling.cancel()
                await asyncio.wait([calling])
                assert calling.cancelled() or calling.exception() is not None
                del calling
            await asyncio.sleep(0)
            assert not any(isinstance(one, InProcessCall) for one in gc.get_objects())
        finally:
            gc.enable()


async def test_a_timer_does_not_outlive_its_call(inprocess):
    async with served(inprocess, both=echo_all, unary=echo) as at:
        await soon(at.unary(message(), timeout=HOUR_S))
        call = at.both(timeout=HOUR_S)
        await call.done_writing()
        assert await everything(call) == []
        del call
        await until(lambda: held() == 0)

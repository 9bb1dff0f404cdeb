"""What calls leave behind, in whatever state and way they are left: nothing."""

import asyncio
import gc
import random

import grpc
import pytest

from services.common.inprocess.channel import InProcessChannel
from services.common.inprocess.exchange import Exchange
from services.common.inprocess.pipe import Pipe
from services.common.inprocess.server import ServedCall
from tests.services.common.inprocess.carriers import (
    MIB,
    echo_all,
    everything,
    outcome,
    served,
    soon,
)
from tests.waiting import until

CODE = grpc.StatusCode
KIB = 1 << 10


def held() -> int:
    """Count what calls are made of."""
    gc.collect()
    parts = Exchange | ServedCall | Pipe
    return sum(isinstance(one, parts) for one in gc.get_objects())


ONE_RESPONSE = grpc.aio.UnaryUnaryCall | grpc.aio.StreamUnaryCall


class Abandoned:
    """Calls that are opened, brought into some state, and left in some way."""

    def __init__(self, at, chance):
        self.at, self.chance = at, chance

    async def one(self):
        begin = self.chance.choice([self.waiting, self.unread, self.half_sent, self.ended, self.up])
        leave = self.chance.choice(["cancel", "drop", "deadline", "task"])
        at_most = 0.01 if leave == "deadline" else None
        if leave == "task":
            task = asyncio.create_task(begin(at_most))
            for _ in range(self.chance.randrange(6)):
                await asyncio.sleep(0)
            task.cancel()
            (call,) = await asyncio.gather(task, return_exceptions=True)
        else:
            call = await begin(at_most)
        if leave == "deadline":
            await soon(call.code())
        elif leave == "cancel" or isinstance(call, ONE_RESPONSE):
            # What has one response runs on when it is dropped, as on a plain channel.
            call.cancel()

    async def waiting(self, at_most):
        return self.at.unary(b"wait", timeout=at_most)

    async def unread(self, at_most):
        call = self.at.down(b"", timeout=at_most)
        if self.chance.random() < 0.5:
            try:
                await call.read()
            except grpc.aio.AioRpcError:
                pass
        return call

    async def half_sent(self, at_most):
        call = self.at.both(timeout=at_most)
        writing = asyncio.create_task(call.write(b"x" * (700 * KIB)))
        for _ in range(self.chance.randrange(6)):
            await asyncio.sleep(0)
        if self.chance.random() < 0.5:
            writing.cancel()
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        return call

    async def ended(self, at_most):
        call = self.at.both([b"a", b"b"], timeout=at_most)
        try:
            await call.read()
        except grpc.aio.AioRpcError:
            pass
        return call

    async def up(self, at_most):
        call = self.at.up(timeout=at_most)
        try:
            await call.write(b"x" * 1000)
            if self.chance.random() < 0.5:
                await call.done_writing()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass
        return call


async def abandon(inprocess, count):
    async def unary(request, context):
        await asyncio.Event().wait()

    async def down(request, context):
        while True:
            yield b"x" * 10_000

    async def up(requests, context):
        async for _ in requests:
            pass
        await asyncio.Event().wait()

    inprocess.max_message_bytes = 4 * MIB
    async with served(inprocess, unary=unary, down=down, up=up, both=echo_all) as at:
        await everything(at.both([b"first"]))
        at_first = held()
        tasks = len(asyncio.all_tasks())
        chance = random.Random(7)
        for _ in range(count // 50):
            await soon(asyncio.gather(*[Abandoned(at, chance).one() for _ in range(50)]))
        await until(lambda: len(asyncio.all_tasks()) <= tasks and held() <= at_first)
        assert await everything(at.both([b"last"])) == [b"last"]


async def test_calls_abandoned_in_every_state_leave_nothing_behind(inprocess):
    await abandon(inprocess, 300)


@pytest.mark.soak
async def test_ten_thousand_abandoned_calls_leave_nothing_behind(inprocess):
    await abandon(inprocess, 10_000)


async def test_a_stream_that_nobody_holds_any_more_is_cancelled(inprocess):
    ended = asyncio.Event()

    async def down(request, context):
        try:
            yield b"a"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with served(inprocess, down=down) as at:
        call = at.down(b"")
        async for _ in call:
            break
        del call
        await soon(ended.wait())


async def test_calls_before_the_servers_start_leave_nothing_behind(inprocess):
    channel = InProcessChannel(inprocess.server({}))
    at_first = held()
    for _ in range(50):
        assert (await outcome(channel.unary_unary("/test.T/Unary")(b"")))[0] is CODE.UNAVAILABLE
    assert held() <= at_first


async def test_a_closed_channel_leaves_no_task_behind(inprocess):
    async def unary(request, context):
        await asyncio.Event().wait()

    async with served(inprocess, unary=unary) as at:
        tasks = len(asyncio.all_tasks())
        async with InProcessChannel(at.server) as channel:
            call = channel.unary_unary("/test.T/Unary")(b"")
            await asyncio.sleep(0)
        assert call.cancelled()
        await until(lambda: len(asyncio.all_tasks()) <= tasks)

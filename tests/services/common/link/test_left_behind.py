"""What calls leave behind, in whatever state and way they are left: nothing."""

import asyncio
import gc
import random

import grpc
import pytest

from services.common.link.exchange import Exchange
from services.common.link.receiving import Holdings, Inbox
from services.common.link.sending import Outbox, Outgoing
from services.common.link.served import ServedCall
from tests.services.common.link.carriers import (
    MIB,
    echo,
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
    parts = Exchange | ServedCall | Inbox | Outgoing
    return sum(isinstance(one, parts) for one in gc.get_objects())


def buffered() -> int:
    """Add up what links hold for calls."""
    total = 0
    for one in gc.get_objects():
        if isinstance(one, Holdings):
            total += one.unread + one._taken + len(one._asking)
        elif isinstance(one, Outbox):
            total += one.size + len(one._turns)
    return total


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


async def abandon(link, count):
    async def unary(request, context):
        await asyncio.Event().wait()

    async def down(request, context):
        while True:
            yield b"x" * 10_000

    async def up(requests, context):
        async for _ in requests:
            pass
        await asyncio.Event().wait()

    link.max_message = 4 * MIB
    async with served(link, unary=unary, down=down, up=up, both=echo_all) as at:
        await everything(at.both([b"first"]))
        at_first = held()
        tasks = len(asyncio.all_tasks())
        chance = random.Random(7)
        for _ in range(count // 50):
            await soon(asyncio.gather(*[Abandoned(at, chance).one() for _ in range(50)]))
        await until(
            lambda: len(asyncio.all_tasks()) <= tasks and held() <= at_first and not buffered()
        )
        assert await everything(at.both([b"last"])) == [b"last"]


async def test_calls_abandoned_in_every_state_leave_nothing_behind(link):
    await abandon(link, 1_000)


@pytest.mark.soak
async def test_ten_thousand_calls_abandoned_in_every_state_leave_nothing_behind(link):
    await abandon(link, 10_000)


async def test_a_stream_that_nobody_holds_any_more_is_cancelled(link):
    ended = asyncio.Event()

    async def down(request, context):
        try:
            yield b"a"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with served(link, down=down) as at:
        call = at.down(b"")
        async for _ in call:
            break
        del call
        await soon(ended.wait())


async def test_calls_that_end_before_they_begin_leave_nothing_behind(link):
    async with link.channel("127.0.0.1:1") as channel:
        unary = channel.unary_unary("/test.T/Unary")
        kept = unary(b"", wait_for_ready=True)
        at_first = held()
        cancelled = [unary(b"", wait_for_ready=True) for _ in range(50)]
        late = [unary(b"", wait_for_ready=True, timeout=0.01) for _ in range(50)]
        for call in cancelled:
            call.cancel()
        for call in late:
            assert (await outcome(call))[0] is CODE.DEADLINE_EXCEEDED
        del cancelled, late, call
        await until(lambda: held() <= at_first)
        assert not kept.done()


async def test_a_closed_channel_leaves_no_task_behind(link):
    async with served(link, unary=echo) as at:
        tasks = len(asyncio.all_tasks())
        for _ in range(3):
            async with link.channel(f"127.0.0.1:{at.port}") as channel:
                assert await soon(channel.unary_unary("/test.T/Unary")(b"")) == b""
        async with link.channel("127.0.0.1:1") as channel:
            call = channel.unary_unary("/test.T/Unary")(b"", wait_for_ready=True)
            await asyncio.sleep(0)
        assert call.cancelled()
        del call, channel
        await until(lambda: len(asyncio.all_tasks()) <= tasks)

"""Calls that are cancelled before their servicer ends.

The same tests over a plain channel and within the process.
"""

import asyncio

import grpc
import pytest

from services.common.grpc.inprocess.response_stream import deliver
from tests.services.common.grpc.inprocess.carriers import (
    KINDS,
    Received,
    begin,
    ended,
    message,
    outcome,
    served,
    soon,
)

CODE = grpc.StatusCode


@pytest.mark.parametrize("kind", [*KINDS, "deliver"])
async def test_cancelling_the_waiting_task_cancels_the_call(carrier, endless, kind):
    if kind in ("down", "both") and carrier.kind == "plain":
        return  # gRPC does not always tell the server
    async with endless.served(carrier) as at:
        if kind == "deliver":
            waiting = begin(deliver(at.down(message()), Received()))
        else:
            waiting = begin(ended(at.opened(kind), kind))
        await soon(endless.began.wait())
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(waiting)
        await soon(endless.ended.wait())


async def test_a_call_cancelled_before_it_begins_does_not(inprocess):
    ran = []

    async def unary(request, context):
        ran.append(request.value)
        return message()

    async def down(request, context):
        ran.append(request.value)
        yield message()

    async with served(inprocess, unary=unary, down=down) as at:
        waiting = asyncio.create_task(at.unary(message(b"never")))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        call = at.down(message(b"never"))
        assert call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call.read()
        await soon(at.unary(message(b"after")))
        assert ran == [b"after"]


@pytest.mark.parametrize("kind", ["down", "up", "both"])
async def test_cancel_ends_a_call_on_both_sides(carrier, endless, kind):
    async with endless.served(carrier) as at:
        call = at.opened(kind)
        waiting = begin(ended(call, kind))
        await soon(endless.began.wait())
        assert call.cancel()
        assert not call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(waiting)
        assert waiting.cancelling() == 0
        await soon(endless.ended.wait())
        with pytest.raises(asyncio.CancelledError):
            await soon(call if kind == "up" else call.read())


@pytest.mark.parametrize("leaving", ["cancel", "drop", "read again"])
async def test_a_stream_is_cancelled_between_two_messages(carrier, leaving):
    if leaving == "drop" and carrier.kind == "plain":
        return  # gRPC does not always do it
    closed = asyncio.Event()

    async def down(request, context):
        try:
            while True:
                yield message(bytes(10_000))
        finally:
            await asyncio.sleep(0)
            closed.set()

    async with served(carrier, down=down) as at:
        call = at.down(message())
        await soon(call.read())
        assert not closed.is_set()
        if leaving == "drop":
            del call
        else:
            call.cancel()
            if leaving == "read again":
                with pytest.raises(asyncio.CancelledError):
                    await soon(call.read())
        await soon(closed.wait())


async def test_a_stream_left_by_a_slow_consumer_is_cancelled(carrier):
    closed, reading = asyncio.Event(), asyncio.Event()

    async def down(request, context):
        try:
            while True:
                yield message(b"a")
        finally:
            closed.set()

    async def consume(call):
        try:
            async for _ in call:
                reading.set()
                await asyncio.Event().wait()
        finally:
            call.cancel()

    async with served(carrier, down=down) as at:
        consuming = asyncio.create_task(consume(at.down(message())))
        await soon(reading.wait())
        consuming.cancel()
        await soon(closed.wait())


async def test_cancelling_a_slow_delivery_cancels_the_call(carrier):
    closed = asyncio.Event()

    async def down(request, context):
        try:
            while True:
                yield message(b"a")
        finally:
            closed.set()

    async with served(carrier, down=down) as at:
        receiver = Received(asyncio.Event())
        delivery = begin(deliver(at.down(message()), receiver))
        await soon(receiver.has_some.wait())
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(delivery)
        await soon(closed.wait())
    assert receiver.values == [b"a"]


async def test_a_cancelled_writer_cancels_the_call(carrier, endless):
    async with endless.served(carrier) as at:
        call = at.both()
        written = 0

        async def write():
            nonlocal written
            while True:
                await call.write(message(bytes(10_000)))
                written += 1

        writing = asyncio.create_task(write())
        await soon(call.read())
        await soon(endless.began.wait())
        before = -1
        while before != written:  # until the queue is full, and a write waits
            before = written
            for _ in range(50):
                await asyncio.sleep(0.001)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await soon(endless.ended.wait())
        assert await soon(call.code()) is CODE.CANCELLED


async def test_a_failed_task_group_of_a_servicer_cancels_nobody(carrier):
    async def fail():
        raise ValueError

    async def unary(request, context):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        except* ValueError:
            pass
        return message(b"all the same")

    async with served(carrier, unary=unary) as at:

        async def wait():
            response = await at.unary(message())
            return response.value, asyncio.current_task().cancelling()

        assert await soon(asyncio.create_task(wait())) == (b"all the same", 0)


@pytest.mark.parametrize("kind", ["unary", "down"])
async def test_a_timeout_of_the_caller_is_the_callers(carrier, endless, kind):
    async with endless.served(carrier) as at:

        async def wait():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await ended(at.opened(kind), kind)
            return asyncio.current_task().cancelling()

        assert await soon(asyncio.create_task(wait())) == 0


async def test_a_timeout_of_the_servicer_is_its_own(carrier):
    async def unary(request, context):
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return message(b"late")

    async with served(carrier, unary=unary) as at:
        assert (await soon(at.unary(message()))).value == b"late"


async def test_a_servicer_that_is_cancelled_ends_the_call(inprocess):
    async def unary(request, context):
        raise asyncio.CancelledError

    async with served(inprocess, unary=unary) as at:
        assert (await outcome(at.unary(message())))[0] is CODE.CANCELLED
        assert asyncio.current_task().cancelling() == 0


async def test_nothing_is_sent_after_a_cancellation(inprocess):
    raised = []

    async def down(request, context):
        yield message()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await context.write(message())
            except grpc.aio.UsageError as error:
                raised.append(error)

    async with served(inprocess, down=down) as at:
        call = at.down(message())
        await soon(call.read())
        reading = begin(call.read())
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(reading)
    assert len(raised) == 1

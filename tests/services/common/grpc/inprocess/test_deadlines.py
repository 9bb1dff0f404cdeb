"""Calls that are late, or cut off by a server that stops: over both kinds of channel."""

import asyncio

import grpc
import pytest

from tests.services.common.grpc.inprocess.carriers import (
    KINDS,
    SOON_S,
    begin,
    echo,
    ended,
    message,
    outcome,
    served,
    soon,
)

CODE = grpc.StatusCode


async def begun(at, endless, kind):
    """Return a call that has reached its server in time, its timeout, and what is left of it."""
    left, timeout_s = 0.0, 0.15
    while left <= 0:  # on a busy machine the time may be over at once
        endless.began.clear()
        endless.ended.clear()
        endless.contexts.clear()
        timeout_s *= 2
        waiting = begin(ended(at.opened(kind, timeout=timeout_s), kind))
        arrives = asyncio.create_task(endless.began.wait())
        await asyncio.wait([arrives, waiting], return_when=asyncio.FIRST_COMPLETED)
        arrives.cancel()
        left = min([context.time_remaining() for context in endless.contexts], default=0)
        if left <= 0:
            await asyncio.gather(waiting, return_exceptions=True)
    return waiting, timeout_s, left


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_ends_at_its_deadline_on_both_sides(carrier, endless, kind):
    async with endless.served(carrier) as at:
        waiting, timeout_s, left = await soon(begun(at, endless, kind))
        assert left <= timeout_s + 0.01
        code, details = await outcome(waiting)
        assert code is CODE.DEADLINE_EXCEEDED
        assert "Deadline Exceeded" in details
        assert waiting.cancelling() == 0
        await soon(endless.ended.wait())


async def test_a_stream_ends_at_its_deadline_between_messages(carrier):
    closed = asyncio.Event()

    async def down(request, context):
        try:
            while True:
                yield message(bytes(10_000))
        finally:
            closed.set()

    async with served(carrier, down=down) as at:
        call = at.down(message(), timeout=0.3)
        try:
            await soon(call.read())
        except grpc.aio.AioRpcError:
            pass  # a busy machine
        else:
            await soon(closed.wait())

        async def read_on():
            while True:
                await call.read()

        assert (await outcome(read_on()))[0] is CODE.DEADLINE_EXCEEDED


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deadline_that_has_passed_ends_the_call(carrier, kind):
    async with served(carrier, unary=echo, down=echo, up=echo, both=echo) as at:
        call = ended(at.opened(kind, timeout=-1), kind)
        assert (await outcome(call))[0] is CODE.DEADLINE_EXCEEDED


async def test_a_call_in_time_keeps_its_response(carrier):
    async with served(carrier, unary=echo) as at:
        assert (await soon(at.unary(message(b"a"), timeout=SOON_S))).value == b"a"


@pytest.mark.parametrize("inner_s", [None, 0.5 * SOON_S, 2 * SOON_S])
async def test_no_call_of_a_call_has_a_later_deadline(inprocess, inner_s):
    left = []

    async def inner(request, context):
        left.append(context.time_remaining())
        return request

    async def outer(request, context):
        left.append(context.time_remaining())
        return await at.unary(request, timeout=inner_s)

    async def down(request, context):
        yield await outer(request, context)

    async with served(inprocess, unary=inner, down=down) as at:
        await soon(at.down(message(), timeout=SOON_S).read())
    assert 0 < left[0] <= SOON_S
    assert 0 < left[1] <= min(left[0], inner_s or left[0])


@pytest.mark.parametrize("inner_s", [None, 0.01, 0.011, 30])
async def test_nested_deadlines_end_the_outer_call_as_late(inprocess, inner_s):
    async def unary(request, context):
        if request.value:
            return await at.unary(message(), timeout=inner_s)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(20):  # slower than both deadlines
                try:
                    await asyncio.sleep(0.002)
                except asyncio.CancelledError:
                    pass

    async with served(inprocess, unary=unary) as at:
        waiting = begin(at.unary(message(b"outer"), timeout=0.011))
        code, _ = await outcome(waiting)
    assert code in (CODE.DEADLINE_EXCEEDED, CODE.UNKNOWN)
    assert waiting.cancelling() == 0


# Servers that stop.


async def test_a_server_that_stops_lets_running_calls_end(carrier):
    go_on, began = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        began.set()
        await go_on.wait()
        return message(b"done")

    async with served(carrier, unary=unary) as at:
        call = begin(at.unary(message()))
        await soon(began.wait())
        stopping = asyncio.create_task(at.server.stop(SOON_S))
        async with asyncio.timeout(SOON_S):
            while (await outcome(at.unary(message(), timeout=0.05)))[0] is not CODE.UNAVAILABLE:
                pass
        assert not call.done()
        go_on.set()
        assert (await soon(call)).value == b"done"
        await soon(stopping)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grace_s", [None, 0.01])
async def test_a_server_that_stops_cuts_calls_off(carrier, endless, kind, grace_s):
    async with endless.served(carrier) as at:
        waiting = begin(ended(at.opened(kind), kind))
        await soon(endless.began.wait())
        await soon(at.server.stop(grace_s))
        assert (await outcome(waiting))[0] in (CODE.UNAVAILABLE, CODE.CANCELLED)
        assert waiting.cancelling() == 0
        await soon(endless.ended.wait())


async def test_a_server_that_stops_ends_streams_that_pause(inprocess):
    closed = []

    async def down(request, context):
        try:
            while True:
                yield message()
        finally:
            await asyncio.sleep(0)
            closed.append(request)

    async with served(inprocess, down=down) as at:
        call = at.down(message())
        await soon(call.read())
        await soon(at.server.stop(None))
        assert len(closed) == 1
        assert (await outcome(call.read()))[0] is CODE.UNAVAILABLE


async def test_a_server_without_calls_stops_at_once(carrier):
    async with served(carrier, unary=echo) as at:
        await soon(at.unary(message()))
        await soon(at.server.stop(10 * SOON_S))

"""How calls end before their time, whoever carries them: cancelled, late, cut off."""

import asyncio

import grpc
import pytest

from tests.services.common.inprocess.carriers import (
    MIB,
    SOON_S,
    echo,
    echo_all,
    everything,
    outcome,
    served,
    soon,
)

CODE = grpc.StatusCode


class Endless:
    """A servicer that waits until it is cancelled."""

    def __init__(self):
        self.began, self.ended = asyncio.Event(), asyncio.Event()
        self.contexts = []

    async def unary(self, request, context):
        self.contexts.append(context)
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def down(self, request, context):
        yield b"a"
        await self.unary(request, context)

    async def up(self, requests, context):
        self.began.set()
        try:
            async for _ in requests:
                pass
        finally:
            self.ended.set()
        return b"all"

    async def both(self, requests, context):
        async for message in self.down(b"", context):
            yield message


@pytest.fixture
def endless():
    return Endless()


def serving(carrier, endless):
    return served(carrier, unary=endless.unary, down=endless.down, up=endless.up, both=endless.both)


def opened(at, kind):
    return getattr(at, kind)(b"") if kind in ("unary", "down") else getattr(at, kind)()


KINDS = ["unary", "down", "up", "both"]


# Cancellation.


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cancelled_call_ends_on_both_sides(carrier, endless, kind):
    async with serving(carrier, endless) as at:
        call = opened(at, kind)
        await soon(endless.began.wait())
        assert call.cancel()
        assert not call.cancel()
        await soon(endless.ended.wait())
        assert await soon(call.code()) is CODE.CANCELLED
        assert await call.details() == "Locally cancelled by application!"
        assert call.cancelled() and call.done()
        with pytest.raises(asyncio.CancelledError):
            await (call if kind in ("unary", "up") else call.read())


async def test_a_call_may_be_cancelled_before_it_begins(carrier):
    ran = []

    async def unary(request, context):
        ran.append(request)
        return b""

    async with served(carrier, unary=unary) as at:
        call = at.unary(b"never")
        assert call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await soon(call.code()) is CODE.CANCELLED
        await soon(at.unary(b"after"))
        assert ran == [b"after"]


@pytest.mark.parametrize("kind", ["unary", "up", "down", "write"])
async def test_whoever_stops_waiting_cancels_the_call(carrier, endless, kind):
    async with serving(carrier, endless) as at:
        call = opened(at, "both" if kind == "write" else kind)
        if kind == "down":
            assert await soon(call.read()) == b"a"

        written = 0

        async def wait():
            nonlocal written
            if kind == "write":
                while True:
                    await call.write(b"x" * 10_000)
                    written += 1
            await (call.read() if kind == "down" else call)

        waiting = asyncio.create_task(wait())
        await soon(endless.began.wait())
        before = -1
        while kind == "write" and before != written:
            # Nobody reads: it is over when the write waits, and only then can it be told of.
            before = written
            await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await soon(endless.ended.wait())
        assert await soon(call.code()) is CODE.CANCELLED


async def test_waiting_for_the_code_alone_cancels_nothing(carrier):
    go_on = asyncio.Event()

    async def unary(request, context):
        await go_on.wait()
        return b"done"

    async with served(carrier, unary=unary) as at:
        call = at.unary(b"")
        for known in (call.code(), call.details(), call.trailing_metadata()):
            waiting = asyncio.create_task(known)
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        go_on.set()
        assert await soon(call) == b"done"


async def test_a_failed_task_group_of_a_servicer_cancels_nobody(carrier):
    async def fail():
        raise ValueError

    async def unary(request, context):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
        except* ValueError:
            pass
        return b"all the same"

    async with served(carrier, unary=unary) as at:

        async def wait():
            return await at.unary(b""), asyncio.current_task().cancelling()

        assert await soon(asyncio.create_task(wait())) == (b"all the same", 0)


async def test_a_timeout_of_the_caller_is_one_to_the_caller(carrier, endless):
    async with serving(carrier, endless) as at:

        async def wait():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await at.unary(b"")
            return asyncio.current_task().cancelling()

        assert await soon(asyncio.create_task(wait())) == 0


async def test_a_call_cancelled_by_another_task_leaves_its_waiter(carrier, endless):
    async with serving(carrier, endless) as at:
        calls = []

        async def wait():
            calls.append(at.unary(b""))
            with pytest.raises(asyncio.CancelledError):
                await calls[0]
            await asyncio.sleep(0)
            return asyncio.current_task().cancelling()

        waiting = asyncio.create_task(wait())
        await soon(endless.began.wait())
        calls[0].cancel()
        assert await soon(waiting) == 0


async def test_a_timeout_of_the_servicers_own_is_not_its_callers(carrier):
    async def unary(request, context):
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return b"late"

    async with served(carrier, unary=unary) as at:
        assert await soon(at.unary(b"")) == b"late"


async def test_a_servicer_that_cancels_itself_ends_the_call(carrier):
    async def unary(request, context):
        await context.abort(CODE.CANCELLED, "enough")

    async with served(carrier, unary=unary) as at:
        assert await outcome(at.unary(b"")) == (CODE.CANCELLED, "enough")


async def test_an_abandoned_generator_is_closed(carrier):
    closed = asyncio.Event()

    async def down(request, context):
        try:
            while True:
                yield b"x" * 10_000
        finally:
            closed.set()

    async with served(carrier, down=down) as at:
        call = at.down(b"")
        await soon(call.read())
        call.cancel()
        await soon(closed.wait())


# Deadlines.


async def begun(at, endless, kind):
    """Return a call that has reached its server in time, its timeout, and what is left of it.

    What is left is what either side says.
    """
    make = getattr(at, kind)
    left, timeout_s = [0.0], 0.15
    while min(left) <= 0:  # on a busy machine the time may be over at once
        endless.began.clear()
        endless.ended.clear()
        endless.contexts.clear()
        timeout_s *= 2
        call = (
            make(b"", timeout=timeout_s) if kind in ("unary", "down") else make(timeout=timeout_s)
        )
        arrives = asyncio.create_task(endless.began.wait())
        ends = asyncio.create_task(call.code())
        await asyncio.wait([arrives, ends], return_when=asyncio.FIRST_COMPLETED)
        arrives.cancel()
        left = [one.time_remaining() for one in (call, *endless.contexts)]
    return call, timeout_s, left


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_ends_at_its_deadline_on_both_sides(carrier, endless, kind):
    async with serving(carrier, endless) as at:
        call, timeout_s, left = await soon(begun(at, endless, kind))
        assert max(left) <= timeout_s + 0.01
        await soon(endless.ended.wait())
        if kind in ("down", "both"):
            with pytest.raises(grpc.aio.AioRpcError) as late:
                await everything(call)
            assert late.value.code() is CODE.DEADLINE_EXCEEDED
        else:
            assert (await outcome(call))[0] is CODE.DEADLINE_EXCEEDED
        assert "Deadline Exceeded" in await call.details()
        assert not call.cancelled()


async def test_a_deadline_that_has_passed_already_ends_the_call(carrier):
    async with served(carrier, unary=echo) as at:
        assert (await outcome(at.unary(b"", timeout=-1)))[0] is CODE.DEADLINE_EXCEEDED


async def test_a_call_in_time_is_no_matter_of_its_deadline(carrier):
    async with served(carrier, unary=echo, both=echo_all) as at:
        assert await soon(at.unary(b"a", timeout=SOON_S)) == b"a"
        assert await everything(at.both([b"a"], timeout=SOON_S)) == [b"a"]


# Servers that stop.


async def test_a_server_that_stops_lets_calls_in_flight_end(carrier):
    go_on, began = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        began.set()
        await go_on.wait()
        return b"done"

    async with served(carrier, unary=unary) as at:
        call = at.unary(b"")
        await soon(began.wait())
        stopping = asyncio.create_task(at.server.stop(SOON_S))
        async with asyncio.timeout(SOON_S):
            while (await outcome(at.unary(b"", timeout=0.05)))[0] is not CODE.UNAVAILABLE:
                pass
        assert not call.done()
        go_on.set()
        assert await soon(call) == b"done"
        await soon(stopping)


async def test_a_server_that_stops_cuts_awaited_calls_off(carrier, endless):
    async with serving(carrier, endless) as at:

        async def wait():
            return await outcome(at.unary(b""))

        waiting = asyncio.create_task(wait())
        await soon(endless.began.wait())
        await soon(at.server.stop(None))
        assert (await soon(waiting))[0] in (CODE.UNAVAILABLE, CODE.CANCELLED)
        await soon(endless.ended.wait())


async def test_a_server_without_calls_stops_at_once(carrier):
    async with served(carrier, unary=echo) as at:
        await soon(at.unary(b""))
        await soon(at.server.stop(10 * SOON_S))


# Closing the channel.


async def test_closing_the_channel_cancels_its_calls(carrier, endless):
    async with serving(carrier, endless) as at:
        call = at.unary(b"")
        await soon(endless.began.wait())
        await at.channel.close()
        await at.channel.close()
        with pytest.raises(asyncio.CancelledError):
            await call
        await soon(endless.ended.wait())
        with pytest.raises(grpc.aio.UsageError):
            at.unary(b"")


async def test_closing_may_wait_for_calls_in_flight(carrier):
    go_on, began = asyncio.Event(), asyncio.Event()

    async def unary(request, context):
        began.set()
        await go_on.wait()
        return b"done"

    async with served(carrier, unary=unary) as at:
        call = at.unary(b"")
        await soon(began.wait())
        closing = asyncio.create_task(at.channel.close(SOON_S))
        await asyncio.sleep(0)
        go_on.set()
        assert await soon(call) == b"done"
        await soon(closing)


# Readers and writers of unequal speed.


async def test_a_reader_that_stops_stops_the_servicer_and_nobody_else(carrier):
    sent = []

    async def down(request, context):
        for number in range(10_000):
            yield number.to_bytes(4, "big") * 4096
            sent.append(number)

    async with served(carrier, down=down, unary=echo) as at:
        slow = at.down(b"")
        await soon(slow.read())
        before = -1
        while before != len(sent):
            before = len(sent)
            for _ in range(50):
                assert await soon(at.unary(b"x")) == b"x"
        assert len(sent) * 16_384 < 8 * MIB
        number = 1
        while number < 2_000:
            assert await soon(slow.read()) == number.to_bytes(4, "big") * 4096
            number += 1
        slow.cancel()


async def test_a_servicer_that_stops_reading_stops_its_writer_only(carrier):
    got, go_on = [], asyncio.Event()

    async def up(requests, context):
        await go_on.wait()
        async for request in requests:
            got.append(len(request))
        return b""

    async with served(carrier, up=up, unary=echo) as at:
        call = at.up()
        written = []

        async def write():
            for number in range(2_000):
                await call.write(b"x" * 16_384)
                written.append(number)
            await call.done_writing()

        writing = asyncio.create_task(write())
        before = -1
        while before != len(written):
            before = len(written)
            for _ in range(50):
                assert await soon(at.unary(b"x")) == b"x"
        assert len(written) * 16_384 < 8 * MIB
        go_on.set()
        await soon(writing)
        assert await soon(call) == b""
        assert len(got) == 2_000

"""Streams of both directions, and their speed: over a plain channel and within the process."""

import asyncio

import grpc
import pytest

from services.common.grpc.inprocess.response_stream import deliver
from tests.services.common.grpc.inprocess.carriers import (
    BYTES,
    MIB,
    READERS,
    Received,
    begin,
    echo,
    echo_all,
    everything,
    message,
    outcome,
    own,
    served,
    soon,
)

CODE = grpc.StatusCode


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
async def test_responses_arrive_in_order(carrier, reader):
    async def down(request, context):
        for number in range(1000):
            yield message(b"%d" % number)

    async with served(carrier, down=down) as at:
        call = at.down(message())
        assert await reader(call) == [b"%d" % number for number in range(1000)]
        if reader is everything:
            assert await call.read() is grpc.aio.EOF
        assert not call.cancel()


async def test_a_servicer_may_write_instead_of_yielding(carrier):
    async def down(request, context):
        await context.write(request)
        await context.write(message(b"end"))

    async with served(carrier, down=down) as at:
        assert [response.value async for response in at.down(message(b"a"))] == [b"a", b"end"]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
async def test_a_generator_may_send_further_responses(inprocess, reader):
    async def push(responses, context):
        await context.write_all(responses)

    async def responses(request):
        send = yield message(b"0")
        while send is None:
            send = yield None
        if send(message(b"1")):
            yield None
        yield message(b"2")

    async def down(request, context):
        await push(responses(request), context)

    async with served(inprocess, down=down) as at:
        assert await reader(at.down(message())) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("at_what", ["receive", "drain"])
async def test_the_failure_of_a_receiver_ends_the_call(carrier, at_what):
    left = asyncio.Event()

    class Failing(Received):
        def receive(self, received):
            super().receive(received)
            if at_what == "receive" and len(self.values) == 2:
                raise ConnectionError
            return at_what == "drain"

        async def drain(self):
            raise ConnectionError

    async def down(request, context):
        try:
            while True:
                yield message(b"a")
                await asyncio.sleep(0)
        finally:
            left.set()

    async with served(carrier, down=down) as at:
        receiver = Failing()
        with pytest.raises(ConnectionError):
            await soon(deliver(at.down(message()), receiver))
        await soon(left.wait())
    assert len(receiver.values) == (2 if at_what == "receive" else 1)


async def collect(requests, context):
    return message(b",".join([request.value async for request in requests]))


async def collect_by_read(requests, context):
    values = []
    while (request := await context.read()) is not grpc.aio.EOF:
        values.append(request.value)
    return message(b",".join(values))


@pytest.mark.parametrize("servicer", [collect, collect_by_read])
async def test_requests_arrive_in_order_and_end(carrier, servicer):
    sent = [b"%d" % number for number in range(100)]
    async with served(carrier, up=servicer) as at:
        call = at.up()
        for one in sent:
            await soon(call.write(message(one)))
        await call.done_writing()
        await call.done_writing()
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(message(b"late"))
        assert (await soon(call)).value == b",".join(sent)
        assert await call.code() is CODE.OK
        assert await call.details() == ""
        assert call.done() and not call.cancelled() and not call.cancel()


async def test_both_directions_take_turns_until_half_closed(carrier):
    async with served(carrier, both=echo_all) as at:
        call = at.both()
        for number in range(20):
            await soon(call.write(message(b"%d" % number)))
            assert (await soon(call.read())).value == b"%d" % number
        await call.done_writing()
        assert await soon(call.read()) is grpc.aio.EOF
        assert await call.code() is CODE.OK


async def test_a_servicer_may_respond_before_the_requests_end(carrier):
    async def up(requests, context):
        async for request in requests:
            return request

    async with served(carrier, up=up) as at:
        call = at.up()
        await soon(call.write(message(b"first")))
        assert (await soon(call)).value == b"first"
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(message(b"more"))
        await call.done_writing()


async def test_callbacks_are_called_at_the_end(carrier):
    called = []
    async with served(carrier, up=collect) as at:
        call = at.up()
        call.add_done_callback(called.append)
        await call.done_writing()
        await soon(call)
        assert called == [call]
        call.add_done_callback(called.append)
        assert called == [call, call]


async def test_a_refused_writer_sees_the_status(carrier):
    async def up(requests, context):
        async for _ in requests:
            await context.abort(CODE.RESOURCE_EXHAUSTED, "full", (BYTES,))

    seen = []

    def remember(call):
        for coroutine in (call.code(), call.details(), call.trailing_metadata()):
            with pytest.raises(StopIteration) as done:
                coroutine.send(None)
            seen.append(done.value.value)

    async with served(carrier, up=up) as at:
        call = at.up()
        call.add_done_callback(remember)
        with pytest.raises((asyncio.InvalidStateError, grpc.aio.AioRpcError)):
            while True:
                await soon(call.write(message(bytes(10_000))))
    if carrier.kind == "plain" and seen[0] is CODE.INTERNAL:
        return  # gRPC may replace the status by an error of its own; a process does not.
    assert seen[:2] == [CODE.RESOURCE_EXHAUSTED, "full"]
    assert own(seen[2]) == [BYTES]


# Readers and writers of unequal speed.


async def settled(at, count):
    """Wait until the length of a list no longer grows while other calls are served."""
    before = -1
    while before != len(count):
        before = len(count)
        for _ in range(50):
            assert (await soon(at.unary(message(b"x")))).value == b"x"
            await asyncio.sleep(0)  # a call within the process runs without a pause


@pytest.mark.parametrize("kind", ["down", "both"])
async def test_a_slow_reader_holds_the_servicer_only(carrier, kind):
    sent = []

    async def down(request, context):
        for number in range(10_000):
            yield message(number.to_bytes(4, "big") * 4096)
            sent.append(number)

    async with served(carrier, down=down, both=down, unary=echo) as at:
        call = at.opened(kind)
        await soon(call.read())
        await settled(at, sent)
        assert len(sent) * 16_384 < 8 * MIB
        for number in range(1, 2_000):
            assert (await soon(call.read())).value == number.to_bytes(4, "big") * 4096
        call.cancel()


async def test_a_slow_receiver_holds_the_servicer_only(carrier):
    sent = []

    async def down(request, context):
        for number in range(100):
            sent.append(number)
            yield message(bytes(1 << 19))

    async with served(carrier, down=down, unary=echo) as at:
        receiver = Received(asyncio.Event())
        delivery = begin(deliver(at.down(message()), receiver))
        await soon(receiver.has_some.wait())
        await settled(at, sent)
        assert len(sent) < 100 and len(receiver.values) == 1
        receiver.allowed.set()
        await soon(delivery)
    assert len(receiver.values) == 100


async def test_a_slow_servicer_holds_its_writer_only(carrier):
    received, go_on = [], asyncio.Event()

    async def up(requests, context):
        await go_on.wait()
        async for request in requests:
            received.append(len(request.value))
        return message()

    async with served(carrier, up=up, unary=echo) as at:
        call = at.up()
        written = []

        async def write():
            for number in range(2_000):
                await call.write(message(bytes(16_384)))
                written.append(number)
            await call.done_writing()

        writing = asyncio.create_task(write())
        await settled(at, written)
        assert len(written) * 16_384 < 8 * MIB
        go_on.set()
        await soon(writing)
        await soon(call)
        assert len(received) == 2_000


async def test_empty_messages_fill_a_queue_too(inprocess):
    async def up(requests, context):
        await asyncio.Event().wait()

    async with served(inprocess, up=up, unary=echo) as at:
        call = at.up()
        written = []

        async def write():
            while True:
                await call.write(message())
                written.append(call)
                assert len(written) < 10_000

        writing = asyncio.create_task(write())
        await settled(at, written)
        assert written
        writing.cancel()
        assert await outcome_of(writing) is asyncio.CancelledError


async def outcome_of(task):
    (result,) = await asyncio.gather(task, return_exceptions=True)
    return type(result)


async def test_a_response_that_is_too_large_ends_a_queued_call(carrier):
    async def both(requests, context):
        yield message(b"a")
        yield message(bytes(MIB))

    async with served(carrier, both=both) as at:
        call = at.both()
        assert (await soon(call.read())).value == b"a"
        assert (await outcome(call.read()))[0] is CODE.RESOURCE_EXHAUSTED

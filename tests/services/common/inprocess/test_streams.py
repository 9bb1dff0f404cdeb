"""Streams and large messages, whoever carries them."""

import asyncio

import grpc
import pytest

from tests.services.common.inprocess.carriers import (
    BYTES,
    CARRIERS,
    MIB,
    Carrier,
    echo,
    echo_all,
    everything,
    outcome,
    own,
    served,
    soon,
)

CODE = grpc.StatusCode


@pytest.mark.parametrize("way", ["iterate", "read"])
async def test_responses_come_in_order(carrier, way):
    async def down(request, context):
        for number in range(1000):
            yield b"%d" % number

    async with served(carrier, down=down) as at:
        call = at.down(b"")
        if way == "iterate":
            got = [message async for message in call]
        else:
            got = await everything(call)
            assert await call.read() is grpc.aio.EOF
        assert got == [b"%d" % number for number in range(1000)]
        assert await soon(call.code()) is CODE.OK


async def test_what_came_before_a_failure_arrives(carrier):
    async def down(request, context):
        yield b"a"
        yield b"b"
        await context.abort(CODE.DATA_LOSS, "torn", (BYTES,))

    async with served(carrier, down=down) as at:
        got = []
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            async for message in at.down(b""):
                got.append(message)
        assert got == [b"a", b"b"]
        assert failed.value.code() is CODE.DATA_LOSS
        assert own(failed.value.trailing_metadata()) == [BYTES]


async def test_the_status_comes_after_the_last_message(carrier):
    async def down(request, context):
        for _ in range(3):
            yield b"a"
        await context.abort(CODE.DATA_LOSS, "torn")

    async with served(carrier, down=down, unary=echo) as at:
        call = at.down(b"")
        told = asyncio.create_task(call.code())
        for _ in range(20):
            await soon(at.unary(b""))
        assert not call.done() and not told.done()
        for _ in range(3):
            assert await soon(call.read()) == b"a"
        assert await soon(told) is CODE.DATA_LOSS


async def collect(requests, context):
    return b",".join([request async for request in requests])


async def collect_by_read(requests, context):
    got = []
    while (request := await context.read()) is not grpc.aio.EOF:
        got.append(request)
    return b",".join(got)


@pytest.mark.parametrize("servicer", [collect, collect_by_read])
@pytest.mark.parametrize("way", ["write", "iterator", "async iterator"])
async def test_requests_come_in_order_and_end(carrier, servicer, way):
    async def generated():
        for number in range(100):
            yield b"%d" % number

    sent = [b"%d" % number for number in range(100)]
    async with served(carrier, up=servicer) as at:
        if way == "write":
            call = at.up()
            for one in sent:
                await soon(call.write(one))
            await call.done_writing()
            await call.done_writing()
        else:
            call = at.up(sent if way == "iterator" else generated())
        assert await soon(call) == b",".join(sent)


async def test_both_ways_go_on_by_turns_until_half_closed(carrier):
    async with served(carrier, both=echo_all) as at:
        call = at.both()
        for number in range(20):
            await soon(call.write(b"%d" % number))
            assert await soon(call.read()) == b"%d" % number
        await call.done_writing()
        assert await soon(call.read()) is grpc.aio.EOF
        assert await call.code() is CODE.OK


async def test_a_servicer_may_write_instead_of_yielding(carrier):
    async def both(requests, context):
        while (request := await context.read()) is not grpc.aio.EOF:
            await context.write(request)
        await context.write(b"end")

    async with served(carrier, both=both) as at:
        call = at.both([b"a", b"b"])
        assert await everything(call) == [b"a", b"b", b"end"]


async def test_a_servicer_may_answer_before_the_requests_end(carrier):
    async def up(requests, context):
        async for request in requests:
            return request

    async with served(carrier, up=up) as at:
        call = at.up()
        await soon(call.write(b"first"))
        assert await soon(call) == b"first"
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(b"more")
        await call.done_writing()


async def test_whoever_writes_to_a_call_that_was_refused_learns_why(carrier):
    async def up(requests, context):
        async for _ in requests:
            await context.abort(CODE.RESOURCE_EXHAUSTED, "full", (BYTES,))

    said = []

    async with served(carrier, up=up) as at:
        call = at.up()

        def remember(ended):
            for known in (ended.code(), ended.details(), ended.trailing_metadata()):
                with pytest.raises(StopIteration) as done:
                    known.send(None)
                said.append(done.value.value)

        call.add_done_callback(remember)
        with pytest.raises((asyncio.InvalidStateError, grpc.aio.AioRpcError)):
            while True:
                await soon(call.write(b"x" * 10_000))
    if carrier.kind == "plain" and said[0] is CODE.INTERNAL:
        return  # gRPC may put an error of its own over what the servicer said; a process does not.
    assert said[:2] == [CODE.RESOURCE_EXHAUSTED, "full"]
    assert own(said[2]) == [BYTES]


async def test_nothing_is_written_after_half_close(carrier):
    async with served(carrier, up=collect) as at:
        call = at.up()
        await call.done_writing()
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(b"late")
        assert await soon(call) == b""


async def test_iterating_and_reading_do_not_mix(carrier):
    async with served(carrier, both=echo_all) as at:
        call = at.both([b"a"])
        with pytest.raises(grpc.aio.UsageError):
            await call.write(b"b")
        with pytest.raises(grpc.aio.UsageError):
            await call.done_writing()
        assert await soon(call.read()) == b"a"
        with pytest.raises(grpc.aio.UsageError):
            aiter(call)


async def test_requests_that_cannot_be_made_cancel_the_call(carrier):
    def broken():
        yield b"a"
        raise ValueError("odd")

    async with served(carrier, up=collect) as at:
        with pytest.raises(asyncio.CancelledError):
            await soon(at.up(broken()))


# Large messages.


@pytest.mark.parametrize("kind", CARRIERS)
async def test_a_message_of_many_megabytes_goes_both_ways(kind):
    carrier = Carrier(kind, max_message_bytes=21 * MIB)
    content = bytes(range(256)) * (20 * MIB // 256)
    async with served(carrier, unary=echo, both=echo_all) as at:
        assert await soon(at.unary(content)) == content
        assert await everything(at.both([content, b"small", content])) == [
            content,
            b"small",
            content,
        ]


async def test_the_largest_message_passes_and_a_larger_one_does_not(carrier):
    async def unary(request, context):
        return b"x" * int(request)

    async with served(carrier, unary=unary, up=collect) as at:
        assert len(await soon(at.unary(b"%d" % MIB))) == MIB
        code, details = await outcome(at.unary(b"%d" % (MIB + 1)))
        assert code is CODE.RESOURCE_EXHAUSTED
        assert "larger than max" in details
        assert await soon(at.up([b"x" * MIB])) == b"x" * MIB
        code, details = await outcome(at.up([b"x" * (MIB + 1)]))
        assert code is CODE.RESOURCE_EXHAUSTED
        assert "larger than max" in details
        assert await soon(at.unary(b"1")) == b"x"

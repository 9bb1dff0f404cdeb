"""Calls that fail: the same tests over a plain channel and within the process."""

import grpc
import pytest

from services.common.grpc.inprocess.response_stream import deliver
from tests.services.common.grpc.inprocess.carriers import (
    BYTES,
    MIB,
    TEXT,
    Carrier,
    Received,
    echo,
    ended,
    everything,
    message,
    methods,
    outcome,
    own,
    served,
    soon,
)

CODE = grpc.StatusCode
KINDS = ["unary", "down", "up", "both"]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_abort_arrives_whole(carrier, kind):
    async def abort(request, context):
        await context.abort(CODE.FAILED_PRECONDITION, "nicht für „Ada“\n%", (TEXT, BYTES))

    async def abort_stream(request, context):
        yield message()
        await abort(request, context)

    behaviors = {"unary": abort, "up": abort, "down": abort_stream, "both": abort_stream}
    async with served(carrier, **behaviors) as at:
        call = at.opened(kind)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ended(call, kind)
    error = refused.value
    assert (error.code(), error.details()) == (CODE.FAILED_PRECONDITION, "nicht für „Ada“\n%")
    assert own(error.trailing_metadata()) == [TEXT, BYTES]
    assert own(error.initial_metadata()) == []


async def test_an_abort_uses_what_was_set_before(carrier):
    async def unary(request, context):
        context.set_trailing_metadata((TEXT,))
        context.set_details("why")
        await context.abort(CODE.NOT_FOUND)

    async with served(carrier, unary=unary) as at:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await soon(at.unary(message()))
    assert refused.value.details() == "why"
    assert own(refused.value.trailing_metadata()) == [TEXT]


async def test_an_abort_that_the_servicer_swallows_counts(carrier):
    async def unary(request, context):
        try:
            await context.abort(CODE.NOT_FOUND, "no")
        except grpc.aio.AbortError:
            return message(b"yes")

    async with served(carrier, unary=unary) as at:
        assert await outcome(at.unary(message())) == (CODE.NOT_FOUND, "no")


async def test_nothing_is_written_after_an_abort(carrier):
    raised = []

    async def down(request, context):
        yield message(b"a")
        try:
            await context.abort(CODE.NOT_FOUND, "no")
        except grpc.aio.AbortError as error:
            try:
                await context.write(message(b"b"))
            except grpc.aio.AbortError as again:
                raised.append(again is error)
            raise

    async with served(carrier, down=down) as at:
        call = at.down(message())
        assert (await soon(call.read())).value == b"a"
        assert await outcome(call.read()) == (CODE.NOT_FOUND, "no")
        assert await outcome(call.read()) == (CODE.NOT_FOUND, "no")
    assert raised == [True]


async def test_a_code_that_is_set_replaces_the_response(carrier):
    async def unary(request, context):
        context.set_code(CODE.OUT_OF_RANGE)
        context.set_details("behind")
        return message(b"ignored")

    async def down(request, context):
        yield message(b"a")
        context.set_code(CODE.OUT_OF_RANGE)
        context.set_details("behind")

    async with served(carrier, unary=unary, down=down) as at:
        assert await outcome(at.unary(message())) == (CODE.OUT_OF_RANGE, "behind")
        call = at.down(message())
        assert (await soon(call.read())).value == b"a"
        assert await outcome(call.read()) == (CODE.OUT_OF_RANGE, "behind")


async def test_an_exception_is_unknown_and_logged(carrier, caplog):
    async def unary(request, context):
        raise ValueError("odd")

    async with served(carrier, unary=unary) as at:
        code, details = await outcome(at.unary(message()))
    assert (code, details) == (CODE.UNKNOWN, "Unexpected <class 'ValueError'>: odd")
    assert "odd" in caplog.text


async def test_an_exception_keeps_a_code_that_was_set(carrier):
    async def unary(request, context):
        context.set_code(CODE.DATA_LOSS)
        raise ValueError("odd")

    async with served(carrier, unary=unary) as at:
        assert (await outcome(at.unary(message())))[0] is CODE.DATA_LOSS


async def iterate(call, receiver):
    async for response in call:
        receiver.receive(response)


@pytest.mark.parametrize("reader", [iterate, deliver])
async def test_messages_before_a_failure_arrive(carrier, reader):
    async def down(request, context):
        yield message(b"a")
        yield message(b"b")
        await context.abort(CODE.DATA_LOSS, "torn", (BYTES,))

    async with served(carrier, down=down) as at:
        receiver = Received()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await soon(reader(at.down(message()), receiver))
    assert receiver.values == [b"a", b"b"]
    assert failed.value.code() is CODE.DATA_LOSS
    assert own(failed.value.trailing_metadata()) == [BYTES]


async def test_an_unknown_method_is_unimplemented(carrier):
    async with served(carrier, unary=echo) as at:
        for kind in ("down", "up", "both"):
            status = await outcome(ended(at.opened(kind), kind))
            assert status == (CODE.UNIMPLEMENTED, "Method not found!"), kind


async def test_calls_before_the_start_are_unavailable(inprocess):
    server = inprocess.server(methods(unary=echo, down=echo, up=echo))
    async with served(inprocess) as at:
        at.channel._server = server
        for kind in KINDS:
            assert (await outcome(ended(at.opened(kind), kind)))[0] is CODE.UNAVAILABLE, kind


class Refusing(grpc.aio.ServerInterceptor):
    """Refuses all calls before their messages are read, as for a wrong key."""

    async def intercept_service(self, continuation, handler_call_details):
        handler = await continuation(handler_call_details)

        async def refuse(_, context):
            await context.abort(CODE.UNAUTHENTICATED, "no key", (BYTES,))

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(refuse)
        return grpc.stream_unary_rpc_method_handler(refuse)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_interceptor_may_refuse_every_kind(carrier, kind):
    behaviors = {"unary": echo, "down": echo, "up": echo, "both": echo}
    async with served(carrier, [Refusing()], **behaviors) as at:
        assert await outcome(ended(at.opened(kind), kind)) == (CODE.UNAUTHENTICATED, "no key")


# The maximum size of messages.


async def test_the_largest_message_passes_and_a_larger_one_does_not(carrier):
    overhead = message(bytes(MIB)).ByteSize() - MIB
    largest = MIB - overhead

    async def unary(request, context):
        return message(bytes(int(request.value or b"0")))

    async def down(request, context):
        yield await unary(request, context)

    async def up(requests, context):
        return message(b"%d" % sum([len(request.value) async for request in requests]))

    async def sent_up(size):
        call = at.up()
        await call.write(message(bytes(size)))
        await call.done_writing()
        return int((await call).value)

    async with served(carrier, unary=unary, down=down, up=up) as at:
        assert len((await soon(at.unary(message(b"%d" % largest)))).value) == largest
        assert list(map(len, await everything(at.down(message(b"%d" % largest))))) == [largest]
        assert await soon(sent_up(largest)) == largest
        for too_large in (
            at.unary(message(b"%d" % (largest + 1))),
            at.unary(message(bytes(largest + 1))),
            at.down(message(b"%d" % (largest + 1))).read(),
            at.down(message(bytes(largest + 1))).read(),
            sent_up(largest + 1),
        ):
            code, details = await outcome(too_large)
            if carrier.kind == "plain" and code is CODE.INTERNAL:
                continue  # gRPC sends no status after a response that it cannot send
            assert code is CODE.RESOURCE_EXHAUSTED
            assert "larger than max" in details
        assert (await soon(at.unary(message(b"1")))).value == b"\0"


@pytest.mark.parametrize("kind", ["plain", "inprocess"])
async def test_a_message_of_many_megabytes_goes_both_ways(kind):
    carrier = Carrier(kind, max_message_bytes=21 * MIB)
    content = bytes(range(256)) * (20 * MIB // 256)
    async with served(carrier, unary=echo) as at:
        assert (await soon(at.unary(message(content)))).value == content

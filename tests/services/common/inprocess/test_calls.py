"""What a call is, whoever carries it: the same tests over a plain channel and in the process."""

import asyncio
import gc
from contextvars import ContextVar

import grpc
import pytest
from google.protobuf.wrappers_pb2 import Int64Value

from tests.services.common.inprocess.carriers import (
    BYTES,
    TEXT,
    echo,
    everything,
    outcome,
    own,
    served,
    soon,
)

CODE = grpc.StatusCode


# Requests, responses and metadata.


async def test_a_request_gets_its_response(carrier):
    async with served(carrier, unary=echo) as at:
        call = at.unary(b"hello")
        assert await soon(call) == b"hello"
        assert await call.code() is CODE.OK
        assert await call.details() == ""
        assert call.done() and not call.cancelled()
        assert await soon(call) == b"hello"


async def test_an_empty_message_is_a_message(carrier):
    async def down(request, context):
        yield b""
        yield b""

    async with served(carrier, unary=echo, down=down) as at:
        assert await soon(at.unary(b"")) == b""
        assert await everything(at.down(b"")) == [b"", b""]


async def test_messages_reach_caller_and_servicer_as_messages(carrier):
    async def double(request, context):
        return Int64Value(value=request.value * 2)

    async def count(request, context):
        for number in range(request.value):
            yield Int64Value(value=number)

    async def total(requests, context):
        return Int64Value(value=sum([request.value async for request in requests]))

    parse, serialize = Int64Value.FromString, Int64Value.SerializeToString
    pair = {"request_deserializer": parse, "response_serializer": serialize}
    there = {"request_serializer": serialize, "response_deserializer": parse}
    methods = {
        "Double": grpc.unary_unary_rpc_method_handler(double, **pair),
        "Count": grpc.unary_stream_rpc_method_handler(count, **pair),
        "Total": grpc.stream_unary_rpc_method_handler(total, **pair),
    }
    server = carrier.server(methods)
    async with await carrier.start(server) as channel:
        doubled = await soon(channel.unary_unary("/test.T/Double", **there)(Int64Value(value=21)))
        assert doubled.value == 42
        counted = channel.unary_stream("/test.T/Count", **there)(Int64Value(value=3))
        assert [number.value async for number in counted] == [0, 1, 2]
        numbers = [Int64Value(value=number) for number in (1, 2, 3)]
        assert (await soon(channel.stream_unary("/test.T/Total", **there)(numbers))).value == 6
    await server.stop(None)


async def test_a_request_may_be_serialized_already(carrier):
    async def double(request, context):
        return Int64Value(value=request.value * 2)

    handler = grpc.unary_unary_rpc_method_handler(
        double, Int64Value.FromString, Int64Value.SerializeToString
    )
    server = carrier.server({"Double": handler})
    async with await carrier.start(server) as channel:
        call = channel.unary_unary("/test.T/Double", None, Int64Value.FromString)
        assert (await soon(call(Int64Value(value=21).SerializeToString()))).value == 42
    await server.stop(None)


async def test_metadata_goes_both_ways_text_and_bytes(carrier):
    seen = []

    async def unary(request, context):
        seen.extend((entry.key, entry.value) for entry in own(context.invocation_metadata()))
        await context.send_initial_metadata((TEXT, BYTES))
        context.set_trailing_metadata((("x-end", "1"), ("x-end", "2"), BYTES))
        return request

    async with served(carrier, unary=unary) as at:
        sent = (TEXT, BYTES, ("x-text", "again"))
        call = at.unary(b"", metadata=sent)
        assert own(await soon(call.initial_metadata())) == [TEXT, BYTES]
        await soon(call)
        assert own(await call.trailing_metadata()) == [("x-end", "1"), ("x-end", "2"), BYTES]
    assert sorted(map(str, seen)) == sorted(map(str, sent))


async def test_metadata_may_be_given_as_an_object(carrier):
    async def unary(request, context):
        return dict(own(context.invocation_metadata()))["x-text"].encode()

    async with served(carrier, unary=unary) as at:
        assert await soon(at.unary(b"", metadata=grpc.aio.Metadata(TEXT))) == b"a=1"


async def test_metadata_that_is_too_large_is_refused(carrier):
    async with served(carrier, unary=echo) as at:
        code, _ = await outcome(at.unary(b"", metadata=(("x-text", "a" * 20_000),)))
    assert code is CODE.RESOURCE_EXHAUSTED


async def test_initial_metadata_comes_before_the_first_message(carrier):
    go_on = asyncio.Event()

    async def down(request, context):
        await context.send_initial_metadata((TEXT,))
        await go_on.wait()
        yield b"a"

    async with served(carrier, down=down) as at:
        call = at.down(b"")
        assert own(await soon(call.initial_metadata())) == [TEXT]
        go_on.set()
        assert await everything(call) == [b"a"]


async def test_initial_metadata_is_empty_when_the_servicer_sends_none(carrier):
    async with served(carrier, unary=echo, down=echo_nothing) as at:
        assert own(await soon(at.unary(b"").initial_metadata())) == []
        assert own(await soon(at.down(b"").initial_metadata())) == []


async def echo_nothing(request, context):
    return
    yield


async def test_initial_metadata_is_sent_once(carrier):
    async def unary(request, context):
        await context.send_initial_metadata(())
        with pytest.raises(grpc.aio.UsageError):
            await context.send_initial_metadata(())
        return b"ok"

    async with served(carrier, unary=unary) as at:
        assert await soon(at.unary(b"")) == b"ok"


async def test_many_calls_at_once_get_each_its_own(carrier):
    async def unary(request, context):
        await asyncio.sleep(0)
        return request

    async with served(carrier, unary=unary) as at:
        unary_call = at.unary
        sent = [b"%d" % number for number in range(300)]
        assert await soon(asyncio.gather(*[unary_call(one) for one in sent])) == sent


async def test_each_call_has_its_own_context(carrier):
    number: ContextVar[bytes] = ContextVar("number", default=b"none")

    async def unary(request, context):
        before = number.get()
        number.set(request)
        await asyncio.sleep(0)
        return before + number.get()

    async with served(carrier, unary=unary) as at:
        unary_call = at.unary
        answers = await soon(asyncio.gather(*[unary_call(b"%d" % n) for n in range(20)]))
    assert answers == [b"none%d" % n for n in range(20)]


async def test_an_awaited_call_takes_no_task_of_its_own(inprocess):
    tasks = []

    async def unary(request, context):
        await asyncio.sleep(0)
        tasks.append(asyncio.current_task())
        return request

    async with served(inprocess, unary=unary) as at:
        await at.unary(b"")
        assert tasks == [asyncio.current_task()]


async def test_a_call_that_nobody_awaits_still_runs(carrier):
    ran = asyncio.Event()

    async def unary(request, context):
        ran.set()
        return b""

    async with served(carrier, unary=unary) as at:
        at.unary(b"")
        gc.collect()
        await soon(ran.wait())


# Interceptors.


class Note(grpc.aio.ServerInterceptor):
    """Notes what it is told."""

    def __init__(self, name, seen):
        self.name, self.seen = name, seen

    async def intercept_service(self, continuation, handler_call_details):
        self.seen.append((self.name, handler_call_details.method))
        self.seen.extend(own(handler_call_details.invocation_metadata))
        handler = await continuation(handler_call_details)
        self.seen.append(self.name)
        return handler


async def test_interceptors_stand_around_each_call_in_order(carrier):
    seen = []
    noting = [Note("outer", seen), Note("inner", seen)]
    async with served(carrier, noting, unary=echo) as at:
        await soon(at.unary(b"", metadata=(TEXT,)))
    assert seen == [
        ("outer", "/test.T/Unary"),
        TEXT,
        ("inner", "/test.T/Unary"),
        TEXT,
        "inner",
        "outer",
    ]


async def test_an_interceptor_may_put_another_handler_in_place(carrier):
    class Other(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation, handler_call_details):
            async def other(request, context):
                return b"other"

            return grpc.unary_unary_rpc_method_handler(other)

    async with served(carrier, [Other()], unary=echo) as at:
        assert await soon(at.unary(b"")) == b"other"


async def test_one_request_may_be_served_by_a_handler_of_many(carrier):
    async def up(requests, context):
        got = [request async for request in requests]
        assert await context.read() is grpc.aio.EOF
        return b",".join(got)

    async def refuse(requests, context):
        await context.abort(CODE.PERMISSION_DENIED, "no")

    methods = {
        "Unary": grpc.stream_unary_rpc_method_handler(up),
        "Down": grpc.stream_stream_rpc_method_handler(refuse),
    }
    server = carrier.server(methods)
    async with await carrier.start(server) as channel:
        assert await soon(channel.unary_unary("/test.T/Unary")(b"one")) == b"one"
        refused = channel.unary_stream("/test.T/Down")(b"one")
        assert await soon(refused.code()) is CODE.PERMISSION_DENIED
    await server.stop(None)


# Callbacks, and what a call says of itself.


async def test_callbacks_are_called_once_the_call_is_over(carrier):
    ended = []
    async with served(carrier, unary=echo) as at:
        call = at.unary(b"")
        call.add_done_callback(ended.append)
        await soon(call)
        assert ended == [call]
        call.add_done_callback(ended.append)
        assert ended == [call, call]


async def test_a_servicers_callbacks_are_called_once_it_is_done(carrier):
    done = asyncio.Event()

    async def unary(request, context):
        context.add_done_callback(lambda it: done.set())
        return b""

    async with served(carrier, unary=unary) as at:
        await soon(at.unary(b""))
        await soon(done.wait())


async def test_a_context_has_its_peer_and_its_state(carrier):
    async def unary(request, context):
        assert context.code() is None
        assert context.details() == ""
        assert not context.done()
        assert not context.cancelled()
        assert context.auth_context().get("transport_security_type") in (None, [b"insecure"])
        assert context.peer_identities() is None
        assert context.peer_identity_key() is None
        assert context.time_remaining() is None
        return context.peer().encode()

    async with served(carrier, unary=unary) as at:
        call = at.unary(b"")
        assert call.time_remaining() is None
        await soon(call.wait_for_connection())
        assert (await soon(call)).startswith((b"ipv4:127.0.0.1:", b"inprocess"))

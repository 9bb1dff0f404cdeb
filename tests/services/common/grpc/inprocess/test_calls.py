"""Calls that succeed: the same tests over a plain channel and within the process."""

import asyncio
from contextvars import ContextVar

import grpc
import pytest

from services.common.grpc.inprocess.response_stream import deliver
from services.common.process.byte_budget import ByteBudget, Charge, request_charge, response_charge
from tests.services.common.grpc.inprocess.carriers import (
    BYTES,
    READERS,
    TEXT,
    Received,
    echo,
    everything,
    message,
    own,
    served,
    soon,
)


async def test_a_request_gets_its_response(carrier):
    async with served(carrier, unary=echo) as at:
        assert (await soon(at.unary(message(b"hello")))).value == b"hello"
        assert (await soon(at.unary(message()))).value == b""


async def test_many_calls_at_once_get_each_their_own(carrier):
    async def unary(request, context):
        await asyncio.sleep(0)
        return request

    async with served(carrier, unary=unary) as at:
        unary_call = at.unary
        sent = [b"%d" % number for number in range(300)]
        responses = await soon(asyncio.gather(*[unary_call(message(one)) for one in sent]))
    assert [response.value for response in responses] == sent


async def test_metadata_reaches_the_servicer(carrier):
    seen = []

    async def unary(request, context):
        seen.extend((entry.key, entry.value) for entry in own(context.invocation_metadata()))
        return request

    sent = (TEXT, BYTES, ("x-text", "again"))
    async with served(carrier, unary=unary) as at:
        await soon(at.unary(message(), metadata=sent))
    assert sorted(map(str, seen)) == sorted(map(str, sent))


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
        return message(context.peer().encode())

    async with served(carrier, unary=unary) as at:
        peer = (await soon(at.unary(message()))).value
    assert peer.startswith((b"ipv4:127.0.0.1:", b"inprocess"))


async def test_a_servicers_callbacks_are_called_at_its_end(carrier):
    called = asyncio.Event()

    async def unary(request, context):
        context.add_done_callback(lambda context: called.set())
        return request

    async with served(carrier, unary=unary) as at:
        await soon(at.unary(message()))
        await soon(called.wait())


@pytest.mark.parametrize("kind", ["unary", "read", "deliver"])
async def test_one_request_takes_no_task_of_its_own(inprocess, kind):
    tasks = []

    async def down(request, context):
        await asyncio.sleep(0)
        tasks.append(asyncio.current_task())
        yield message()

    async def unary(request, context):
        return await anext(down(request, context))

    async with served(inprocess, unary=unary, down=down) as at:
        async with asyncio.timeout(60):
            if kind == "unary":
                await at.unary(message())
            elif kind == "read":
                await at.down(message()).read()
            else:
                await deliver(at.down(message()), Received())
    assert tasks == [asyncio.current_task()]


# Interceptors.


class Recorder(grpc.aio.ServerInterceptor):
    """Records its calls."""

    def __init__(self, name, seen):
        self.name, self.seen = name, seen

    async def intercept_service(self, continuation, handler_call_details):
        self.seen.append((self.name, handler_call_details.method))
        self.seen.extend(own(handler_call_details.invocation_metadata))
        handler = await continuation(handler_call_details)
        self.seen.append(self.name)
        return handler


async def test_interceptors_are_called_in_order(carrier):
    seen = []
    recorders = [Recorder("outer", seen), Recorder("inner", seen)]
    async with served(carrier, recorders, unary=echo) as at:
        await soon(at.unary(message(), metadata=(TEXT,)))
    assert seen == [
        ("outer", "/test.T/Unary"),
        TEXT,
        ("inner", "/test.T/Unary"),
        TEXT,
        "inner",
        "outer",
    ]


async def test_an_interceptor_may_replace_the_handler(carrier):
    class Other(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation, handler_call_details):
            async def other(request, context):
                return message(b"other")

            return grpc.unary_unary_rpc_method_handler(
                other, type(message()).FromString, type(message()).SerializeToString
            )

    async with served(carrier, [Other()], unary=echo) as at:
        assert (await soon(at.unary(message()))).value == b"other"


# Context variables.

_variable: ContextVar[bytes] = ContextVar("variable", default=b"none")


async def _exchanged(request, context):
    """Return what the servicer sees before and after it sets the variable."""
    before = _variable.get()
    _variable.set(request.value)
    await asyncio.sleep(0)
    return message(before + b" " + _variable.get())


@pytest.mark.parametrize("kind", ["unary", "read", "deliver", "up", "both"])
async def test_neither_side_sees_the_others_variables(carrier, kind):
    async def down(request, context):
        for _ in range(3):
            yield await _exchanged(request, context)
            assert _variable.get() == request.value
            _variable.set(b"none")

    async def up(requests, context):
        return await _exchanged(await anext(aiter(requests)), context)

    async def both(requests, context):
        async for request in requests:
            yield await _exchanged(request, context)

    async def call(at):
        """Call a method; set the variable before, and check it at every step."""
        if kind == "unary":
            return [(await soon(at.unary(message(b"s")))).value]
        if kind in READERS:
            return await READERS[kind](at.down(message(b"s")))
        streaming = at.up() if kind == "up" else at.both()
        await soon(streaming.write(message(b"s")))
        assert _variable.get() == b"c"
        await streaming.done_writing()
        return [(await soon(streaming)).value] if kind == "up" else await everything(streaming)

    async with served(carrier, unary=_exchanged, down=down, up=up, both=both) as at:
        token = _variable.set(b"c")
        try:
            assert set(await call(at)) == {b"none s"}
            assert _variable.get() == b"c"
        finally:
            _variable.reset(token)


async def test_a_reader_has_its_variables_between_messages(carrier):
    async def down(request, context):
        for number in range(3):
            _variable.set(b"%d" % number)
            yield message(_variable.get())
            assert _variable.get() == b"%d" % number

    seen = []
    async with served(carrier, down=down) as at:
        token = _variable.set(b"c")
        try:
            async for response in at.down(message()):
                seen.append((response.value, _variable.get()))
        finally:
            _variable.reset(token)
    assert seen == [(b"0", b"c"), (b"1", b"c"), (b"2", b"c")]


async def test_a_failed_call_leaves_no_variables(carrier):
    async def unary(request, context):
        _variable.set(b"s")
        await context.abort(grpc.StatusCode.NOT_FOUND, "no")

    async with served(carrier, unary=unary) as at:
        with pytest.raises(grpc.aio.AioRpcError):
            await soon(at.unary(message()))
        assert _variable.get() == b"none"


@pytest.mark.parametrize("variable", [request_charge, response_charge])
async def test_charges_of_a_caller_are_those_of_the_call(inprocess, variable):
    seen = []

    async def unary(request, context):
        seen.append(variable.get())
        return request

    charge = Charge(ByteBudget(1, 1, 1), "user")
    token = variable.set(charge)
    try:
        async with served(inprocess, unary=unary) as at:
            await soon(at.unary(message()))
    finally:
        variable.reset(token)
    assert seen == [charge]

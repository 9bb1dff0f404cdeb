"""Calls in the caller's task say what calls over a channel say."""

import asyncio
from typing import Any

import grpc
import pytest

from services.common.inprocess.channel import InProcessChannel
from services.common.inprocess.server import InProcessServer
from tests.services.common.inprocess.carriers import MIB, SOON_S, TEXT

METHOD = "/test.T/Unary"


async def echo(request: bytes, context: Any) -> bytes:
    assert context.time_remaining() is None and not context.cancelled() and not context.done()
    given = dict(context.invocation_metadata())
    return request + str(given.get("x-text", "")).encode()


async def aborts(request: bytes, context: Any) -> bytes:
    await context.abort(grpc.StatusCode.NOT_FOUND, "not here", (("x-detail-bin", b"\0"),))
    raise AssertionError("it goes on")


async def sets_a_code(request: bytes, context: Any) -> bytes:
    context.set_code(grpc.StatusCode.OUT_OF_RANGE)
    context.set_details("too far")
    context.set_trailing_metadata((("x-detail-bin", b"\1"),))
    return b""


class Refusing(grpc.aio.ServerInterceptor):
    """Refuses all calls before their messages are read, as whoever checks keys does."""

    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        assert handler_call_details.method == METHOD
        assert TEXT in handler_call_details.invocation_metadata

        async def refuse(_: Any, context: Any) -> None:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no key")

        return grpc.stream_unary_rpc_method_handler(refuse)


def served(handler: Any, *interceptors: Any, is_started: bool = True) -> InProcessChannel:
    server = InProcessServer(interceptors, max_message_bytes=MIB)
    methods = {"Unary": handler}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.T", methods),))
    if is_started:
        server.start()
    return InProcessChannel(server)


def channel(behavior: Any, *interceptors: Any, is_started: bool = True) -> InProcessChannel:
    handler = grpc.unary_unary_rpc_method_handler(behavior)
    return served(handler, *interceptors, is_started=is_started)


async def status(call: Any) -> tuple[Any, ...]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = caught.value
    return error.code(), error.details(), tuple(error.trailing_metadata() or ())


async def test_the_response_is_that_of_a_call() -> None:
    over = channel(echo)
    assert await over.direct(METHOD)(b"a", (TEXT,)) == b"aa=1"
    assert await over.unary_unary(METHOD)(b"a", metadata=(TEXT,)) == b"aa=1"


@pytest.mark.parametrize(
    "over",
    [
        channel(aborts),
        channel(sets_a_code),
        channel(echo, Refusing()),
        channel(echo, is_started=False),
    ],
    ids=["aborted", "code set", "refused", "not started"],
)
async def test_a_status_is_that_of_a_call(over: InProcessChannel) -> None:
    direct = await status(over.direct(METHOD)(b"", (TEXT,)))
    assert direct == await status(over.unary_unary(METHOD)(b"", metadata=(TEXT,)))
    assert direct[0] is not grpc.StatusCode.OK


async def test_an_unknown_method_is_refused_as_by_a_call() -> None:
    over = channel(echo)
    assert (await status(over.direct("/test.T/Other")(b"", ())))[0] is grpc.StatusCode.UNIMPLEMENTED


async def test_cancelling_the_task_cancels_the_servicer() -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def waits(request: bytes, context: Any) -> bytes:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return b""

    task = asyncio.create_task(channel(waits).direct(METHOD)(b"", ()))
    async with asyncio.timeout(SOON_S):
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert left.is_set()


class Receiving:
    """Takes messages; the one numbered `fails_at` it refuses."""

    def __init__(self, fails_at: int = -1, is_slow: bool = False) -> None:
        self.taken: list[bytes] = []
        self.drained = 0
        self.fails_at = fails_at
        self.is_slow = is_slow

    def receive(self, message: bytes) -> bool:
        if len(self.taken) == self.fails_at:
            raise ConnectionError("the client has left")
        self.taken.append(message)
        return self.is_slow

    async def drain(self) -> None:
        self.drained += 1


def streaming(behavior: Any, *interceptors: Any, is_started: bool = True) -> InProcessChannel:
    handler = grpc.unary_stream_rpc_method_handler(behavior)
    return served(handler, *interceptors, is_started=is_started)


async def counts(request: bytes, context: Any) -> Any:
    for number in range(3):
        yield request + str(number).encode()


async def pushes(request: bytes, context: Any) -> Any:
    """Yield a message, and send the next one as it comes; wait where the caller is slow."""
    send = yield request + b"0"
    if send is None or send(request + b"1"):
        yield None if send is not None else request + b"1"
    yield request + b"2"


@pytest.mark.parametrize("behavior", [counts, pushes])
@pytest.mark.parametrize("is_slow", [False, True])
async def test_every_response_is_received(behavior: Any, is_slow: bool) -> None:
    receiver = Receiving(is_slow=is_slow)
    await streaming(behavior).direct_stream(METHOD)(b"a", (TEXT,), receiver)
    assert receiver.taken == [b"a0", b"a1", b"a2"]
    assert receiver.drained == 3 * is_slow


@pytest.mark.parametrize("behavior", [counts, pushes])
@pytest.mark.parametrize("fails_at", [0, 1, 2])
async def test_a_failure_of_the_receiver_ends_the_call(behavior: Any, fails_at: int) -> None:
    receiver = Receiving(fails_at)
    with pytest.raises(ConnectionError, match="the client has left"):
        await streaming(behavior).direct_stream(METHOD)(b"a", (), receiver)
    assert len(receiver.taken) == fails_at


async def aborts_later(request: bytes, context: Any) -> Any:
    yield b"first"
    await context.abort(grpc.StatusCode.NOT_FOUND, "not here", (("x-detail-bin", b"\0"),))


async def sets_a_code_later(request: bytes, context: Any) -> Any:
    yield b"first"
    context.set_code(grpc.StatusCode.OUT_OF_RANGE)
    context.set_details("too far")


class RefusingStream(Refusing):
    async def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        async def refuse(_: Any, context: Any) -> None:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no key")

        return grpc.stream_stream_rpc_method_handler(refuse)


@pytest.mark.parametrize(
    ("over", "code", "received"),
    [
        (streaming(aborts_later), grpc.StatusCode.NOT_FOUND, 1),
        (streaming(sets_a_code_later), grpc.StatusCode.OUT_OF_RANGE, 1),
        (streaming(counts, RefusingStream()), grpc.StatusCode.UNAUTHENTICATED, 0),
        (streaming(counts, is_started=False), grpc.StatusCode.UNAVAILABLE, 0),
    ],
    ids=["aborted", "code set", "refused", "not started"],
)
async def test_a_status_of_a_stream(
    over: InProcessChannel, code: grpc.StatusCode, received: int
) -> None:
    receiver = Receiving()
    assert (await status(over.direct_stream(METHOD)(b"", (TEXT,), receiver)))[0] is code
    assert len(receiver.taken) == received


async def test_cancelling_the_task_closes_the_stream() -> None:
    begun, left = asyncio.Event(), asyncio.Event()

    async def waits(request: bytes, context: Any) -> Any:
        try:
            yield b"first"
            begun.set()
            await asyncio.Event().wait()
        finally:
            left.set()

    call = streaming(waits).direct_stream(METHOD)(b"", (), Receiving())
    task = asyncio.ensure_future(call)
    async with asyncio.timeout(SOON_S):
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert left.is_set()

"""What goes over the wire whenever messages come, on a clock that takes no time."""

import asyncio
import gc
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, Self, cast

import grpc
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from facade.context import CALLER_PATHS, CONTEXT, Context
from facade.dialects import openai
from facade.dialects.paths import CallerPaths, Origins
from facade.draining import Drain
from facade.sse import relay
from gateway.conversation.v1.conversation_pb2 import Block, Usage
from gateway.inference.v1.inference_pb2 import Event, Served, Start, StreamGenerateResponse
from services.common.errors import GatewayError
from services.common.settings import Limits
from tests.services.inference.fallback.virtual_time import in_no_time

HOLD_S, KEEPALIVE_S = 8, 4
REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
SIGN = b"!"
EOF = grpc.aio.EOF


class Words:
    """Writes the words of an answer as they are, and a sign where it starts.

    Attributes:
        signs: of life that were wanted.
        served: nobody.
        usage: none.
    """

    def __init__(self) -> None:
        self.signs = 0
        self.served = Served()
        self.usage = Usage()

    def encode(self, events: Iterable[Event]) -> bytes:
        return b"".join(
            b"^" if event.HasField("start") else event.text.encode() for event in events
        )

    def finish(self) -> bytes:
        return b"."

    def keepalive(self) -> bytes:
        self.signs += 1
        return SIGN

    def error(self, error: GatewayError) -> bytes:
        return b"#"


class Transport(asyncio.Transport):
    """Keeps what is written, each time with the time."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.closes = False
        self.written: list[tuple[float, bytes]] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        now = asyncio.get_running_loop().time()
        self.written.append((round(now, 3), bytes(data)))

    def is_closing(self) -> bool:
        return self.closes

    def close(self) -> None:
        pass


class Call:
    """Gives messages, or the failure that it ends with, at their times."""

    def __init__(
        self,
        messages: list[tuple[float, StreamGenerateResponse | None]],
        end: Any,
        ends_after_s: float = 0,
    ) -> None:
        self.cancelled = False
        self._messages = [*messages, ((messages[-1][0] if messages else 0) + ends_after_s, end)]

    async def read(self) -> Any:
        at, message = self._messages.pop(0)
        if (left := at - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(left)
        if isinstance(message, Exception):
            raise message
        return message

    def cancel(self) -> None:
        self.cancelled = True


def message(*events: Event) -> StreamGenerateResponse:
    return StreamGenerateResponse(events=events)


STARTS = message(Event(start=Start(served=Served(model="m"))), Event(block_start=Block(text="")))


def failure() -> Exception:
    none = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, none, none)


class Caller:
    """A caller over a connection of its own.

    Attributes:
        transport: keeps what it is sent.
        words: writes that.
        protocol: the facade's end.
    """

    protocol: Any

    def __init__(self, call: Call, prepares_s: float = 0) -> None:
        self.transport = Transport()
        self.words = Words()
        self._call = call
        self._prepares_s = prepares_s

    async def __aenter__(self) -> Self:
        app = web.Application()
        limits = Limits(hold_headers_s=HOLD_S, keepalive_s=KEEPALIVE_S)
        app[CONTEXT] = cast(
            Context, SimpleNamespace(settings=SimpleNamespace(limits=limits), drain=Drain())
        )
        app.on_response_prepare.append(self._prepare)
        app.router.add_get("/", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        assert self._runner.server is not None
        self.protocol = self._runner.server()
        self.protocol.connection_made(self.transport)
        self.protocol.data_received(REQUEST)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        await asyncio.sleep(100)
        assert self._call.cancelled
        await self._runner.cleanup()

    def leave(self) -> None:
        self.protocol.connection_lost(None)

    async def _prepare(self, request: web.Request, response: web.StreamResponse) -> None:
        await asyncio.sleep(self._prepares_s)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            request[CALLER_PATHS] = CallerPaths(openai.FIELD_NAMES, Origins())
            return await relay(request, self._call, self.words)
        except grpc.aio.AioRpcError:
            return web.Response(status=500)


async def told(call: Call, prepares_s: float = 0) -> list[tuple[float, bytes]]:
    """Give what a caller is sent of a call, and when."""
    async with Caller(call, prepares_s) as caller:
        await asyncio.sleep(1000)
        return caller.transport.written


def content(written: list[tuple[float, bytes]]) -> tuple[bytes, bytes]:
    """Give the head and the body of an answer in chunks, which must be whole."""
    head, _, rest = b"".join(data for _, data in written).partition(b"\r\n\r\n")
    body = b""
    while size := int(rest.split(b"\r\n")[0], 16):
        chunk = rest.partition(b"\r\n")[2]
        assert chunk[size : size + 2] == b"\r\n"
        body, rest = body + chunk[:size], chunk[size + 2 :]
    assert rest == b"0\r\n\r\n"
    return head, body


def text(word: str) -> StreamGenerateResponse:
    return message(Event(text=word))


@in_no_time
async def test_headers_wait_for_the_first_content_and_tell_what_serves_it() -> None:
    written = await told(Call([(1, STARTS), (3, text("a")), (4, text("b"))], EOF))
    head, body = content(written)
    assert (written[0][0], body) == (3, b"^ab.")
    assert b"\r\nx-gateway-model: m" in head


@in_no_time
async def test_one_write_tells_of_one_message_and_the_first_of_the_headers_too() -> None:
    texts = [(3.0, text("a")), (4.0, text("b"))]
    written = await told(Call([(1, STARTS), *texts], EOF, ends_after_s=1))
    assert [at for at, _ in written] == [3, 4, 5]


@in_no_time
async def test_headers_wait_so_long_and_signs_of_life_follow() -> None:
    written = await told(Call([(18, text("a"))], EOF))
    assert content(written)[1] == b"!!!a."
    assert sorted({at for at, _ in written}) == [8, 12, 16, 18]


@in_no_time
async def test_what_was_held_is_a_sign_of_life() -> None:
    assert content(await told(Call([(1, STARTS), (9, text("a"))], EOF)))[1] == b"^a."


@in_no_time
async def test_content_puts_off_the_next_sign_of_life() -> None:
    texts = [(at, text("a")) for at in (1.0, 4.0, 7.0, 12.0)]
    assert content(await told(Call(list(texts), EOF)))[1] == b"aaa!a."


@in_no_time
async def test_an_answer_without_content_is_told_at_its_end() -> None:
    assert content(await told(Call([(1, STARTS)], EOF)))[1] == b"^."


@in_no_time
async def test_a_failure_before_the_headers_is_a_status() -> None:
    written = await told(Call([(7, STARTS)], failure()))
    assert written[0][1].startswith(b"HTTP/1.1 500 ")


@in_no_time
async def test_a_failure_after_them_is_told_in_the_stream() -> None:
    written = await told(Call([(1, STARTS), (9, message())], failure()))
    assert content(written)[1] == b"^#"


@pytest.mark.parametrize("fault", [KeyError("x"), ValueError("x"), TypeError("x")])
@in_no_time
async def test_events_that_cannot_be_written_end_the_stream(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(self: Words, events: list[Event]) -> bytes:
        if any(event.text == "bad" for event in events):
            raise fault
        return b"x"

    monkeypatch.setattr(Words, "encode", encode)
    written = await told(Call([(1, text("a")), (9, text("bad"))], EOF))
    assert content(written)[1].endswith(b"#")


@in_no_time
async def test_a_caller_who_leaves_ends_the_call_and_is_given_no_more_signs() -> None:
    async with Caller(Call([(100, STARTS)], EOF)) as caller:
        await asyncio.sleep(18)
        caller.leave()
        await asyncio.sleep(50)
        assert caller.words.signs == 3


@in_no_time
async def test_a_caller_who_leaves_while_headers_are_written_leaves_nothing_behind() -> None:
    async with Caller(Call([(100, STARTS)], EOF), prepares_s=999) as caller:
        await asyncio.sleep(18)
    assert caller.transport.written == []


@in_no_time
async def test_a_sign_of_life_for_a_caller_who_is_leaving_is_no_failure() -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: failures.append(told))
    async with Caller(Call([(100, STARTS)], EOF)) as caller:
        await asyncio.sleep(5)
        caller.transport.closes = True
        await asyncio.sleep(20)
    gc.collect()
    assert (failures, caller.transport.written) == ([], [])


@in_no_time
async def test_headers_that_take_long_are_written_once() -> None:
    written = await told(Call([(30, text("a"))], EOF), prepares_s=9)
    assert content(written)[1].replace(SIGN, b"") == b"a."


@in_no_time
async def test_no_sign_of_life_follows_the_end_where_the_caller_reads_slowly() -> None:
    async with Caller(Call([(1, text("a")), (2, text("b"))], EOF)) as caller:
        await asyncio.sleep(1.5)
        caller.protocol.pause_writing()
        await asyncio.sleep(50)
        caller.protocol.resume_writing()
        await asyncio.sleep(1)
        assert content(caller.transport.written)[1] == b"ab."


times = st.lists(st.sampled_from([0.0, 0.0, 1.0, 4.0, 8.0, 9.0]), max_size=6)
kinds = st.lists(st.sampled_from(["", "a", "b"]), min_size=6, max_size=6)


@given(times, kinds, times, st.booleans(), st.sampled_from([0.0, 0.0, 1.0]))
def test_whenever_messages_come_each_is_told_once_and_in_order(
    delays: list[float], texts: list[str], more: list[float], fails: bool, prepares_s: float
) -> None:
    at, messages = 0.0, list[tuple[float, StreamGenerateResponse | None]]()
    for delay, text in zip(delays, texts, strict=False):
        at += delay
        messages.append((at, message(Event(text=text) if text else Event(usage={}))))

    @in_no_time
    async def check() -> None:
        call = Call(messages, failure() if fails else EOF, sum(more))
        written = await told(call, prepares_s)
        said = "".join(text for _, text in zip(delays, texts, strict=False))
        if written[0][1].startswith(b"HTTP/1.1 500 "):
            assert fails and not said and at + sum(more) <= HOLD_S
            return
        body = content(written)[1]
        assert body.replace(SIGN, b"").decode() == said + ("#" if fails else ".")

    check()

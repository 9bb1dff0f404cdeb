"""Bytes that a stream writes as messages arrive, on a virtual clock."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import grpc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from facade.dialects.stream_formats import EVENTS
from facade.http.exchange import Exchange
from facade.http.responses import JsonResponse, Response
from facade.sse import relay
from gateway.conversation.v1.conversation_pb2 import Block, Usage
from gateway.inference.v1.inference_pb2 import (
    Event,
    Finish,
    RouteInfo,
    Start,
    StreamGenerateResponse,
)
from services.common.errors import GatewayError
from services.common.grpc.inprocess.response_stream import deliver
from services.common.settings import Limits
from tests.facade.plain_connection import PlainServer
from tests.services.inference.fallback.virtual_time import in_no_time

HOLD_S, KEEPALIVE_S = 8, 4
SIGN = b"!"
EOF = grpc.aio.EOF


class TextEncoder:
    format = EVENTS
    """Writes the words of an answer as they are, and a sign where it starts.

    Attributes:
        route: an empty one.
        usage: none.
    """

    def __init__(self) -> None:
        self.route = RouteInfo()
        self.usage = Usage()

    def encode(self, events: Iterable[Event]) -> bytes:
        return b"".join(
            b"^" if event.HasField("start") else event.text.encode() for event in events
        )

    def finish(self) -> bytes:
        return b"."

    def keepalive(self) -> bytes:
        return SIGN

    def error(self, error: GatewayError) -> bytes:
        return b"#"


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


STARTS = message(Event(start=Start(route=RouteInfo(model="m"))), Event(block_start=Block(text="")))


def failure() -> Exception:
    none = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, none, none)


async def respond(call: Call, exchange: Exchange) -> Response:
    try:
        return await relay(exchange, partial(deliver, cast(Any, call)), TextEncoder())
    except grpc.aio.AioRpcError:
        return JsonResponse(b"{}", {}, 500)


@asynccontextmanager
async def caller_of(call: Call) -> AsyncIterator[PlainServer]:
    """Run a connection whose caller is answered with the messages of a call."""
    limits = Limits(hold_headers_s=HOLD_S, keepalive_s=KEEPALIVE_S)
    async with PlainServer(partial(respond, call), limits) as server:
        server.send()
        yield server
    assert call.cancelled


async def told(call: Call) -> list[tuple[float, bytes]]:
    """Return what a caller is sent of a call, and when."""
    async with caller_of(call) as caller:
        await asyncio.sleep(1000)
        return caller.transport.writes


def content(written: list[tuple[float, bytes]]) -> tuple[bytes, bytes]:
    """Return the head and the body of an answer in chunks, which must be whole."""
    head, _, remainder = b"".join(data for _, data in written).partition(b"\r\n\r\n")
    body = b""
    while size := int(remainder.split(b"\r\n")[0], 16):
        chunk = remainder.partition(b"\r\n")[2]
        assert chunk[size : size + 2] == b"\r\n"
        body, remainder = body + chunk[:size], chunk[size + 2 :]
    assert remainder == b"0\r\n\r\n"
    return head, body


def text(word: str) -> StreamGenerateResponse:
    return message(Event(text=word))


def last_text(word: str) -> StreamGenerateResponse:
    """Return a message that ends the answer with a text; usage may follow."""
    return message(Event(text=word), Event(finish=Finish()), Event(usage={}))


@in_no_time
async def test_headers_wait_for_content_and_name_its_model() -> None:
    written = await told(Call([(1, STARTS), (3, text("a")), (4, text("b"))], EOF))
    head, body = content(written)
    assert (written[0][0], body) == (3, b"^ab.")
    assert b"\r\nx-gateway-model: m" in head


@in_no_time
async def test_headers_and_first_message_share_one_write() -> None:
    texts = [(3.0, text("a")), (4.0, text("b"))]
    written = await told(Call([(1, STARTS), *texts], EOF, ends_after_s=1))
    assert [at for at, _ in written] == [3, 4, 5]


@pytest.mark.parametrize("before", [[], [(1.0, text("a"))]])
@in_no_time
async def test_the_end_shares_the_last_write(
    before: list[tuple[float, StreamGenerateResponse | None]],
) -> None:
    written = await told(Call([*before, (3, last_text("b"))], EOF))
    assert content(written)[1].endswith(b"b.")
    assert [at for at, _ in written] == [*(at for at, _ in before), 3]


@in_no_time
async def test_the_last_text_does_not_wait_for_a_later_end() -> None:
    written = await told(Call([(1, text("a")), (3, last_text("b"))], EOF, ends_after_s=1))
    assert (content(written)[1], [at for at, _ in written]) == (b"ab.", [1, 3, 4])


@in_no_time
async def test_a_caller_who_leaves_before_the_last_write() -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: failures.append(told))
    async with caller_of(Call([(1, text("a")), (3, last_text("b"))], EOF, 9)) as caller:
        await asyncio.sleep(2)
        caller.transport.closed = True
        await asyncio.sleep(20)
    gc.collect()
    assert (failures, len(caller.transport.writes)) == ([], 1)


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
async def test_an_answer_without_content_is_sent_at_its_end() -> None:
    assert content(await told(Call([(1, STARTS)], EOF)))[1] == b"^."


@in_no_time
async def test_a_failure_before_the_headers_is_a_status() -> None:
    written = await told(Call([(7, STARTS)], failure()))
    assert written[0][1].startswith(b"HTTP/1.1 500 ")


@in_no_time
async def test_a_failure_after_them_is_reported_in_the_stream() -> None:
    written = await told(Call([(1, STARTS), (9, message())], failure()))
    assert content(written)[1] == b"^#"


@pytest.mark.parametrize("fault", [KeyError("x"), ValueError("x"), TypeError("x")])
@in_no_time
async def test_events_that_cannot_be_written_end_the_stream(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(self: TextEncoder, events: list[Event]) -> bytes:
        if any(event.text == "bad" for event in events):
            raise fault
        return b"x"

    monkeypatch.setattr(TextEncoder, "encode", encode)
    written = await told(Call([(1, text("a")), (9, text("bad"))], EOF))
    assert content(written)[1].endswith(b"#")


@in_no_time
async def test_a_leaving_caller_ends_the_call_and_its_keepalives() -> None:
    async with caller_of(Call([(100, STARTS)], EOF)) as caller:
        await asyncio.sleep(18)
        caller.leave()
        await asyncio.sleep(50)
        assert b"".join(data for _, data in caller.transport.writes).count(SIGN) == 3


@in_no_time
async def test_a_keepalive_to_a_leaving_caller_is_no_failure() -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: failures.append(told))
    async with caller_of(Call([(100, STARTS)], EOF)) as caller:
        await asyncio.sleep(5)
        caller.transport.closed = True
        await asyncio.sleep(20)
    gc.collect()
    assert (failures, caller.transport.writes) == ([], [])


@in_no_time
async def test_no_keepalive_follows_the_end_for_slow_readers() -> None:
    async with caller_of(Call([(1, text("a")), (2, text("b"))], EOF)) as caller:
        await asyncio.sleep(1.5)
        caller.protocol.pause_writing()
        await asyncio.sleep(50)
        caller.protocol.resume_writing()
        await asyncio.sleep(1)
        assert content(caller.transport.writes)[1] == b"ab."


times = st.lists(st.sampled_from([0.0, 0.0, 1.0, 4.0, 8.0, 9.0]), max_size=6)
kinds = st.lists(st.sampled_from(["", "a", "b", "E"]), min_size=6, max_size=6)


@given(times, kinds, times, st.booleans())
@example([1.0, 0.0, 0.0], ["E", "a", "b", "", "", ""], [], False)
@example([1.0, 0.0, 0.0], ["a", "E", "b", "", "", ""], [4.0], True)
def test_messages_are_written_once_and_in_order(
    delays: list[float], texts: list[str], more: list[float], fails: bool
) -> None:
    at, messages = 0.0, list[tuple[float, StreamGenerateResponse | None]]()
    for delay, text in zip(delays, texts, strict=False):
        at += delay
        sent = message(Event(text=text) if text else Event(usage={}))
        messages.append((at, last_text(text) if text == "E" else sent))

    @in_no_time
    async def check() -> None:
        call = Call(messages, failure() if fails else EOF, sum(more))
        written = await told(call)
        whole_text = "".join(text for _, text in zip(delays, texts, strict=False))
        if written[0][1].startswith(b"HTTP/1.1 500 "):
            assert fails and not whole_text and at + sum(more) <= HOLD_S
            return
        body = content(written)[1]
        assert body.replace(SIGN, b"").decode() == whole_text + ("#" if fails else ".")

    check()

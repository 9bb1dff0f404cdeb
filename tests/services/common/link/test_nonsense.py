"""What a link does about frames that make no sense, and about those that come late."""

import asyncio

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.link.v1.link_pb2 import OpenRequest, OpenResponse
from gateway.link.v1.link_pb2_grpc import LinkServicer, LinkStub, add_LinkServicer_to_server
from services.common.link import frames
from services.common.link.frames import FRAGMENT, FrameError
from services.common.link.session import Session
from tests.services.common.link.carriers import (
    MIB,
    echo,
    echo_all,
    outcome,
    served,
    soon,
)

CODE = grpc.StatusCode
OPEN = frames.open_call(1, b"/test.T/Unary", b"", None, one_message=True)
MESSAGE = frames.message_header(1, 6, 6) + b"secret"


NONSENSE = {
    "cut": OPEN[:-1],
    "an unknown kind": frames.bare(1, 77),
    "of no call": frames.bare(1, frames.CANCEL),
    "credit of no call": frames.credit(9, 1),
    "a number twice": OPEN + OPEN,
    "a number that is lower": frames.open_call(5, b"/a/b", b"", None, one_message=False) + OPEN,
    "two messages where one": OPEN + MESSAGE + MESSAGE,
    "more of nothing": OPEN + frames.more_header(1, 1) + b"x",
    "from the other side": OPEN + frames.status(1, 0, "", b""),
    "more than credit": frames.open_call(1, b"/test.T/Up", b"", None, one_message=False)
    + b"".join(frames.message_header(1, FRAGMENT, FRAGMENT) + b"x" * FRAGMENT for _ in range(5)),
}


@pytest.mark.parametrize("case", NONSENSE)
async def test_a_caller_that_sends_nonsense_loses_its_link_and_nothing_else_happens(
    link, caplog, case
):
    ended = asyncio.Event()

    async def unary(request, context):
        return request

    async def up(requests, context):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with served(link, unary=unary, up=up) as at:
        held = at.up()
        await soon(at.unary(b""))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{at.port}") as channel:
            stream = LinkStub(channel).Open()
            await soon(stream.write(OpenRequest(frames=NONSENSE[case])))
            assert await soon(stream.code()) is CODE.INVALID_ARGUMENT
        assert "makes no sense" in caplog.text
        assert "secret" not in caplog.text
        assert await soon(at.unary(b"still")) == b"still"
        assert not held.done() and not ended.is_set()


async def test_a_server_ends_a_call_at_its_deadline_without_being_told(link):
    ended = asyncio.Event()

    async def unary(request, context):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with served(link, unary=unary) as at:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{at.port}") as channel:
            stream = LinkStub(channel).Open()
            call = frames.open_call(1, b"/test.T/Unary", b"", 20, one_message=True)
            await soon(stream.write(OpenRequest(frames=call + MESSAGE)))
            answer = (await soon(stream.read())).frames
            ((number, kind, at_byte, stop),) = frames.scan(answer)
            assert (number, kind) == (1, frames.STATUS)
            code, _, _ = frames.read_status(answer, at_byte, stop)
            assert code == CODE.DEADLINE_EXCEEDED.value[0]
        await soon(ended.wait())


async def test_a_servicer_is_done_when_its_generator_is_closed(link):
    happened, done = [], asyncio.Event()

    async def down(request, context):
        context.add_done_callback(lambda _: done.set())
        context.add_done_callback(lambda _: happened.append("done"))
        try:
            while True:
                yield b"x" * 10_000
        finally:
            await asyncio.sleep(0)
            happened.append("closed")

    async with served(link, down=down) as at:
        call = at.down(b"")
        await soon(call.read())
        call.cancel()
        await soon(done.wait())
    assert happened == ["closed", "done"]


class Rogue(LinkServicer):
    """A server that answers the first link with whatever a test wants."""

    def __init__(self, answer: bytes) -> None:
        self.answers = [answer]

    async def Open(self, request_iterator, context):
        await context.send_initial_metadata(())
        await context.read()
        await context.write(OpenResponse(frames=self.answers.pop() if self.answers else DONE))
        await context.read()


DONE = frames.message_header(1, 2, 2) + b"ok" + frames.status(1, 0, "", b"")


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage that is no frame",
        frames.bare(2, frames.CANCEL),
        frames.bare(1, frames.HALF_CLOSE),
        frames.more_header(1, 1) + b"x",
        frames.status(1, 0, "", b"")[:-1],
        frames.message_header(1, 5, 2) + b"no" + frames.status(1, 0, "", b""),
    ],
)
async def test_a_server_that_sends_nonsense_loses_its_link_and_the_next_one_works(
    link, caplog, answer
):
    rogue = grpc.aio.server()
    add_LinkServicer_to_server(Rogue(answer), rogue)
    port = rogue.add_insecure_port("127.0.0.1:0")
    await rogue.start()
    async with link.channel(f"127.0.0.1:{port}") as channel:
        unary = channel.unary_unary("/test.T/Unary")
        assert (await outcome(unary(b"")))[0] is CODE.UNAVAILABLE
        assert "makes no sense" in caplog.text
        assert await soon(unary(b"")) == b"ok"
    await rogue.stop(None)


async def test_what_comes_for_a_call_that_is_over_is_passed_over(link):
    late = (
        frames.message_header(1, 2, 2)
        + b"no"
        + frames.status(1, 0, "", b"")
        + frames.credit(1, 5)
        + frames.headers(1, b"")
        + frames.more_header(1, 1)
        + b"x"
    )
    rogue = grpc.aio.server()
    add_LinkServicer_to_server(Rogue(DONE + late), rogue)
    port = rogue.add_insecure_port("127.0.0.1:0")
    await rogue.start()
    async with link.channel(f"127.0.0.1:{port}") as channel:
        assert await soon(channel.unary_unary("/test.T/Unary")(b"")) == b"ok"
        waiting = channel.unary_unary("/test.T/Unary")(b"")
        await soon(waiting.wait_for_connection())
        assert not waiting.done()
    await rogue.stop(None)


async def test_a_failure_may_cut_a_message_short(link, caplog):
    begun = frames.message_header(1, 5, 2) + b"no"
    rogue = grpc.aio.server()
    add_LinkServicer_to_server(Rogue(begun + frames.status(1, 4, "late", b"")), rogue)
    port = rogue.add_insecure_port("127.0.0.1:0")
    await rogue.start()
    async with link.channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_stream("/test.T/Down")(b"")
        assert await outcome(call.read()) == (CODE.DEADLINE_EXCEEDED, "late")
        assert not caplog.records
    await rogue.stop(None)


async def test_a_status_without_a_response_is_no_response(link):
    rogue = grpc.aio.server()
    add_LinkServicer_to_server(Rogue(frames.status(1, 0, "", b"")), rogue)
    port = rogue.add_insecure_port("127.0.0.1:0")
    await rogue.start()
    async with link.channel(f"127.0.0.1:{port}") as channel:
        assert (await outcome(channel.unary_unary("/test.T/Unary")(b"")))[0] is CODE.INTERNAL
    await rogue.stop(None)


class Wire:
    """The stream of a link, as its server sees it, without gRPC."""

    def __init__(self, batches):
        self._batches = iter(batches)

    def peer(self):
        return "ipv4:127.0.0.1:1"

    async def read(self):
        for _ in range(3):
            await asyncio.sleep(0)
        batch = next(self._batches, None)
        return grpc.aio.EOF if batch is None else OpenRequest(frames=batch)

    async def write(self, message):
        pass


@st.composite
def from_a_caller(draw):
    """Give a frame, mostly one that a caller may send."""
    call = draw(st.integers(1, 4))
    content = draw(st.binary(max_size=20))
    method = draw(st.sampled_from([b"/test.T/Unary", b"/test.T/Both", b"/test.T/None"]))
    return draw(
        st.sampled_from(
            [
                frames.open_call(call, method, b"", None, one_message=draw(st.booleans())),
                frames.open_call(call, method, b"", 1, one_message=False),
                frames.message_header(call, len(content), len(content)) + content,
                frames.message_header(call, 40, len(content)) + content,
                frames.more_header(call, len(content)) + content,
                frames.bare(call, frames.HALF_CLOSE),
                frames.bare(call, frames.CANCEL),
                frames.credit(call, 10),
                frames.bare(0, frames.GOAWAY),
                content,
            ]
        )
    )


@given(st.lists(st.lists(from_a_caller(), max_size=4).map(b"".join), max_size=12))
def test_whatever_a_caller_sends_a_session_ends_well_or_refuses_it(batches):
    handlers = {
        "/test.T/Unary": grpc.unary_unary_rpc_method_handler(echo),
        "/test.T/Both": grpc.stream_stream_rpc_method_handler(echo_all),
    }

    async def find(details):
        return handlers.get(details.method)

    async def run():
        serving = Session(Wire(batches), find, MIB)
        try:
            await soon(serving.run())
        except FrameError:
            pass
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())

"""Behaviour of the client that the suite of `Upstream` does not show."""

import asyncio
import gzip
import statistics
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from services.common import http
from services.common.errors import GatewayError
from services.common.http.connection import ReadSize, UpstreamConnection
from tests.grid import each_row
from tests.services.common.http.servers import ask, say_nothing, serving
from tests.services.inference.providers.scripted_server import (
    Connection,
    ScriptedServer,
)
from tests.waiting import until


def raw(data: bytes) -> Callable[[Connection], object]:
    return lambda connection: connection.send(data)


async def test_an_interim_answer_is_passed_over(
    client: http.Client, server: ScriptedServer
) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    server.plays(raw(hints + b"HTTP/1.1 200 S\r\ncontent-length: 2\r\n\r\nok"))
    assert await ask(client, server.url) == (200, b"ok")


async def test_a_body_without_a_length_ends_with_the_connection(
    client: http.Client, server: ScriptedServer
) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 S\r\n\r\nall of it")
        connection.close()

    server.plays(script)
    assert await ask(client, server.url) == (200, b"all of it")


@pytest.mark.parametrize("cut", range(1, 24))
async def test_a_truncated_compressed_body_is_an_error(
    client: http.Client, server: ScriptedServer, cut: int
) -> None:
    packed = gzip.compress(b"a" * 1000, mtime=0)
    server.plays(lambda c: c.answer(packed[:-cut], headers="content-encoding: gzip"))
    with pytest.raises(http.CutOffError):
        await ask(client, server.url)


async def test_a_body_packed_in_a_way_nobody_asked_for_is_refused(
    client: http.Client, server: ScriptedServer
) -> None:
    server.plays(lambda c: c.answer(b"x", headers="content-encoding: br"))
    with pytest.raises(http.NotHttpError):
        await ask(client, server.url)


async def test_a_small_piece_that_unpacks_to_much_comes_in_parts(
    client: http.Client, server: ScriptedServer
) -> None:
    bomb = gzip.compress(bytes(8 << 20))
    server.plays(lambda c: c.answer(bomb, headers="content-encoding: gzip"))
    url = URL(server.url)
    response = await client.send(http.origin_of(url), "POST", url.raw_path_qs, "")
    sizes = []
    while piece := await response.body.read():
        sizes.append(len(piece))
    response.body.release()
    assert sum(sizes) == 8 << 20
    assert max(sizes) <= 1 << 18


async def test_an_answer_that_is_broken_off_ends_who_reads_it(
    client: http.Client, server: ScriptedServer
) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 S\r\ncontent-length: 9\r\n\r\n")
        await connection.until_left()

    server.plays(script)
    url = URL(server.url)
    response = await client.send(http.origin_of(url), "POST", url.raw_path_qs, "")
    asyncio.get_running_loop().call_soon(response.body.close)
    with pytest.raises(http.CutOffError):
        await response.body.read()
    response.body.release()


async def test_a_broken_whole_answer_s_connection_is_not_reused(
    client: http.Client, server: ScriptedServer
) -> None:
    server.plays(lambda c: c.answer(b"all"))
    url = URL(server.url)
    response = await client.send(http.origin_of(url), "POST", url.raw_path_qs, "")
    assert await response.body.read() == b"all"
    response.body.close()
    assert await ask(client, server.url) == (200, b"all")
    response.body.release()
    assert server.connections == 2


async def test_a_head_without_an_end_is_not_waited_for(
    client: http.Client, server: ScriptedServer
) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 S\r\n")
        while True:
            await connection.send(b"x-more: " + b"y" * 1000 + b"\r\n")

    server.plays(script)
    with pytest.raises(http.NotHttpError):
        await ask(client, server.url)


async def test_a_connection_that_the_server_closed_is_not_used_again(
    client: http.Client, server: ScriptedServer
) -> None:
    async def script(connection: Connection) -> None:
        await connection.answer(b"{}")
        connection.close()

    server.plays(script)
    for _ in range(3):
        assert await ask(client, server.url) == (200, b"{}")
        await until(lambda: not client._idle_count)  # the client has heard of it
    assert server.connections == 3


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 S\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 S\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 S\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 S\r\n\r\nbad",
    ],
    ids=["says close", "an old version", "says more than it was asked"],
)
async def test_a_connection_that_cannot_be_trusted_is_not_used_again(
    client: http.Client, server: ScriptedServer, answer: bytes
) -> None:
    server.plays(raw(answer))
    for _ in range(2):
        assert await ask(client, server.url) == (200, b"ok")
    assert server.connections == 2


async def test_what_comes_unasked_closes_the_connection(
    client: http.Client, server: ScriptedServer
) -> None:
    unasked = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.answer(b"{}")
        await unasked.wait()
        await connection.answer(b"somebody else's")
        await connection.until_left()

    server.plays(script)
    await ask(client, server.url)
    unasked.set()
    await asyncio.wait_for(server.left.wait(), 60)
    assert await ask(client, server.url) == (200, b"{}")


def test_closing_does_not_wait_for_lost_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reach(self: http.Client, connection: UpstreamConnection, *_: object) -> None:
        connection.connection_made(_Sink())
        connection.connection_lost(None)

    async def ask_and_close() -> None:
        client = http.Client(60, http.Proxies({}))
        with pytest.raises(http.ConnectionBrokenError):
            await ask(client, "http://models.test/")
        async with asyncio.timeout(60):
            await client.close()

    monkeypatch.setattr(http.Client, "_reach", reach)
    asyncio.run(ask_and_close())


async def test_an_early_answer_is_read_and_ends_the_connection() -> None:
    connections = 0

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 S\r\ncontent-length: 0\r\n\r\n")
        await say_nothing(reader, writer)

    async with serving(refuse) as port, http.Client(60, http.Proxies({})) as client:
        for _ in range(2):
            assert await ask(client, f"http://127.0.0.1:{port}/", bytes(64 << 20)) == (413, b"")
        assert connections == 2


async def test_a_reader_that_stops_makes_the_server_wait(
    client: http.Client, server: ScriptedServer
) -> None:
    sent = 0
    blocked = asyncio.Event()

    async def script(connection: Connection) -> None:
        nonlocal sent
        await connection.send(b"HTTP/1.1 200 S\r\n\r\n")
        while True:
            try:
                async with asyncio.timeout(0.2):
                    await connection.send(bytes(1 << 20))
            except TimeoutError:
                blocked.set()
                connection.reset()
                return
            sent += 1 << 20

    server.plays(script)
    url = URL(server.url)
    response = await client.send(http.origin_of(url), "POST", url.raw_path_qs, "")
    await asyncio.wait_for(blocked.wait(), 60)
    assert sent < 32 << 20
    response.body.release()


async def test_others_have_their_turn_between_pieces_that_wait(
    client: http.Client, server: ScriptedServer
) -> None:
    body = bytes(4 << 20)
    server.plays(raw(b"HTTP/1.1 200 S\r\ncontent-length: %d\r\n\r\n" % len(body) + body))
    url = URL(server.url)
    response = await client.send(http.origin_of(url), "POST", url.raw_path_qs, "")
    pieces = [0]  # in each turn of the loop
    loop = asyncio.get_running_loop()

    def count(piece: bytes) -> bool:
        pieces[-1] += 1
        return False

    def begin_turn() -> None:
        pieces.append(0)
        nonlocal turn
        turn = loop.call_soon(begin_turn)

    turn = loop.call_soon(begin_turn)
    await response.body.deliver(count)
    turn.cancel()
    response.body.release()
    assert sum(pieces) > 60
    assert max(pieces) <= 3  # at first, with two that were buffered before the delivery
    assert statistics.median(filter(None, pieces)) == 1


@given(st.lists(st.integers(1, 130), max_size=8), st.booleans())
def test_an_answer_cut_anywhere_reads_the_same(cuts: list[int], chunked: bool) -> None:
    body = (
        b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\ntrailer: 1\r\n\r\n"
        if chunked
        else b"content-length: 7\r\n\r\nabcdefg"
    )
    answer = b"HTTP/1.1 200 Fine\r\nX-One: 1\r\nx-one: 2\r\n" + body

    async def read() -> tuple[int, list[str], bytes]:
        released = asyncio.Event()
        connection = UpstreamConnection(
            1 << 20, ReadSize(), lambda _: released.set(), lambda _: None
        )
        connection.connection_made(_Sink())
        asking = asyncio.ensure_future(connection.request(b"", b""))
        await asyncio.sleep(0)
        places = sorted({min(cut, len(answer)) for cut in cuts} | {0, len(answer)})
        for begin, end in pairwise(places):
            _feed(connection, answer[begin:end])
        response = await asking
        data = b""
        while piece := await response.body.read():
            data += piece
        response.body.release()
        assert released.is_set()
        return response.status, response.headers.getall("X-ONE"), data

    assert asyncio.run(read()) == (200, ["1", "2"], b"abcdefg")


async def test_a_body_tells_whether_it_is_received() -> None:
    released = asyncio.Event()
    connection = UpstreamConnection(1 << 20, ReadSize(), lambda _: released.set(), print)
    connection.connection_made(_Sink())
    for pieces, is_received, content in (
        ([b"HTTP/1.1 200 S\r\ncontent-length: 4\r\n\r\nabcd"], True, b"abcd"),
        ([b"HTTP/1.1 204 S\r\n\r\n"], True, b""),
        ([b"HTTP/1.1 200 S\r\ncontent-length: 4\r\n\r\nab", b"cd"], False, b"abcd"),
        ([b"HTTP/1.1 200 S\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n"], True, b""),
    ):
        asking = asyncio.ensure_future(connection.request(b"", b""))
        await asyncio.sleep(0)
        _feed(connection, pieces[0])
        response = await asking
        assert response.body.is_received == is_received
        for piece in pieces[1:]:
            _feed(connection, piece)
        assert response.body.is_received
        assert await response.body.whole() == content
        assert await response.body.read() == b""
        response.body.release()
        assert released.is_set()
        released.clear()


async def test_a_paused_answer_is_read_as_it_arrives() -> None:
    sink = _Sink()
    connection = UpstreamConnection(1 << 20, ReadSize(60), print, print)
    connection.connection_made(sink)
    asking = asyncio.ensure_future(connection.request(b"", b""))
    await asyncio.sleep(0)
    _feed(connection, b"HTTP/1.1 200 S\r\ncontent-length: 40\r\n\r\n" + b"a" * 20)
    _feed(connection, b"a" * 10)
    assert sink.is_paused
    _feed(connection, b"a" * 10)  # was on its way already
    response = await asking
    assert await response.body.read() == b"a" * 40
    assert not sink.is_paused
    response.body.release()


async def test_a_whole_answer_is_read_without_pauses() -> None:
    released = asyncio.Event()
    sink = _Sink()
    connection = UpstreamConnection(1 << 10, ReadSize(60), lambda _: released.set(), print)
    connection.connection_made(sink)
    asking = asyncio.ensure_future(connection.request(b"", b""))
    await asyncio.sleep(0)
    _feed(connection, b"HTTP/1.1 200 S\r\ncontent-length: 90\r\n\r\n" + b"a" * 20)
    _feed(connection, b"a" * 20)
    assert sink.is_paused
    response = await asking
    reading = asyncio.ensure_future(response.body.whole())
    await asyncio.sleep(0)
    assert not sink.is_paused
    _feed(connection, b"b" * 50)
    assert not sink.is_paused
    assert await reading == b"a" * 40 + b"b" * 50
    response.body.release()
    assert released.is_set()


@pytest.mark.parametrize(
    ("length", "sent", "error"),
    [(90, 50, http.CutOffError), (5_000, 1_100, http.TooLargeError)],
)
async def test_a_whole_answer_that_is_cut_or_too_large_fails(
    length: int, sent: int, error: type[Exception]
) -> None:
    connection = UpstreamConnection(1 << 10, ReadSize(), print, print)
    connection.connection_made(_Sink())
    asking = asyncio.ensure_future(connection.request(b"", b""))
    await asyncio.sleep(0)
    _feed(connection, b"HTTP/1.1 200 S\r\ncontent-length: %d\r\n\r\n" % length)
    reading = asyncio.ensure_future((await asking).body.whole())
    await asyncio.sleep(0)
    _feed(connection, b"a" * sent)
    connection.connection_lost(None)
    with pytest.raises(error):
        await reading


def _feed(connection: UpstreamConnection, data: bytes) -> None:
    """Have a connection read data."""
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


class _Sink(asyncio.Transport):
    """Takes what is written and lets it be."""

    is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        pass


@each_row("code", [*range(0x09), *range(0x0A, 0x20), 0x7F])
def test_a_header_cannot_smuggle_another(code: int) -> None:
    for name, value in (("beta", f"a{chr(code)}x-evil: 1"), (f"beta{chr(code)}", "a")):
        with pytest.raises(GatewayError) as refused:
            http.fields([("before", "b"), (name, value)])
        assert refused.value.param == name


def test_a_header_may_hold_what_is_not_printable() -> None:
    assert http.fields([("beta", "a\tb\u200b"), ("c", "")]) == "beta: a\tb\u200b\r\nc: \r\n"


async def test_a_cancelled_connection_attempt_leaves_nothing() -> None:
    asked = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await say_nothing(reader, writer)

    async with serving(listen) as port, http.Client(60, http.Proxies({})) as client:
        asking = asyncio.ensure_future(ask(client, f"https://127.0.0.1:{port}/"))
        await asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_an_unfinished_tls_handshake_times_out() -> None:
    async with serving(say_nothing) as port, http.Client(0.05, http.Proxies({})) as client:
        with pytest.raises(TimeoutError):
            await ask(client, f"https://127.0.0.1:{port}/")

"""Bounds on the size and the duration of fetched responses."""

import asyncio
import gzip
import zlib
from collections.abc import Callable

import pytest

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.settings import Limits
from tests.services.inference.providers.scripted_server import Connection
from tests.services.media.fetching.internet import MAX, Internet, say
from tests.waiting import until

URL = "http://media.test/a"
HEAD = b"HTTP/1.1 200 S\r\n"
GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


async def failed(net: Internet) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await net.fetcher().fetch(URL, at_most=MAX)
    return caught.value


def forever(head: bytes, piece: bytes) -> Callable[[Connection], object]:
    async def script(connection: Connection) -> None:
        await connection.send(head)
        while True:
            await connection.send(piece * (1 + 4096 // len(piece)))

    return script


TOO_LARGE = {
    "a body without a length": forever(HEAD + b"\r\n", b"x"),
    "a body of a declared length": forever(HEAD + b"content-length: 999999999\r\n\r\n", b"x"),
    "chunks": forever(CHUNKED, b"4\r\nabcd\r\n"),
    "chunks of a byte": forever(CHUNKED, b"1\r\nx\r\n"),
    "packed blocks without content": forever(
        HEAD + b"content-encoding: gzip\r\n\r\n" + GZIP_HEAD, b"\x00\x00\x00\xff\xff"
    ),
}
NO_HTTP = {
    "one header": forever(HEAD + b"x: ", b"y"),
    "many headers": forever(HEAD, b"x-more: y\r\n"),
    "a status line": forever(b"HTTP/1.1 200 ", b"S"),
    "interim answers": forever(b"", b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n"),
    "the extension of a chunk": forever(CHUNKED + b"1;", b"x"),
    "noise": forever(b"", b"\x00\x01\x02"),
    "an encoding nobody asked for": say(b"x", "content-encoding: br"),
    "what is not packed": say(b"x" * 100, "content-encoding: gzip"),
}


@pytest.mark.parametrize("script", TOO_LARGE.values(), ids=TOO_LARGE)
async def test_an_endless_body_ends_the_fetch(net: Internet, script: object) -> None:
    net.public.plays(script)
    error = await failed(net)
    assert error.reason == errors_pb2.REASON_INVALID_REQUEST
    assert error.limit == "limits.max_fetched_bytes"
    await net.public.left.wait()


@pytest.mark.parametrize("script", NO_HTTP.values(), ids=NO_HTTP)
async def test_what_is_no_answer_ends_the_fetch(net: Internet, script: object) -> None:
    net.public.plays(script)
    assert (await failed(net)).reason == errors_pb2.REASON_UPSTREAM_ERROR
    await net.public.left.wait()


def deflated(data: bytes) -> bytes:
    return zlib.compress(data, 9)


@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("deflate", deflated)])
async def test_a_packed_body_is_bounded_unpacked(
    net: Internet, name: str, pack: Callable[[bytes], bytes]
) -> None:
    net.public.plays(say(pack(b"x" * MAX), f"content-encoding: {name}"))
    assert (await net.fetcher().fetch(URL, at_most=MAX)).content == b"x" * MAX
    bomb = pack(b"\0" * (50 << 20))
    assert len(bomb) < MAX
    net.public.plays(say(bomb, f"content-encoding: {name}"))
    error = await failed(net)
    assert error.limit == "limits.max_fetched_bytes"


async def test_a_body_may_be_just_as_large_as_allowed(net: Internet) -> None:
    net.public.plays(say(b"x" * MAX))
    assert len((await net.fetcher().fetch(URL, at_most=MAX)).content) == MAX
    net.public.plays(say(b"x" * (MAX + 1)))
    assert (await failed(net)).limit == "limits.max_fetched_bytes"

    async def without_length(connection: Connection) -> None:
        await connection.send(HEAD + b"\r\n" + b"x" * (MAX + 1))
        connection.close()

    net.public.plays(without_length)
    assert (await failed(net)).limit == "limits.max_fetched_bytes"


async def wait_for_nothing(connection: Connection) -> None:
    await connection.until_left()


async def drip(connection: Connection) -> None:
    await connection.send(HEAD + b"content-length: 1000\r\n\r\nx")
    await connection.until_left()


@pytest.mark.parametrize("script", [wait_for_nothing, drip])
async def test_a_slow_server_is_left_when_time_is_over(net: Internet, script: object) -> None:
    net.public.plays(script)
    fetching = asyncio.create_task(failed(net))
    await until(lambda: net.public.requests)
    assert not fetching.done()
    net.deadlines[0].reschedule(asyncio.get_running_loop().time())
    error = await fetching
    assert error.reason == errors_pb2.REASON_UPSTREAM_TIMEOUT
    await net.public.left.wait()


async def test_a_resolver_that_stays_silent_is_left_when_time_is_over(net: Internet) -> None:
    asked = asyncio.Event()

    async def resolve(host: str) -> list[str]:
        asked.set()
        await asyncio.Event().wait()
        return []

    fetching = asyncio.create_task(net.fetcher(resolve=resolve).fetch(URL, at_most=MAX))
    await asked.wait()
    net.deadlines[0].reschedule(asyncio.get_running_loop().time())
    with pytest.raises(GatewayError, match="within 10 s"):
        await fetching


async def test_one_deadline_holds_for_all_redirects(net: Internet) -> None:
    net.public.plays(say(b"", "location: /b", 302))
    await failed(net)
    assert len(net.public.requests) == 4
    assert len(net.deadlines) == 1


async def test_a_body_that_breaks_off_is_no_content(net: Internet) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD + b"content-length: 10\r\n\r\nhalf")
        connection.close()

    net.public.plays(script)
    assert (await failed(net)).reason == errors_pb2.REASON_UPSTREAM_CONNECTION


async def test_a_server_that_refuses_connections_is_reported(net: Internet) -> None:
    async def connect(*_: object) -> None:
        raise ConnectionRefusedError

    with pytest.raises(GatewayError) as caught:
        await net.fetcher(connect=connect).fetch(URL, at_most=MAX)
    assert caught.value.reason == errors_pb2.REASON_UPSTREAM_CONNECTION


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (404, errors_pb2.REASON_INVALID_REQUEST),
        (403, errors_pb2.REASON_INVALID_REQUEST),
        (429, errors_pb2.REASON_UPSTREAM_ERROR),
        (500, errors_pb2.REASON_UPSTREAM_ERROR),
        (302, errors_pb2.REASON_UPSTREAM_ERROR),
    ],
)
async def test_a_status_that_is_no_success_is_reported(
    net: Internet, status: int, reason: int
) -> None:
    net.public.plays(say(b"words of the server", status=status))
    error = await failed(net)
    assert error.reason == reason
    assert str(status) in error.message
    assert "words" not in error.message


async def test_only_so_many_are_fetched_at_a_time(net: Internet) -> None:
    release = asyncio.Event()

    async def script(connection: Connection) -> None:
        await release.wait()
        await connection.answer(b"ok")

    net.public.plays(script)
    fetcher = net.fetcher(limits=Limits(max_parallel_fetches=2))
    fetches = [asyncio.create_task(fetcher.fetch(URL, at_most=MAX)) for _ in range(5)]
    await until(lambda: len(net.public.requests) == 2)
    assert len(net.deadlines) == 2
    release.set()
    assert [one.content for one in await asyncio.gather(*fetches)] == [b"ok"] * 5


async def test_bytes_are_admitted_before_they_are_received(net: Internet) -> None:
    admitted: list[int] = []

    async def admit(size: int) -> None:
        admitted.append(size)

    net.public.plays(say(b"x" * MAX))
    await net.fetcher().fetch(URL, at_most=MAX, admit=admit)
    assert admitted == [MAX]

    async def without_length(connection: Connection) -> None:
        await connection.send(HEAD + b"\r\n" + b"x" * MAX)
        connection.close()

    net.public.plays(without_length)
    admitted.clear()
    await net.fetcher().fetch(URL, at_most=MAX, admit=admit)
    assert sum(admitted) >= MAX


async def test_bytes_that_are_not_admitted_end_the_fetch(net: Internet) -> None:
    async def admit(size: int) -> None:
        raise GatewayError(errors_pb2.REASON_RATE_LIMITED, "no room")

    net.public.plays(say(b"x"))
    with pytest.raises(GatewayError) as caught:
        await net.fetcher().fetch(URL, at_most=MAX, admit=admit)
    assert caught.value.reason == errors_pb2.REASON_RATE_LIMITED

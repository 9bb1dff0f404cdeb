"""Small bodies that unpack to large ones, and bodies that go on after their answer."""

import asyncio
import zlib

from tests.attacks.observer import Observer
from tests.attacks.raw_sockets import all_ended, collected_sockets, connect, send
from tests.e2e.gateway import Gateway
from tests.facade.sockets import read_answers

MIB = 1 << 20


def bomb(size: int) -> bytes:
    """Return gzip that unpacks to `size` zeros."""
    packer = zlib.compressobj(9, wbits=31)
    packed = [packer.compress(bytes(MIB)) for _ in range(size // MIB)]
    return b"".join([*packed, packer.flush()])


def post(path: str, length: int, *fields: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {length}", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


async def test_a_bomb_without_a_key_is_not_unpacked(target: Gateway, observer: Observer) -> None:
    packed = bomb(256 * MIB)
    paths = ("/healthz", "/beta/v1/messages", "/article/v1/doc/read", "/elsewhere") * 5
    with collected_sockets() as held:
        async with observer.watch() as measured:
            for path in paths:
                head = post(path, len(packed), "Content-Encoding: gzip", "Connection: close")
                held.append(await connect(target, head))
            await asyncio.gather(*(send(one, packed) for one in held))
            answers = await asyncio.wait_for(all_ended(held), 30)
    measured.assert_harmless()
    for answer in answers:
        (refusal,) = read_answers(answer)
        assert refusal.status == 415
        assert b"Content-Encoding: must be identity" in refusal.body


async def test_a_body_that_nobody_wants_is_not_read(target: Gateway, observer: Observer) -> None:
    """The connection ends after 16 MiB and what the system buffers, whatever is still to come."""
    taken = 0

    async def pour(one) -> None:
        nonlocal taken
        loop = asyncio.get_running_loop()
        try:
            while True:
                await loop.sock_sendall(one, bytes(MIB))
                taken += MIB
        except ConnectionError:
            pass

    with collected_sockets() as held:
        async with observer.watch() as measured:
            for _ in range(10):
                held.append(await connect(target, post("/beta/v1/messages", 1 << 40)))
            await asyncio.wait_for(asyncio.gather(*map(pour, held)), 30)
    measured.assert_harmless()
    assert taken <= len(held) * 32 * MIB

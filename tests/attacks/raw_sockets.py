"""Many connections at once, as a caller without a key holds them."""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.e2e.gateway import Gateway


@contextmanager
def collected_sockets() -> Iterator[list[socket.socket]]:
    """Collect sockets; close them at the end."""
    sockets: list[socket.socket] = []
    try:
        yield sockets
    finally:
        for one in sockets:
            one.close()


async def connect(target: Gateway, sends: bytes) -> socket.socket:
    """Open a connection and send what goes at once."""
    loop = asyncio.get_running_loop()
    opened = socket.socket()
    opened.setblocking(False)
    await loop.sock_connect(opened, ("127.0.0.1", target.port))
    if sends:
        await send(opened, sends)
    return opened


async def send(opened: socket.socket, data: bytes) -> None:
    """Send as much as the gateway takes; it may have closed the connection."""
    try:
        await asyncio.get_running_loop().sock_sendall(opened, data)
    except ConnectionError:
        pass


async def all_ended(sockets: Sequence[socket.socket]) -> list[bytes]:
    """Read every connection to its end; return what each was answered."""

    async def ended(opened: socket.socket) -> bytes:
        data = b""
        try:
            while piece := await asyncio.get_running_loop().sock_recv(opened, 65536):
                data += piece
        except ConnectionError:
            pass
        return data

    return list(await asyncio.gather(*map(ended, sockets)))

"""Requests as bytes over a socket, for what no HTTP client would send."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

ENOUGH_S = 20.0


@dataclass(frozen=True)
class Answer:
    """One answer, as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@contextmanager
def refusing_port() -> Iterator[int]:
    """Return a port that refuses connections, and is nobody else's meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        yield port


def port_of(url: str) -> int:
    """Return the port of an address without a path."""
    return int(url.rpartition(":")[2])


class _Received(asyncio.Protocol):
    """Protocol that collects the bytes of a connection until it ends, also by a reset."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


async def exchange(port: int, *pieces: bytes) -> bytes:
    """Send pieces, each in a packet of its own; return all that is answered until the end."""
    loop = asyncio.get_running_loop()
    transport, received = await loop.create_connection(_Received, "127.0.0.1", port)
    try:
        async with asyncio.timeout(ENOUGH_S):
            for piece in pieces:
                transport.write(piece)
                await asyncio.sleep(0.002)
            await received.ended.wait()
    finally:
        transport.close()
    return bytes(received.data)


def read_answers(data: bytes) -> list[Answer]:
    """Return the answers in `data`, all of which have their length."""
    answers = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value for name, value in (field.split(": ", 1) for field in fields)
        }
        length = int(headers.get("content-length", "0"))
        answers.append(Answer(int(line.split()[1]), headers, data[:length]))
        data = data[length:]
    return answers

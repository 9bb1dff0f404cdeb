"""Requests as bytes over a socket, for what no HTTP client would send."""

import asyncio
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


def port_of(url: str) -> int:
    """Return the port of an address without a path."""
    return int(url.rpartition(":")[2])


async def exchange(port: int, *pieces: bytes) -> bytes:
    """Send pieces, each in a packet of its own; return all that is answered until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(ENOUGH_S):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.002)
            return await reader.read(-1)
    except ConnectionError:
        return b""
    finally:
        writer.close()


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

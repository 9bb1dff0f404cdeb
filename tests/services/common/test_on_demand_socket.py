"""Sockets whose servers start with the first connection, over real Unix sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.common.on_demand_socket import OnDemandSocket

LARGE = b"x" * (1 << 20) + b"\n"


class Echo:
    """A server that sends each line back; `failures` starts fail before the first that does not."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.starts = 0
        self._server: asyncio.Server | None = None

    async def start(self, path: str) -> None:
        self.starts += 1
        if self.starts <= self.failures:
            raise OSError("no server")
        self._server = await asyncio.start_unix_server(self._serve, path, limit=2 << 20)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    @staticmethod
    async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()


@asynccontextmanager
async def listening(path: Path, echo: Echo) -> AsyncIterator[OnDemandSocket]:
    waiting = OnDemandSocket(str(path), echo.start)
    waiting.listen()
    await waiting.serve()
    try:
        yield waiting
    finally:
        waiting.close()
        echo.close()
        await waiting.wait_closed()


async def ask(path: Path, line: bytes = b"hello\n") -> bytes:
    """Send a line over a connection of its own, and return all that comes back."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(line)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_server_nobody_calls_is_not_started(tmp_path: Path) -> None:
    echo = Echo()
    async with listening(tmp_path / "s", echo):
        pass
    assert echo.starts == 0


async def test_the_first_and_later_callers_are_answered(tmp_path: Path) -> None:
    echo = Echo()
    async with listening(tmp_path / "s", echo):
        assert [await ask(tmp_path / "s") for _ in range(3)] == [b"hello\n"] * 3
    assert echo.starts == 1


async def test_first_callers_at_once_start_one_server(tmp_path: Path) -> None:
    echo = Echo()
    async with listening(tmp_path / "s", echo):
        answers = await asyncio.gather(*(ask(tmp_path / "s") for _ in range(20)))
    assert answers == [b"hello\n"] * 20
    assert echo.starts == 1


async def test_large_messages_of_a_first_caller_pass(tmp_path: Path) -> None:
    async with listening(tmp_path / "s", Echo()):
        assert await ask(tmp_path / "s", LARGE) == LARGE


async def test_later_callers_reach_the_server_itself(tmp_path: Path) -> None:
    async with listening(tmp_path / "s", Echo()):
        before = (tmp_path / "s").stat().st_ino
        await ask(tmp_path / "s")
        assert (tmp_path / "s").stat().st_ino != before
        assert await ask(tmp_path / "s") == b"hello\n"


async def test_a_caller_who_connects_before_serving_waits(tmp_path: Path) -> None:
    echo = Echo()
    waiting = OnDemandSocket(str(tmp_path / "s"), echo.start)
    waiting.listen()
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
    writer.write(b"hello\n")
    await waiting.serve()
    assert await reader.readline() == b"hello\n"
    waiting.close()
    echo.close()
    await waiting.wait_closed()
    assert await reader.read() == b""
    writer.close()


async def test_a_failed_start_is_tried_again(tmp_path: Path) -> None:
    echo = Echo(failures=1)
    async with listening(tmp_path / "s", echo):
        with pytest.raises(ConnectionResetError):
            await ask(tmp_path / "s")
        assert await ask(tmp_path / "s") == b"hello\n"
    assert echo.starts == 2


async def test_a_closed_socket_takes_no_connections(tmp_path: Path) -> None:
    async with listening(tmp_path / "s", Echo()):
        pass
    with pytest.raises(OSError):
        await ask(tmp_path / "s")


async def test_a_socket_left_behind_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "s"))
    async with listening(tmp_path / "s", Echo()):
        assert await ask(tmp_path / "s") == b"hello\n"

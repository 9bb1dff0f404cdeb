"""Counting of the round trips between a gateway and PostgreSQL.

They are counted by a proxy: whatever a connection sends after an answer begins one.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from tests.databases import PostgreSQL

_PIECE = 1 << 16


class CountingProxy:
    """Forwards connections to a Unix socket.

    Attributes:
        round_trips: how many there were until now.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.round_trips = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a connection, until one of its ends closes it."""
        server_reader, server_writer = await asyncio.open_unix_connection(self._path)
        is_answered = True

        async def send() -> None:
            nonlocal is_answered
            while piece := await reader.read(_PIECE):
                self.round_trips += is_answered
                is_answered = False
                server_writer.write(piece)

        async def answer() -> None:
            nonlocal is_answered
            while piece := await server_reader.read(_PIECE):
                is_answered = True
                writer.write(piece)

        pumps = [asyncio.create_task(send()), asyncio.create_task(answer())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            for end in (writer, server_writer):
                end.close()


@asynccontextmanager
async def counting_proxy(server: PostgreSQL) -> AsyncIterator[tuple[CountingProxy, str]]:
    """Run a proxy in front of a server; give it and the URL of the database through it."""
    url = urlsplit(server.url)
    [folder] = parse_qs(url.query)["host"]
    proxy = CountingProxy(f"{folder}/.s.PGSQL.5432")
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield proxy, f"postgresql://{url.username}@127.0.0.1:{port}{url.path}"
    finally:
        listening.close()

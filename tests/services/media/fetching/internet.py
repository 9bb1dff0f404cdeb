"""Names and addresses that lead to servers of a test, and what was resolved and connected to."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Container, Sequence
from contextlib import asynccontextmanager
from typing import Any

from yarl import URL

from services.common.settings import Limits
from services.media.fetching.addresses import Address, is_public
from services.media.fetching.fetcher import Fetcher
from tests.services.inference.providers.scripted_server import (
    Connection,
    ScriptedServer,
    scripted_server,
)

PUBLIC = "93.184.215.14"
PUBLIC_6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
MAX = 100_000


class Internet:
    """One public server, at two addresses, and one that nobody may reach, at all others.

    Attributes:
        public: the one.
        forbidden: the other.
        names: of each host the answers of its resolver, one after the other; the last stays.
        lookups: the hosts that were resolved.
        dialled: the addresses that were connected to, with the port.
        deadlines: of each fetch, what bounds its time.
    """

    def __init__(self, public: ScriptedServer, forbidden: ScriptedServer) -> None:
        self.public = public
        self.forbidden = forbidden
        self.names: dict[str, list[list[str]]] = {}
        self.lookups: list[str] = []
        self.dialled: list[tuple[str, int]] = []
        self.deadlines: list[asyncio.Timeout] = []

    async def resolve(self, host: str) -> Sequence[str]:
        """Answer for a host; numbers are read as the system's resolver reads them."""
        self.lookups.append(host)
        if host in self.names:
            answers = self.names[host]
            return answers.pop(0) if len(answers) > 1 else answers[0]
        addresses = socket.getaddrinfo(
            host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
        return [str(info[4][0]) for info in addresses]

    async def connect(self, addresses: Sequence[Address], port: int) -> socket.socket:
        """Connect to the server that stands for the first address."""
        address = str(addresses[0])
        self.dialled.append((address, port))
        server = self.public if address in (PUBLIC, PUBLIC_6) else self.forbidden
        return await dial(URL(server.url).port)

    def deadline(self, seconds: float) -> asyncio.Timeout:
        """Bound a fetch by what the test does with it."""
        assert seconds == Limits().fetch_timeout_s
        self.deadlines.append(asyncio.timeout(None))
        return self.deadlines[-1]

    def fetcher(self, **changed: Any) -> Fetcher:
        """Return a fetcher that lives in this internet, with the real rule of what is public."""
        fields = {
            "limits": Limits(),
            "resolve": self.resolve,
            "is_allowed": is_public,
            "connect": self.connect,
            "timeout": self.deadline,
        }
        return Fetcher(**(fields | changed))


async def dial(port: int | None) -> socket.socket:
    """Return a socket connected to a port of the loopback."""
    raw = socket.socket()
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
    return raw


@asynccontextmanager
async def internet() -> AsyncIterator[Internet]:
    """Return one, in which `media.test` leads to the public server."""
    async with scripted_server() as public, scripted_server() as forbidden:
        one = Internet(public, forbidden)
        one.names["media.test"] = [[PUBLIC]]
        one.names["localhost"] = [["::1", "127.0.0.1"]]
        public.plays(say(b"picture", "content-type: image/png"))
        forbidden.plays(say(b"secret"))
        yield one


def say(body: bytes, headers: str = "x: y", status: int = 200) -> Callable[[Connection], Any]:
    """Return a script that gives a whole answer."""

    async def script(connection: Connection) -> None:
        await connection.answer(body, status, headers)

    return script


def redirect(location: str, status: int = 302) -> Callable[[Connection], Any]:
    """Return a script that leads elsewhere."""
    return say(b"elsewhere", f"location: {location}", status)


@asynccontextmanager
async def tls_server(
    context: ssl.SSLContext, answer: bytes, address: str = "127.0.0.1"
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Serve one answer over TLS; give the port, and the heads that came."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, address, 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1], heads


class AnyPort(Container[int]):
    """Every port."""

    def __contains__(self, port: object) -> bool:
        return True

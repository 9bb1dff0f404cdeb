"""A provider on a socket that is bound before the gateway starts, in the test's own process.

It answers a request with what `answers` holds for the model that the request names.
"""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress

# Gemini names the model in the path.
_IN_PATH = re.compile(rb"/models/([^:/ ]+):")


@contextmanager
def bound_socket() -> Iterator[socket.socket]:
    """Bind a socket of the loopback address, on which nobody accepts yet."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        yield listening


@asynccontextmanager
async def answering(
    listening: socket.socket, answers: Mapping[str, Sequence[bytes]]
) -> AsyncIterator[None]:
    """Answer on a socket with the pieces of the model that is asked for."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError), closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            body = await reader.readexactly(int(length[1])) if length else b""
            named = _IN_PATH.search(head)
            if not named and not body:  # lists of models are asked for in the background
                return
            model = named[1].decode() if named else json.loads(body)["model"]
            for piece in answers[model]:
                writer.write(piece)
                if writer.transport.get_write_buffer_size() > 1 << 18:
                    await writer.drain()

    # The server closes its socket; the bound one serves other tests.
    server = await asyncio.start_server(serve, sock=listening.dup())
    async with server:
        yield

"""A provider that never stops: `python -m tests.attacks.endless PORT`.

It answers every chat with a stream of events as fast as they are read, until its reader leaves.
A request counts as cut short when that happens; `GET /cut` says how many were.
"""

import asyncio
import json
import sys

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_DELTA = {"index": 0, "delta": {"role": "assistant", "content": "word " * 50}}
_EVENT = (
    b"data: %b\n\n"
    % json.dumps(
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [_DELTA],
        }
    ).encode()
)
_BATCH = _EVENT * 16
_CHUNK = b"%x\r\n%b\r\n" % (len(_BATCH), _BATCH)


class Endless:
    """The provider; `cut` counts the streams whose readers left."""

    def __init__(self) -> None:
        self.cut = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"POST"):
                await self._stream(writer)
            body = str(self.cut).encode() if b" /cut " in head else b'{"object":"list","data":[]}'
            writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ")
            writer.write(b"%d\r\n\r\n%b" % (len(body), body))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD)
        try:
            while True:
                writer.write(_CHUNK)
                await writer.drain()
        finally:
            self.cut += 1


async def main(port: int) -> None:
    """Serve until the process is stopped."""
    server = await asyncio.start_server(Endless().serve, "127.0.0.1", port)
    print(f"endless on {port}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))

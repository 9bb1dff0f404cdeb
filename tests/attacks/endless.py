"""A provider that never stops: `python -m tests.attacks.endless PORT`, a free one for 0.

It answers every chat with a stream of events, far faster than a model writes them,
until its reader leaves.
"""

import asyncio
import json
import sys

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_NO_MODELS = (
    b'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 27\r\n\r\n{"object":"list","data":[]}'
)
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


_PAUSE_S = 0.5


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one request."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"POST"):
            writer.write(_HEAD)
            while True:
                writer.write(_CHUNK)
                await writer.drain()
                await asyncio.sleep(_PAUSE_S)
        writer.write(_NO_MODELS)
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main(port: int) -> None:
    """Serve until the process is stopped."""
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=2048)
    print(f"endless on {server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))

"""A provider that reads requests completely and answers late, in a process of its own.

`python -m tests.attacks.slow_upstream` listens on a free port, writes it on a line, and serves
until its standard input ends. The model of a request is the number of seconds until the answer,
whose text is the size and the SHA-256 of the request's body.
"""

import asyncio
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.e2e.processes import PYTHON, ROOT

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model": ?"([0-9.]+)"')
_AT_ONCE = 1 << 18


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            left = size = int(length[1]) if length else 0
            digest = hashlib.sha256()
            first = last = b""
            while left:
                piece = await reader.readexactly(min(left, _AT_ONCE))
                left -= len(piece)
                digest.update(piece)
                first, last = first or piece, last[-_AT_ONCE:] + piece
            delay = _MODEL.search(first) or _MODEL.search(last)
            await asyncio.sleep(float(delay[1]) if delay else 0)
            message = {"role": "assistant", "content": f"{size} {digest.hexdigest()}"}
            answer = json.dumps(
                {
                    "id": "a",
                    "object": "chat.completion",
                    "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
                }
            ).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
                b"%d\r\n\r\n%s" % (len(answer), answer)
            )
            await writer.drain()
    writer.close()


async def main() -> None:
    """Serve until the standard input ends."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=_AT_ONCE)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


@contextmanager
def slow_upstream() -> Iterator[int]:
    """Run the provider; yield its port."""
    command = [PYTHON, "-m", "tests.attacks.slow_upstream"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


if __name__ == "__main__":
    asyncio.run(main())

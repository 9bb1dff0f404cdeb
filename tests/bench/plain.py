"""The yardstick of files: aiohttp that takes bytes and gives bytes, and keeps nothing.

python -m tests.bench.plain
"""

import asyncio

import uvloop
from aiohttp import web

from facade.transfers.file_upload import CHUNK


async def take(request: web.Request) -> web.Response:
    """Read a body to its end."""
    size = 0
    while data := await request.content.read(CHUNK):
        size += len(data)
    return web.json_response({"bytes": size})


async def give(request: web.Request) -> web.StreamResponse:
    """Send as many bytes as the path says."""
    size = int(request.match_info["size"])
    response = web.StreamResponse()
    response.content_length = size
    await response.prepare(request)
    chunk = bytes(CHUNK)
    for start in range(0, size, CHUNK):
        await response.write(chunk if size - start >= CHUNK else chunk[: size - start])
    return response


async def main() -> None:
    """Serve on a free port, and say which."""
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/", take)
    app.router.add_get("/{size}", give)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"plain server on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())

"""The yardstick: the least that a proxy on aiohttp and uvloop can do, parsing nothing.

python -m tests.bench.proxy UPSTREAM_PORT
"""

import asyncio
import sys

import aiohttp
import uvloop
from aiohttp import web


def application(upstream: str) -> web.Application:
    """Return an application that passes every request on, and every answer back."""
    client = web.AppKey("client", aiohttp.ClientSession)

    async def open_client(app: web.Application) -> None:
        app[client] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), auto_decompress=False
        )

    async def close_client(app: web.Application) -> None:
        await app[client].close()

    async def forward(request: web.Request) -> web.StreamResponse:
        async with request.app[client].post(
            upstream + request.path,
            data=await request.read(),
            headers={"content-type": "application/json"},
        ) as answer:
            kind = answer.headers["content-type"]
            if not kind.startswith("text/event-stream"):
                body = await answer.read()
                return web.Response(body=body, status=answer.status, content_type=kind)
            response = web.StreamResponse(headers={"content-type": kind})
            await response.prepare(request)
            async for data in answer.content.iter_any():
                await response.write(data)
            await response.write_eof()
            return response

    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/{path:.*}", forward)
    app.on_startup.append(open_client)
    app.on_cleanup.append(close_client)
    return app


async def main() -> None:
    """Serve on a free port, and say which."""
    runner = web.AppRunner(application(f"http://127.0.0.1:{sys.argv[1]}"), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"proxy on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())

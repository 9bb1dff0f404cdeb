"""A provider's key in a file: a new one is used after SIGHUP, without a restart."""

import asyncio
import os
import signal
from pathlib import Path

import aiohttp
from aiohttp import web

from tests.e2e.gateway import gateway
from tests.gateway_in_process import serving
from tests.waiting import until

ANSWER = {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
CHAT = {"model": "rotating/a", "messages": [{"role": "user", "content": "Hello"}]}


async def test_a_new_key_is_used_after_sighup(tmp_path: Path) -> None:
    shown: list[str] = []
    held = asyncio.Event()
    goes_on = asyncio.Event()

    async def chat(request: web.Request) -> web.Response:
        shown.append(request.headers["authorization"])
        if request.headers["authorization"] == "Bearer sk-first" and len(shown) == 2:
            held.set()
            await goes_on.wait()
        return web.json_response(ANSWER)

    upstream = web.Application()
    upstream.add_routes([web.post("/v1/chat/completions", chat)])
    secret = tmp_path / "secret"
    secret.write_text("sk-first\n")
    async with serving(upstream) as url:
        settings = (
            f'[providers.rotating]\nkind = "openai"\nbase_url = "{url}/v1"\n'
            f'api_key_file = "{secret}"\n'
        )
        starting = gateway(tmp_path, 1, settings=settings)
        at = await asyncio.to_thread(starting.__enter__)
        try:
            headers = {"authorization": f"Bearer {at.key}"}
            async with aiohttp.ClientSession(at.address, headers=headers) as http:

                async def ask() -> int:
                    async with http.post("/beta/v1/chat/completions", json=CHAT) as answer:
                        return answer.status

                assert await ask() == 200
                running = asyncio.create_task(ask())
                await held.wait()
                secret.write_text("sk-second\n")
                os.kill(at.process.pid, signal.SIGHUP)

                async def is_new() -> bool:
                    assert await ask() == 200
                    return shown[-1] == "Bearer sk-second"

                await until(is_new, every_s=0.05)
                goes_on.set()
                assert await running == 200

                # A file that is gone: the key in force stays.
                secret.unlink()
                os.kill(at.process.pid, signal.SIGHUP)
                await asyncio.to_thread(at.process.wait_for, "settings not reloaded")
                assert await ask() == 200
                assert shown[-1] == "Bearer sk-second"
            assert "sk-first" not in at.process.output
            assert "sk-second" not in at.process.output
        finally:
            await asyncio.to_thread(starting.__exit__, None, None, None)

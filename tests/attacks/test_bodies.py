"""Bodies that a caller sends to exhaust the gateway's memory or to keep its loop busy."""

import io
import json

import aiohttp

from tests.attacks.observer import Observer
from tests.e2e.gateway import Gateway

MIB = 1 << 20


async def test_a_long_plain_body_is_harmless(
    target: Gateway, attacker_key: str, observer: Observer
) -> None:
    body = {
        "model": "sandbox/echo",
        "messages": [{"role": "user", "content": "x" * (8 * MIB)}],
    }
    async with aiohttp.ClientSession() as http, observer.watch() as measured:
        async with http.post(
            f"{target.address}/beta/v1/chat/completions",
            data=io.BytesIO(json.dumps(body).encode()),
            headers={
                "Authorization": f"Bearer {attacker_key}",
                "Content-Type": "application/json",
            },
        ) as response:
            assert response.status == 200
    measured.assert_harmless()

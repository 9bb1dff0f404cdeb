"""Texts that a careless reader takes a square of their length for: nobody else notices."""

import asyncio
import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import aiohttp
import pytest

from tests.attacks.observer import Observer
from tests.attacks.send_attempts import headers_of, make_names
from tests.e2e.gateway import Gateway

KB = 1 << 10
MB = 1 << 20
LEAVES = [{"text": "a"}, {"text": "b", "bold": True}]
CELL = {"type": "table-cell", "children": []}
ROW = {"type": "table-row", "children": [CELL] * 50}

BLOCKS: dict[str, list[Mapping[str, Any]]] = {
    "leaves of one kind": [{"type": "paragraph", "children": [{"text": "a"}] * 130_000}],
    "leaves of two kinds": [{"type": "paragraph", "children": LEAVES * 40_000}],
    "blocks with leaves": [{"type": "paragraph", "children": LEAVES * 100}] * 400,
    "tables": [{"type": "table", "children": [ROW] * 200}] * 4,
    "white space": [
        {"type": "paragraph", "children": [{"text": "a" + " " * 49_000 + "b "}]},
        {"type": "paragraph", "children": [{"text": "a" + " " * 49_000 + "b", "type": "latex"}]},
    ],
    "images": [{"type": "image", "image": [{"url": "http://a"}] * 80_000}],
}
ACCENTS = "a" + "\u0300\u0316" * 400_000
MESSAGES: dict[str, object] = {
    "accents": ACCENTS,
    "a web address": [
        {"type": "image", "source": {"type": "url", "url": f"http://{'a' * MB} "}},
    ],
    "lines of a long answer": "I like tea. " * 100_000,
    "materials": "write a text " * 100_000,
    "white space": "a" + " " * MB + "b",
}


async def post(http: aiohttp.ClientSession, target: Gateway, key: str, path: str, body: Any) -> Any:
    sent = BytesIO(json.dumps(body).encode())
    async with http.post(target.address + path, data=sent, headers=headers_of(key)) as response:
        return response.status, await response.json()


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("name", BLOCKS)
async def test_a_large_document_holds_nobody_up(
    name: str, target: Gateway, attacker_key: str, observer: Observer
) -> None:
    async with aiohttp.ClientSession() as http:
        names = await make_names(http, target.address, attacker_key)
        session = {"sessionId": names.session_id}
        insert = {**session, "path": [0], "blocks": BLOCKS[name]}
        assert len(json.dumps(insert)) < 2 * MB
        async with observer.watch() as measured:
            for path, body in (("block/insert", insert), ("doc/read", session)):
                path = f"/article/v1/{path}"
                status, answer = await post(http, target, attacker_key, path, body)
                assert status == 200, answer["message"]
    measured.assert_harmless()


@pytest.mark.thorough(one_in=2)
@pytest.mark.parametrize("name", MESSAGES)
async def test_a_remembered_text_holds_nobody_up(
    name: str, target: Gateway, attacker_key: str, observer: Observer
) -> None:
    body = {
        "model": "sandbox/echo",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": MESSAGES[name]}],
        "memory_id": name.replace(" ", "-"),
        "memory_config": {"personal_memory": True},
    }
    async with aiohttp.ClientSession() as http, observer.watch() as measured:
        status, answer = await post(http, target, attacker_key, "/beta/v1/messages", body)
        assert status in (200, 400), answer
        await asyncio.sleep(0)
    measured.assert_harmless()

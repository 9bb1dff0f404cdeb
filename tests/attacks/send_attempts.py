"""Sends malformed requests to a gateway, some at once, and judges the answers."""

import asyncio
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import aiohttp
from yarl import URL

from tests.attacks.structure import Attempt
from tests.attacks.valid import Names
from tests.attacks.verdict import fault

AT_ONCE = 8
_MOST_FAULTS = 50  # enough of them to look at


def headers_of(key: str) -> Mapping[str, str]:
    """Return the headers that every endpoint takes."""
    return {"x-api-key": key, "compat-version": "2023-06-01", "Content-Type": "application/json"}


async def make_names(http: aiohttp.ClientSession, url: str, key: str) -> Names:
    """Make a memory with a turn, and a document with a block."""

    async def post(path: str, /, **body: object) -> Any:
        async with http.post(url + path, json=body, headers=headers_of(key)) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    messages = [{"role": "user", "content": "I live in Rome."}]
    chat = "/beta/v1/chat/completions"
    await post(chat, model="sandbox/echo", messages=messages, memory_id="fuzzed")
    made = await post("/article/v1/doc/create")
    document_id = made["data"]["article"]["outer_id"]
    opened = await post("/article/v1/session/create", docId=document_id)
    session_id = opened["data"]["sessionId"]
    blocks = [{"type": "paragraph", "children": [{"text": "The sea rises"}]}]
    insert = "/article/v1/block/insert"
    inserted = await post(insert, sessionId=session_id, path=[0], blocks=blocks)
    return Names("fuzzed", document_id, session_id, inserted["data"]["ids"][0])


async def send(
    http: aiohttp.ClientSession, url: str, key: str, attempts: Iterable[Attempt]
) -> list[str]:
    """Send requests; give what is wrong with the answers."""
    left = iter(attempts)
    faults: list[str] = []

    async def ask(attempt: Attempt) -> str:
        target = URL(url + attempt.path, encoded=True)
        body = None if attempt.body is None else BytesIO(attempt.body)
        try:
            async with http.request(
                attempt.method, target, data=body, headers=headers_of(key)
            ) as response:
                answer = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            return repr(error)
        return fault(attempt, response.status, response.headers, answer)

    async def work() -> None:
        for attempt in left:
            if len(faults) >= _MOST_FAULTS:
                return
            if wrong := await ask(attempt):
                sent = (attempt.body or b"")[:500]
                faults.append(
                    f"{attempt.method} {attempt.path} {attempt.what}: {wrong} to {sent!r}"
                )

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return faults

"""Small requests that name large content, sent by many callers at once to a slow provider.

What such requests may take is in docs/limits.md: a window per request for files that are sent as
they are, and at most the user's share of `limits.max_buffered_bytes_per_user` for all else, or a
single request that exceeds it. The shares of these tests are smaller than the defaults.
"""

import asyncio
import base64
import hashlib
import io
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.attacks.observer import Observer
from tests.attacks.slow_upstream import slow_upstream
from tests.e2e.gateway import Gateway
from tests.thoroughness import is_soak

MIB = 1 << 20
FILE = 40 * MIB
STORED = 24 * MIB
# Bytes of all that one user's requests hold, and what may be added to it by a request that passes
# alone, by memory that the allocator keeps, and by work that waits in queues.
SHARE = 64 * MIB
SLACK_MB = 120
SETTINGS = f"""
[limits]
max_buffered_bytes_per_user = {SHARE}
max_buffer_wait_s = 5
max_parallel_requests_per_user = 64
"""
# Callers at once with a body of 8 MiB: several times those that the share has room for.
INSISTENT = 56 if is_soak() else 24
# Callers at once who name a file, and who name a stored item: more than the share has room for.
NAMING_FILES = 60 if is_soak() else 12
NAMING_ITEMS = 20 if is_soak() else 8
# Memory for each byte of bodies: what was parsed, the provider's body, and what the process of the
# parser returns.
BODY_COST = 3
# Answers, and refusals that name when to try again: of the user's share, and of a process that has
# too much to do, as it may on a busy machine.
ANSWERED = {200, 429, 503}
# Memory for each byte of stored items, of which one request is admitted in any case.
ITEM_COST = 6

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.thorough]


@pytest.fixture(scope="module")
def upstream_port() -> Iterator[int]:
    with slow_upstream() as port:
        yield port


@pytest.fixture(scope="module")
def settings() -> str:
    return SETTINGS


class Caller:
    """A caller with a key of its own."""

    def __init__(self, http: aiohttp.ClientSession, target: Gateway, key: str) -> None:
        self._http = http
        self._target = target
        self._headers = {"Authorization": f"Bearer {key}"}

    async def get(self, path: str) -> tuple[int, dict[str, Any]]:
        """Get JSON; return the status and the answer, whose shape is checked."""
        async with self._http.get(self._target.address + path, headers=self._headers) as answer:
            return await _checked(answer)

    async def post(self, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        """Send JSON; return the status and the answer, whose shape is checked."""
        async with self._http.post(
            self._target.address + path,
            data=io.BytesIO(json.dumps(body).encode()),
            headers={**self._headers, "Content-Type": "application/json"},
        ) as answer:
            return await _checked(answer)

    async def keep(self, name: str, content: bytes) -> str:
        """Store a file; return its id."""
        form = aiohttp.FormData()
        form.add_field("purpose", "user_data")
        form.add_field("file", io.BytesIO(content), filename=name)
        async with self._http.post(
            f"{self._target.address}/beta/v1/files", data=form, headers=self._headers
        ) as answer:
            description = await answer.json()
            assert answer.status == 200, description
            return str(description["id"])

    async def ask(self, *parts: Any, model: str = "1") -> tuple[int, dict[str, Any]]:
        """Send a chat with some parts of content."""
        messages = [{"role": "user", "content": [{"type": "text", "text": "See"}, *parts]}]
        body = {"model": f"openai/{model}", "messages": messages}
        return await self.post("/beta/v1/chat/completions", body)

    async def respond(self, **fields: Any) -> tuple[int, dict[str, Any]]:
        """Generate a response."""
        return await self.post("/beta/v1/responses", {"model": "openai/1", **fields})


async def _checked(answer: aiohttp.ClientResponse) -> tuple[int, dict[str, Any]]:
    body = json.loads(await answer.read())
    if answer.status != 200:
        assert body["error"]["message"] and body["error"]["type"]
    if answer.status in (429, 503):
        assert int(answer.headers["Retry-After"]) > 0
    if answer.status == 503:
        # Of a process with too much to do; a broken part would be another failure.
        assert body["error"]["code"] == "unavailable", body
    return answer.status, body


@pytest_asyncio.fixture(loop_scope="module")
async def caller(target: Gateway, attacker_key: str) -> AsyncIterator[Caller]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:
        yield Caller(http, target, attacker_key)


def counted(answers: list[tuple[int, Any]]) -> Counter[int]:
    return Counter(status for status, _ in answers)


def named(file_id: str) -> dict[str, Any]:
    return {"type": "file", "file": {"file_id": file_id}}


@pytest.mark.soak
async def test_bodies_are_charged_until_they_are_answered(
    caller: Caller, observer: Observer
) -> None:
    """The parsed body is held for as long as the provider takes."""
    text = {"type": "text", "text": "x" * (8 * MIB)}

    async def insist() -> int:
        refusals = 0
        while (status := (await caller.ask(text, model="1"))[0]) != 200:
            assert status in ANSWERED
            refusals += 1
        return refusals

    async with observer.watch() as measured:
        refusals = await asyncio.gather(*[insist() for _ in range(INSISTENT)])
    assert sum(refusals) > 0
    measured.assert_harmless(BODY_COST * SHARE / MIB + SLACK_MB)


async def test_files_are_sent_without_being_held(caller: Caller, observer: Observer) -> None:
    content = b"%PDF-1.4\n" + random.Random(1).randbytes(FILE - 9)
    file_id = await caller.keep("large.pdf", content)
    async with observer.watch() as measured:
        answers = await asyncio.gather(*[caller.ask(named(file_id)) for _ in range(NAMING_FILES)])
    # Each is answered: as they are sent one after the other, some may not find room in time.
    assert counted(answers).keys() <= ANSWERED, counted(answers)
    assert counted(answers)[200] > SHARE // FILE
    digests = {
        body["choices"][0]["message"]["content"] for status, body in answers if status == 200
    }
    file = {"filename": "large.pdf"}
    file["file_data"] = "data:application/pdf;base64," + base64.b64encode(content).decode()
    parts = [{"type": "text", "text": "See"}, {"type": "file", "file": file}]
    expected = {"model": "1", "messages": [{"role": "user", "content": parts}]}
    sent = json.dumps(expected, separators=(",", ":")).encode()
    assert digests == {f"{len(sent)} {hashlib.sha256(sent).hexdigest()}"}
    measured.assert_harmless(SHARE / MIB + SLACK_MB)


async def test_texts_of_files_stay_within_the_share(caller: Caller, observer: Observer) -> None:
    file_id = await caller.keep("large.txt", b"some text\n" * (10 * MIB // 10))
    async with observer.watch() as measured:
        answers = await asyncio.gather(*[caller.ask(named(file_id)) for _ in range(30)])
    assert counted(answers).keys() <= ANSWERED, counted(answers)
    assert counted(answers)[200] >= 1
    measured.assert_harmless(SHARE / MIB + SLACK_MB)


@pytest.mark.soak
async def test_stored_responses_stay_within_the_share(caller: Caller, observer: Observer) -> None:
    status, first = await caller.respond(input="x" * STORED)
    assert status == 200, first
    async with observer.watch() as measured:
        answers = await asyncio.gather(
            *[
                caller.respond(input="Go on", previous_response_id=first["id"], store=False)
                for _ in range(NAMING_ITEMS)
            ]
        )
    assert counted(answers).keys() <= ANSWERED, counted(answers)
    assert counted(answers)[200] >= 1
    measured.assert_harmless(ITEM_COST * STORED / MIB + SLACK_MB)


@pytest.mark.soak
async def test_conversations_stay_within_the_share(caller: Caller, observer: Observer) -> None:
    item = {"type": "message", "role": "user", "content": "x" * (STORED // 2)}
    status, conversation = await caller.post("/beta/v1/conversations", {"items": [item]})
    assert status == 200, conversation
    async with observer.watch() as measured:
        answers = await asyncio.gather(
            *[
                caller.respond(input="Go on", conversation=conversation["id"], store=False)
                for _ in range(NAMING_ITEMS)
            ]
        )
    assert counted(answers).keys() <= ANSWERED, counted(answers)
    assert counted(answers)[200] >= 1
    measured.assert_harmless(ITEM_COST * STORED / 2 / MIB + SLACK_MB)


@pytest.mark.soak
async def test_memories_stay_within_the_share(caller: Caller, observer: Observer) -> None:
    def asked(text: str) -> dict[str, Any]:
        return {
            "model": "openai/1",
            "messages": [{"role": "user", "content": text}],
            "memory_id": "large",
        }

    path = "/beta/v1/chat/completions"
    for word in ("one ", "two "):
        status, body = await caller.post(path, asked(word * (STORED // 16)))
        assert status == 200, body
    read_only = {**asked("Go on"), "memory_mode": "read_only"}
    async with observer.watch() as measured:
        answers = await asyncio.gather(*[caller.post(path, read_only) for _ in range(NAMING_ITEMS)])
    assert counted(answers).keys() <= ANSWERED, counted(answers)
    assert counted(answers)[200] >= 1
    measured.assert_harmless(ITEM_COST * STORED / 2 / MIB + SLACK_MB)


@pytest.mark.soak
async def test_converted_files_stay_within_the_share(caller: Caller, observer: Observer) -> None:
    content = b"a,b\n" + b"1,2\n" * (8 * MIB // 4)
    file_id = await caller.keep("table.csv", content)
    async with observer.watch() as measured:
        answers = await asyncio.gather(*[caller.ask(named(file_id)) for _ in range(20)])
    assert counted(answers).keys() <= ANSWERED, counted(answers)
    assert counted(answers)[200] >= 1
    measured.assert_harmless(SHARE / MIB + SLACK_MB)


@pytest.mark.soak
async def test_retrieved_responses_stay_within_the_share(
    caller: Caller, observer: Observer
) -> None:
    status, first = await caller.respond(input="x" * STORED)
    assert status == 200, first
    path = f"/beta/v1/responses/{first['id']}/input_items"
    async with observer.watch() as measured:
        answers = await asyncio.gather(*[caller.get(path) for _ in range(NAMING_ITEMS)])
    assert counted(answers).keys() <= ANSWERED, counted(answers)
    assert counted(answers)[200] >= 1
    measured.assert_harmless(ITEM_COST * STORED / MIB + SLACK_MB)


async def test_callers_who_leave_while_waiting_free_their_places(caller: Caller) -> None:
    file_id = await caller.keep("large.txt", b"some text\n" * (10 * MIB // 10))
    first = asyncio.create_task(caller.ask(named(file_id), model="2"))
    leaving = [asyncio.create_task(caller.ask(named(file_id), model="30")) for _ in range(20)]
    await asyncio.wait([first])
    for task in leaving:
        task.cancel()
    await asyncio.wait(leaving)
    # Nothing is held for those who left, or they would take the share for 30 s.
    assert (await first)[0] in ANSWERED
    assert counted([await caller.ask(named(file_id), model="0") for _ in range(3)]) == {200: 3}


async def test_another_user_is_served_meanwhile(
    caller: Caller, target: Gateway, attacker_key: str
) -> None:
    file_id = await caller.keep("large.txt", b"some text\n" * (10 * MIB // 10))
    waiting = [asyncio.create_task(caller.ask(named(file_id), model="4")) for _ in range(10)]
    async with aiohttp.ClientSession() as http:
        other = Caller(http, target, target.key)
        own = await other.keep("mine.txt", b"some text\n" * (10 * MIB // 10))
        assert (await other.ask(named(own), model="0"))[0] == 200
    # Meanwhile the share of the first has been full.
    assert counted(await asyncio.gather(*waiting))[429] > 0


async def test_requests_of_one_user_at_once_are_bounded(caller: Caller) -> None:
    answers = await asyncio.gather(*[caller.ask(model="3") for _ in range(80)])
    assert counted(answers) == {200: 64, 429: 16}
    refused = next(body for status, body in answers if status == 429)
    assert "64 of your requests are in progress" in refused["error"]["message"]

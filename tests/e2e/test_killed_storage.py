"""`kill -9` of a whole gateway's processes while it stores: nothing acknowledged is lost."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path

import aiohttp
import pytest

from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.users import Answer, User
from tests.waiting import until

WORKER = "services.worker"
NOBODY = 9  # a port on which no provider listens
SOON_S = 60.0
MEMORIES, DOCUMENTS = 4, 2
CHECKED_EVERY = 20
# A process that was killed took the call with it, or the memory it held is not free yet.
LOST = {409, 429, 499, 503}


@dataclass
class AcknowledgedWrites:
    """The writes that were acknowledged to callers.

    Attributes:
        files: digests of the contents of files that were acknowledged, by id.
        deleted: ids of files whose deletion was acknowledged.
        edits: texts that were acknowledged, by document, in order.
        turns: texts that were acknowledged, by memory, in order.
        failures: statuses of calls that were not; 0 where the connection broke.
    """

    files: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    edits: dict[str, list[str]] = field(default_factory=dict)
    turns: dict[str, list[str]] = field(default_factory=dict)
    failures: set[int] = field(default_factory=set)

    @property
    def turn_count(self) -> int:
        return sum(map(len, self.turns.values()))

    async def outcome(self, call: Awaitable[Answer]) -> Answer | None:
        """Return what was acknowledged, or None."""
        try:
            answer = await call
        except (aiohttp.ClientError, ConnectionError):
            self.failures.add(0)
            return None
        if answer.status != 200:
            self.failures.add(answer.status)
            return None
        return answer


class StoringCallers:
    """Callers who store without end, while processes are killed."""

    def __init__(self, at: Gateway, user: User, seed: int) -> None:
        self._at = at
        self._user = user
        self._chance = random.Random(seed)
        self._numbers = count()
        self._talking = 0  # callers that talk, of those with a memory each
        self.known = AcknowledgedWrites()

    async def kill(self, times: int) -> None:
        """Kill a process at some moment, over and over; check what is stored, now and then."""
        for _ in range(DOCUMENTS):
            self.known.edits[await self._user.create_document()] = []
        for number in range(times):
            self._talking = MEMORIES
            working = asyncio.create_task(self._work())
            await self._more_turns(self._chance.randint(4, 10), working)
            # Any moment is a moment to die: this is the one wait that is for nothing.
            await asyncio.sleep(self._chance.uniform(0.0, 0.3))
            family = processes.family(self._at.process.pid)
            os.kill(processes.of_modules(family, [WORKER])[WORKER], signal.SIGKILL)
            await working
            await until(self._is_ready, within_s=SOON_S, every_s=0.02)
            if number % CHECKED_EVERY == 0:
                await self.check()
        await self.check()

    async def _more_turns(self, more_turns: int, working: asyncio.Task[None]) -> None:
        """Wait until so many more turns were acknowledged, or nobody goes on talking."""
        goal = self.known.turn_count + more_turns
        await until(
            lambda: self.known.turn_count >= goal or not self._talking or working.done(),
            within_s=SOON_S,
            every_s=0.005,
        )

    async def _work(self) -> None:
        """Store until each of the callers has heard of the killed process."""
        async with asyncio.timeout(SOON_S), asyncio.TaskGroup() as group:
            group.create_task(self._upload())
            for document in self.known.edits:
                group.create_task(self._edit(document))
            for memory in range(MEMORIES):
                group.create_task(self._talk(f"m{memory}"))

    async def _upload(self) -> None:
        while True:
            content = self._chance.randbytes(self._chance.choice([10, 5_000, 600_000]))
            made = await self.known.outcome(self._user.upload(content))
            if made is None:
                return
            self.known.files[made.body["id"]] = sha256(content).hexdigest()
            if self._chance.random() < 0.3:
                file_id = self._chance.choice(list(self.known.files))
                # From here on nobody can say whether it is still there.
                del self.known.files[file_id]
                if await self.known.outcome(self._user.delete_file(file_id)) is None:
                    return
                self.known.deleted.add(file_id)

    async def _edit(self, document: str) -> None:
        opened = await self.known.outcome(self._user.article("session/create", docId=document))
        while opened is not None:
            text = f"edit {next(self._numbers)}"
            edit = self._user.insert(opened.body["data"]["sessionId"], text)
            if await self.known.outcome(edit) is None:
                return
            self.known.edits[document].append(text)

    async def _talk(self, memory: str) -> None:
        try:
            while True:
                text = f"turn {next(self._numbers)}"
                if await self.known.outcome(self._user.chat(text, memory_id=memory)) is None:
                    return
                self.known.turns.setdefault(memory, []).append(text)
        finally:
            self._talking -= 1

    async def _is_ready(self) -> bool:
        try:
            return (await self._user.readiness()).status == 200
        except (aiohttp.ClientError, ConnectionError):
            return False

    async def check(self) -> None:
        """Check that all that was acknowledged is there, once and in order."""
        acknowledged = self.known
        assert acknowledged.failures <= {0} | LOST, acknowledged.failures
        listed = {one["id"] for one in (await self._user.files()).body["data"]}
        assert acknowledged.files.keys() <= listed
        assert not acknowledged.deleted & listed
        for file_id, digest in acknowledged.files.items():
            assert sha256(await self._user.content(file_id)).hexdigest() == digest
        for document, texts in acknowledged.edits.items():
            session = await self._user.open_document(document)
            # Each was inserted before all others.
            stored_texts = (await self._user.read(session))[::-1]
            assert len(stored_texts) == len(set(stored_texts))
            assert [text for text in stored_texts if text in set(texts)] == texts
        for memory, texts in acknowledged.turns.items():
            stored_texts = await self._user.turns(memory)
            assert len(stored_texts) == len(set(stored_texts))
            assert [text for text in stored_texts if text in set(texts)] == texts


@asynccontextmanager
async def storing(folder: Path, seed: int) -> AsyncIterator[StoringCallers]:
    connector = aiohttp.TCPConnector(force_close=True)
    with gateway(folder, NOBODY) as at:
        async with aiohttp.ClientSession(connector=connector) as http:
            yield StoringCallers(at, User(http, at.address, at.key, at.metrics_url), seed)
        assert "unforeseen" not in at.process.output


async def test_three_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    async with storing(tmp_path, seed=1) as callers:
        await callers.kill(3)
        assert callers.known.files
        assert any(callers.known.edits.values())
        assert callers.known.turns


@pytest.mark.soak
async def test_two_hundred_kills_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    async with storing(tmp_path, seed=2) as callers:
        await callers.kill(200)
        acknowledged = callers.known
        turns = acknowledged.turn_count
        edits = sum(map(len, acknowledged.edits.values()))
        print(f"acknowledged: {turns} turns, {edits} edits, {len(acknowledged.files)} files kept, ")
        print(f"{len(acknowledged.deleted)} deleted; failures: {sorted(acknowledged.failures)}")
        assert turns >= 1000

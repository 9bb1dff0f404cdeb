"""A PostgreSQL server that is killed and started again under a gateway that goes on."""

import asyncio
from collections.abc import AsyncIterator, Sized
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.databases import PostgreSQL, postgresql_server
from tests.e2e.users import Answer, User
from tests.gateway_in_process import running_gateway
from tests.waiting import until

SOON_S = 60.0
UNAVAILABLE = {"unavailable", "storage_unavailable", "memory_not_synchronized", 50301}


@pytest.fixture
async def server() -> AsyncIterator[PostgreSQL]:
    """A server that no other test uses."""
    starting = postgresql_server()
    yield await asyncio.to_thread(starting.__enter__)
    await asyncio.to_thread(starting.__exit__, None, None, None)


@dataclass
class Worker:
    """A user who writes without end, and knows what was acknowledged."""

    user: User
    session: str
    files: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    refusals: list[Answer] = field(default_factory=list)

    async def write(self, number: int) -> bool:
        """Upload, edit and take a turn; tell whether all of it was acknowledged."""
        text = f"{number}"
        uploaded = await self.user.upload(text.encode())
        edited = await self.user.insert(self.session, text)
        answered = await self.user.chat(text, memory_id="diary")
        if uploaded.status == 200:
            self.files.append(uploaded.body["id"])
        if edited.status == 200:
            self.texts.append(text)
        if answered.status == 200:
            self.turns.append(text)
        answers = [uploaded, edited, answered]
        self.refusals += [one for one in answers if one.status != 200]
        return all(one.status == 200 for one in answers)

    async def grows(self, answers: Sized, by: int) -> None:
        """Wait until so many more of these have come."""
        before = len(answers)
        await until(lambda: len(answers) >= before + by, within_s=SOON_S)


@pytest.mark.soak
async def test_acknowledged_writes_survive_a_killed_database(
    server: PostgreSQL, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = {"data_dir": str(tmp_path), "database_url": server.url}
    async with running_gateway(tmp_path, storage=storage) as gateway:
        user = User(gateway.http, gateway.url, gateway.key)
        worker = Worker(user, await user.open_document(await user.create_document()))
        assert await worker.write(0)
        stopped = asyncio.Event()
        numbers = iter(range(1, 1_000_000))

        async def write_on() -> None:
            while not stopped.is_set():
                await worker.write(next(numbers))

        writing = asyncio.create_task(write_on())
        for _ in range(2):
            await worker.grows(worker.turns, 1)
            await asyncio.to_thread(server.kill)
            await worker.grows(worker.refusals, 3)
            assert (await user.chat("without memory")).status == 200
            await asyncio.to_thread(server.start)
            await worker.grows(worker.turns, 1)
        stopped.set()
        await writing
        await until(lambda: worker.write(next(numbers)), within_s=SOON_S)
        assert {one.status for one in worker.refusals} <= {503, 409}
        assert all(one.retry_after_s for one in worker.refusals if one.status == 503)
        assert {one.code for one in worker.refusals if one.status == 503} <= UNAVAILABLE
        assert set(worker.texts) <= set(await user.read(worker.session))
        assert set(worker.turns) <= set(await user.turns("diary"))
        listed = await user.files()
        assert set(worker.files) <= {one["id"] for one in listed.body["data"]}
    assert "unforeseen" not in caplog.text

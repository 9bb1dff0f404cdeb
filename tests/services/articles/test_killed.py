"""`kill -9` at any moment: no acknowledged edit is lost, none is half there, and none
that is sent again is there twice."""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from tests.services.articles.killed_processes import (
    AcknowledgedEdits,
    assert_consistent,
    editor_process,
    make_article,
    work_until_killed,
)

_DOCUMENTS = 3


@asynccontextmanager
async def _data() -> AsyncIterator[tuple[Path, AsyncEngine, str]]:
    """Return a folder, the engine of its database and a key."""
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        folder = Path(name)
        engine = open_engine(Storage(data_dir=folder))
        await migrate(engine)
        yield folder, engine, await AccountRepository(engine).create_key("ada")
        await engine.dispose()


async def _kill_often(times: int, seed: int) -> None:
    chance = random.Random(seed)
    async with _data() as (folder, engine, key):
        async with editor_process(folder, "s") as (_, address):
            acknowledged = [
                AcknowledgedEdits(await make_article(address, key)) for _ in range(_DOCUMENTS)
            ]
        for _ in range(times):
            async with editor_process(folder, "s") as (process, address):
                await work_until_killed(address, process, key, acknowledged, chance)
            for one in acknowledged:
                await assert_consistent(engine, one)
    assert sum(one.answered for one in acknowledged) > times
    assert all(one.revision for one in acknowledged)
    assert any(one.gone for one in acknowledged)


async def test_three_kills_lose_no_edit_and_tear_none() -> None:
    await _kill_often(3, seed=1)


@pytest.mark.soak
async def test_two_hundred_kills_lose_no_edit_and_tear_none() -> None:
    await _kill_often(200, seed=2)


async def test_another_process_continues_after_a_kill() -> None:
    chance = random.Random(3)
    async with _data() as (folder, engine, key), editor_process(folder, "b") as (second, other):
        async with editor_process(folder, "a") as (first, address):
            article_id = await make_article(address, key)
            # Two callers of one user, each through a process of its own, on one document.
            acknowledged = [AcknowledgedEdits(article_id), AcknowledgedEdits(article_id)]
            await asyncio.gather(
                work_until_killed(address, first, key, acknowledged[:1], chance),
                work_until_killed(other, second, key, acknowledged[1:], chance),
            )
        for one in acknowledged:
            await assert_consistent(engine, one)

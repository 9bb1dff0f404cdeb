"""`kill -9` at any moment: no acknowledged file is lost, no row is without its bytes."""

import random
import tempfile
from pathlib import Path

import pytest

from services.accounts.repository import AccountRepository
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from tests.services.files.killed_process import (
    AcknowledgedFiles,
    assert_consistent,
    file_store_process,
    until_swept,
    work_until_killed,
)


async def _kill_often(times: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged = AcknowledgedFiles()
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        folder = Path(name)
        engine = open_engine(Storage(data_dir=folder))
        await migrate(engine)
        key = await AccountRepository(engine).create_key("ada", plan="enterprise")
        for _ in range(times):
            async with file_store_process(folder) as (process, address):
                await work_until_killed(address, process, key, acknowledged, chance)
            await assert_consistent(engine, folder, acknowledged)
        async with file_store_process(folder):
            await until_swept(engine, folder, acknowledged, within_s=30)
        await engine.dispose()
    assert acknowledged.kept
    assert acknowledged.deleted


async def test_four_kills_lose_nothing_and_leave_nothing() -> None:
    await _kill_often(4, seed=1)


@pytest.mark.soak
async def test_two_hundred_kills_lose_nothing_and_leave_nothing() -> None:
    await _kill_often(200, seed=2)

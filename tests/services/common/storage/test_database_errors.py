"""Databases that do not work: what callers and operators are told, and that nothing is lost."""

import asyncio
import logging
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]  # it brings no types
import pytest
from sqlalchemy import event, insert, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from services.common.settings import SettingsError, Storage
from services.common.storage import leases, sqlite_file
from services.common.storage.database import open_engine, reading, writing
from services.common.storage.database_errors import DatabaseError
from services.common.storage.migrations.runner import migrate

PAGE = 4096


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """A SQLite database."""
    engine = open_engine(Storage(data_dir=tmp_path))
    await migrate(engine)
    yield engine
    await engine.dispose()


async def put(engine: AsyncEngine, *names: str) -> None:
    async with writing(engine) as connection:
        rows = [{"name": name, "holder": "h", "ends_at_ms": 0} for name in names]
        await connection.execute(insert(leases.table), rows)


async def names(engine: AsyncEngine) -> list[str]:
    async with reading(engine) as connection:
        query = select(leases.table.c.name).order_by(leases.table.c.name)
        return list(await connection.scalars(query))


async def test_a_file_that_is_no_database_is_reported_as_corrupt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "gateway.db"
    file.touch(0o600)
    file.write_bytes(b"not a database" * 1000)
    engine = open_engine(Storage(data_dir=tmp_path))
    with caplog.at_level(logging.ERROR), pytest.raises(DatabaseError) as raised:
        await migrate(engine)
    assert raised.value.reason == errors_pb2.REASON_STORAGE_UNAVAILABLE
    assert raised.value.retry_after_s
    assert str(file) not in raised.value.message
    assert raised.value.advice.startswith(f"{file}: the database is corrupt")
    assert "backup" in raised.value.advice
    assert caplog.records[0].getMessage() == "the database is corrupt"
    assert caplog.records[0].__dict__["database"] == str(file)
    await engine.dispose()


async def test_a_page_that_is_damaged_later_is_reported_as_corrupt(
    engine: AsyncEngine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await put(engine, *(f"{number:060}" for number in range(500)))
    await engine.dispose()
    file = tmp_path / "gateway.db"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [root] = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'leases'"
        ).fetchone()
    connection.close()
    with file.open("r+b") as content:
        content.seek((root - 1) * PAGE)
        content.write(os.urandom(PAGE))
    with caplog.at_level(logging.ERROR), pytest.raises(DatabaseError) as raised:
        async with reading(engine) as connection:
            await connection.execute(select(leases.table.c.holder))
    assert raised.value.reason == errors_pb2.REASON_STORAGE_UNAVAILABLE
    assert caplog.records[0].__dict__["database"] == str(file)


async def test_a_full_disk_is_an_error_until_there_is_room(engine: AsyncEngine) -> None:
    most = [1 << 30]

    def limit(connection: sqlite3.Connection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA max_page_count = {most[0]}")
        cursor.close()

    event.listen(engine.sync_engine, "connect", limit)
    await put(engine, "before")
    await engine.dispose()
    most[0] = 1  # no more pages than there are
    with pytest.raises(DatabaseError) as raised:
        for number in range(1000):
            await put(engine, *(f"{number}/{place:050}" for place in range(100)))
    assert raised.value.reason == errors_pb2.REASON_STORAGE_FULL
    assert raised.value.retry_after_s == 30
    kept = await names(engine)
    assert "before" in kept
    assert not [name for name in kept if name.startswith(f"{number}/")]
    most[0] = 1 << 30
    await engine.dispose()
    await put(engine, "after")
    assert {"before", "after"} <= set(await names(engine))


async def test_a_read_only_file_is_reported_and_still_read(engine: AsyncEngine) -> None:
    await put(engine, "before")

    def forbid(connection: sqlite3.Connection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA query_only = ON")
        cursor.close()

    await engine.dispose()
    event.listen(engine.sync_engine, "connect", forbid)
    with pytest.raises(DatabaseError) as raised:
        await put(engine, "after")
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE
    assert "check the disk" in raised.value.advice
    assert await names(engine) == ["before"]
    event.remove(engine.sync_engine, "connect", forbid)
    await engine.dispose()
    await put(engine, "after")


async def test_a_file_that_is_locked_for_too_long_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_BUSY_TIMEOUT_MS", 50)
    engine = open_engine(Storage(data_dir=tmp_path))
    await migrate(engine)
    other = sqlite3.connect(tmp_path / "gateway.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError) as raised:
        await put(engine, "x")
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE
    other.execute("ROLLBACK")
    other.close()
    await put(engine, "x")
    assert await names(engine) == ["x"]
    await engine.dispose()


async def test_a_folder_that_is_gone_is_reported(engine: AsyncEngine, tmp_path: Path) -> None:
    await engine.dispose()
    await asyncio.to_thread(shutil.rmtree, tmp_path)
    with pytest.raises(DatabaseError) as raised:
        await names(engine)
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE
    assert str(tmp_path) in raised.value.advice


async def test_a_starting_server_counts_as_one_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect(*_: object, **__: object) -> None:
        raise asyncpg.CannotConnectNowError("the database system is starting up")

    monkeypatch.setattr(asyncpg, "connect", connect)
    engine = open_engine(Storage(data_dir=tmp_path, database_url="postgresql://x"))
    with pytest.raises(DatabaseError) as raised:
        await names(engine)
    assert raised.value.reason == errors_pb2.REASON_UNAVAILABLE
    assert "starting up" in raised.value.advice
    await engine.dispose()


def test_a_folder_in_which_nothing_can_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "gateway.db").symlink_to(tmp_path / "missing" / "file")
    with pytest.raises(SettingsError, match=r"storage\.data_dir"):
        open_engine(Storage(data_dir=tmp_path))

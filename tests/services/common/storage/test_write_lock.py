"""The order in which processes write to a SQLite file; each has descriptors of its own."""

import asyncio
import fcntl
import os
import sqlite3
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import insert

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.settings import Storage
from services.common.storage import database, owners, sqlite_file
from services.common.storage.database import open_engine, write, writing
from services.common.storage.file_locks import try_lock
from services.common.storage.migrations.runner import migrate
from services.common.storage.write_lock import SqliteWriteLock

PATIENCE_S = 30
SHORT_S = 0.01

# Holds the lock until standard input ends.
HOLDER = """
import sys
from pathlib import Path
from services.common.storage.write_lock import SqliteWriteLock
SqliteWriteLock(Path(sys.argv[1]), 10).acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_who_waits_goes_before_who_wrote(tmp_path: Path) -> None:
    writer, waiter = (SqliteWriteLock(tmp_path / "a.db", PATIENCE_S) for _ in range(2))
    writer.acquire()
    waits = threading.Thread(target=waiter.acquire)
    waits.start()
    first = os.open(tmp_path / "a.db-first", os.O_RDWR)
    while is_free(first):
        assert waits.is_alive()
    writer.release()
    again = SqliteWriteLock(tmp_path / "a.db", PATIENCE_S)
    taken_again = threading.Thread(target=again.acquire)
    taken_again.start()
    waits.join(PATIENCE_S)
    assert not waits.is_alive(), "the one that waited has the lock"
    assert taken_again.is_alive(), "the one that wrote waits"
    waiter.release()
    taken_again.join(PATIENCE_S)
    for lock in (writer, waiter, again):
        lock.close()
    os.close(first)


def is_free(first: int) -> bool:
    """Return whether nobody waits in front of the lock."""
    if not try_lock(first):
        return False
    fcntl.flock(first, fcntl.LOCK_UN)
    return True


def test_a_lock_that_is_not_free_in_time_is_refused(tmp_path: Path) -> None:
    held, late = (
        SqliteWriteLock(tmp_path / "a.db", SHORT_S),
        SqliteWriteLock(tmp_path / "a.db", SHORT_S),
    )
    held.acquire()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        late.acquire()
    held.release()
    late.acquire()
    held.close()
    late.close()


async def test_a_process_that_ends_leaves_no_lock(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HOLDER, str(file)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_S):
        assert await process.stdout.readline() == b"held\n"
    lock = SqliteWriteLock(file, SHORT_S)
    with pytest.raises(sqlite3.OperationalError):
        lock.acquire()
    process.kill()
    await process.wait()
    lock.acquire()
    lock.close()


async def test_a_writer_that_waits_too_long_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_BUSY_TIMEOUT_MS", SHORT_S * 1000)
    engine = open_engine(Storage(data_dir=tmp_path))
    await migrate(engine)
    row = {"owner_id": "a", "memories": 0, "size_bytes": 0}
    held = SqliteWriteLock(tmp_path / database.SQLITE_FILE, SHORT_S)
    held.acquire()
    with pytest.raises(GatewayError) as refused:
        await write(engine, lambda connection: connection.execute(insert(owners.owners), row))
    assert refused.value.reason == errors_pb2.REASON_UNAVAILABLE
    with pytest.raises(GatewayError) as refused:
        async with writing(engine):
            raise AssertionError("it holds no lock")
    assert refused.value.reason == errors_pb2.REASON_UNAVAILABLE
    held.release()
    await write(engine, lambda connection: connection.execute(insert(owners.owners), row))
    held.acquire()
    held.close()
    await engine.dispose()


def test_without_files_there_is_no_order(tmp_path: Path) -> None:
    lock = SqliteWriteLock(tmp_path / "missing" / "a.db", SHORT_S)
    lock.acquire()
    lock.release()
    lock.close()


def test_a_file_that_cannot_be_opened_leaves_no_other_open(tmp_path: Path) -> None:
    (tmp_path / "a.db-writer").mkdir()
    lock = SqliteWriteLock(tmp_path / "a.db", SHORT_S)
    before = os.listdir("/proc/self/fd")
    lock.acquire()
    assert os.listdir("/proc/self/fd") == before
    lock.release()
    lock.close()

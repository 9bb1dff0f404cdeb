"""Storage that misbehaves under a real gateway: clear errors, and recovery without a restart."""

import asyncio
import os
import resource
import signal
import sqlite3
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest

from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from tests.bench import processes
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.users import Answer, User
from tests.faults import actions
from tests.faults.upstream import fault_upstream
from tests.waiting import until

NOBODY = 9  # a port on which no provider listens
SOON_S = 60.0
PAGE = 4096


@asynccontextmanager
async def using(at: Gateway) -> AsyncIterator[User]:
    async with aiohttp.ClientSession() as http:
        yield User(http, at.address, at.key, at.metrics_url)


def worker_of(at: Gateway) -> int:
    (pid,) = processes.of_modules(processes.family(at.process.pid), ["services.worker"]).values()
    return pid


@contextmanager
def no_room(at: Gateway) -> Iterator[None]:
    """Make every write of the worker to a file fail, as on a disk that is full."""
    pid = worker_of(at)
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


async def writes(user: User, session: str, text: str) -> list[Answer]:
    """Upload, edit, and take a turn."""
    return [
        await user.upload(text.encode()),
        await user.insert(session, text),
        await user.chat(text, memory_id="diary"),
    ]


async def test_failed_writes_are_reported_until_they_succeed_again(tmp_path: Path) -> None:
    with gateway(tmp_path, NOBODY) as at:
        async with using(at) as user:
            session = await user.open_document(await user.create_document())
            assert [one.status for one in await writes(user, session, "before")] == [200] * 3
            with no_room(at):
                for answer in await writes(user, session, "meanwhile"):
                    assert answer.status == 503, answer
                    assert answer.retry_after_s
                assert (await user.chat("no memory")).status == 200
                assert (await user.files()).status == 200
            after = await writes(user, session, "after")
            assert [one.status for one in after] == [200] * 3
            assert await user.read(session) == ["after", "before"]
            assert await user.turns("diary") == ["before", "after"]
            assert await user.content(after[0].body["id"]) == b"after"
            assert len((await user.files()).body["data"]) == 2
        assert "unforeseen" not in at.process.output


async def test_below_the_reserve_of_the_disk_only_writes_are_refused(tmp_path: Path) -> None:
    with gateway(tmp_path, NOBODY) as at:
        async with using(at) as user:
            document = await user.create_document()
            session = await user.open_document(document)
            uploaded, *_ = await writes(user, session, "before")
            assert (await user.readiness()).body["storage"] == "ok"
    with gateway(tmp_path, NOBODY, settings=f"[storage]\nmin_free_bytes = {1 << 60}\n") as at:
        async with using(at) as user:
            answers = await writes(user, session, "after")
            assert [one.status for one in answers] == [503] * 3
            assert [one.code for one in answers] == ["storage_full", 50301, "storage_full"]
            assert all(one.retry_after_s for one in answers)
            assert (await user.readiness()).status == 200
            assert (await user.readiness()).body["storage"] == "low"
            assert (await user.chat("no memory")).status == 200
            assert await user.read(session) == ["before"]
            assert await user.turns("diary") == ["before"]
            assert await user.content(uploaded.body["id"]) == b"before"
            assert (await user.delete_file(uploaded.body["id"])).status == 200
            assert (await user.delete_memory("diary")).status == 200
            assert (await user.article("doc/delete", docId=document)).status == 200
        assert "the disk is almost full" in at.process.output


def damage(folder: Path, table: str) -> None:
    """Write over the first page of a table of a database that nobody uses."""
    file = folder / "var" / "gateway.db"
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    [root] = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = ?", [table]
    ).fetchone()
    connection.close()
    with file.open("r+b") as content:
        content.seek((root - 1) * PAGE)
        content.write(os.urandom(PAGE))


async def test_a_damaged_table_fails_only_what_needs_it(tmp_path: Path) -> None:
    with gateway(tmp_path, NOBODY) as at:
        async with using(at) as user:
            await user.create_document()
    damage(tmp_path, "articles")
    with gateway(tmp_path, NOBODY) as at:
        async with using(at) as user:
            listed = await user.article("doc/list")
            assert (listed.status, listed.code) == (503, 50301)
            assert "damaged" in listed.body["message"]
            assert (await user.chat("Hello")).status == 200
        at.process.wait_for(r"the database is corrupt.*var/gateway\.db")
        assert "unforeseen" not in at.process.output


async def migrated(folder: Path) -> None:
    """Make a database as a gateway does."""
    engine = open_engine(Storage(data_dir=folder))
    await migrate(engine)
    await engine.dispose()


@pytest.mark.parametrize("whole", [True, False])
def test_startup_reports_a_corrupt_database_and_the_remedy(tmp_path: Path, whole: bool) -> None:
    (tmp_path / "var").mkdir()
    asyncio.run(migrated(tmp_path / "var"))
    if whole:
        (tmp_path / "var" / "gateway.db").write_bytes(os.urandom(20 * PAGE))
    else:
        damage(tmp_path, "alembic_version")
    with pytest.raises(AssertionError) as raised, gateway(tmp_path, NOBODY):
        pass
    line = next(line for line in str(raised.value).splitlines() if line.startswith("gateway: "))
    assert "var/gateway.db: the database is corrupt" in line
    assert "replace it with a backup" in line


def test_what_the_gateway_stores_is_its_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    folder.mkdir(0o755)
    for name in ("gateway.db", "gateway.lock"):
        (folder / name).touch(0o644)
    with gateway(tmp_path, NOBODY) as at:

        async def upload() -> None:
            async with using(at) as user:
                assert (await user.upload(b"x" * 5_000_000)).status == 200

        asyncio.run(upload())
        paths = [folder, *folder.rglob("*")]
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}
    assert {"gateway.db", "gateway.db-wal", "gateway.db-shm", "dev.key", "files"} <= modes.keys()
    assert {name for name, mode in modes.items() if mode & 0o077} == set()


async def test_a_killed_process_frees_its_memory_before_lease_end(tmp_path: Path) -> None:
    async with fault_upstream() as upstream:
        upstream.plays("silent", actions.says_nothing())
        port = int(upstream.url.rpartition(":")[2])
        running = gateway(tmp_path, port, settings="[memory]\nlock_lease_s = 25\n")
        # Its providers are asked for their models meanwhile, by this very loop.
        at = await asyncio.to_thread(running.__enter__)
        try:
            async with using(at) as user:
                await user.chat("first", memory_id="diary")
                held = asyncio.create_task(
                    user.chat("lost", memory_id="diary", model="openai/silent")
                )
                await until(lambda: bool(upstream.asked("silent")), within_s=SOON_S)
                os.kill(worker_of(at), signal.SIGKILL)
                with pytest.raises(aiohttp.ServerDisconnectedError):
                    await held
                await until(lambda: is_ready(user), within_s=SOON_S)
                # A request waits for 10 seconds at most, and a lease lasts for 25.
                assert (await user.chat("second", memory_id="diary")).status == 200
                assert await user.turns("diary") == ["first", "second"]
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)


async def is_ready(user: User) -> bool:
    try:
        return (await user.readiness()).status == 200
    except aiohttp.ClientConnectorError:
        return False  # the port is nobody's until the next worker has started

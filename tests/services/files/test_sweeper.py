import os
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.settings import Storage
from services.common.storage.leases import Lease
from services.files.blobs import FOLDER
from services.files.repository import FileTotals
from tests.services.files.running_file_store import MIB, RunningFileStore, reason_of

GRACE_S = 3600
ORPHAN = "file-" + "0" * 26


async def put(file_store: RunningFileStore, key: str, content: bytes) -> None:
    """Write bytes that no row names."""
    async with file_store.blobs.writing(key) as writing:
        await writing.write(content)
        await writing.finish()


async def written_at_s(file_store: RunningFileStore) -> float:
    """Return when the last bytes were written, by the clock of the store."""
    return max([one.modified_s async for batch in file_store.blobs.entries() for one in batch])


async def test_an_expired_file_loses_its_bytes_and_frees_its_storage(
    file_store: RunningFileStore,
) -> None:
    ada, bob = file_store.client("ada"), file_store.client("bob")
    await ada.create(b"x" * 10, expires_after_s=60)
    await bob.create(b"x" * 20, expires_after_s=60)
    stays = await ada.create(b"x" * 30, expires_after_s=61)
    file_store.clock.now_s += 60
    assert await file_store.repository.usage("user_ada") == FileTotals(2, 40)
    assert await file_store.sweeper().sweep()
    assert await file_store.keys() == [stays.id]
    assert await file_store.repository.usage("user_ada") == FileTotals(1, 30)
    assert await file_store.repository.usage("user_bob") == FileTotals(0, 0)
    assert await file_store.repository.total() == FileTotals(1, 30)


async def test_bytes_without_a_row_go_once_they_are_old_enough(
    file_store: RunningFileStore,
) -> None:
    await put(file_store, ORPHAN, b"lost")
    file_store.clock.now_s = await written_at_s(file_store)
    file = await file_store.client().create(b"kept")
    file_store.clock.now_s += GRACE_S - 1
    sweeper = file_store.sweeper()
    await sweeper.sweep()
    assert await file_store.keys() == sorted([ORPHAN, file.id])
    # The next look at all bytes is due a grace period after the last one.
    file_store.clock.now_s += GRACE_S
    await sweeper.sweep()
    assert await file_store.keys() == [file.id]


@pytest.mark.parametrize("place", ["folder"], indirect=True)
async def test_what_a_killed_upload_left_half_written_goes_too(
    file_store: RunningFileStore, place: Storage
) -> None:
    half = place.data_dir / FOLDER / f"{ORPHAN}#1"
    half.write_bytes(b"x" * MIB)
    file_store.clock.now_s = half.stat().st_mtime + GRACE_S + 1
    await file_store.sweeper().sweep()
    assert not half.exists()


@pytest.mark.parametrize("place", ["folder"], indirect=True)
async def test_what_is_not_the_gateways_is_left_alone(
    file_store: RunningFileStore, place: Storage
) -> None:
    folder: Path = place.data_dir / FOLDER
    (folder / "notes.txt").write_bytes(b"mine")
    file_store.clock.now_s = (folder / "notes.txt").stat().st_mtime + 2 * GRACE_S
    await file_store.sweeper().sweep()
    assert os.listdir(folder) == ["notes.txt"]


async def test_one_sweeper_works_at_a_time_and_another_takes_over(
    file_store: RunningFileStore,
) -> None:
    first, second = file_store.sweeper(), file_store.sweeper()
    assert await first.sweep()
    assert not await second.sweep()
    file_store.clock.now_s += 179
    assert await first.sweep()
    file_store.clock.now_s += 179
    assert not await second.sweep()
    file_store.clock.now_s += 1
    assert await second.sweep()
    assert not await first.sweep()
    await second.stop()
    assert await first.sweep()


async def test_a_sweeper_that_stops_does_not_end_anothers_lease(
    engine: AsyncEngine, clock: Clock
) -> None:
    clock = Clock(now=clock.now)
    ours, theirs = (Lease(engine, "job", 10, clock) for _ in range(2))
    assert await ours.take()
    await theirs.release()
    assert not await theirs.take()


async def test_a_file_without_its_bytes_is_an_error_of_the_store(
    file_store: RunningFileStore,
) -> None:
    ada = file_store.client()
    file = await ada.create(b"x")
    await file_store.blobs.delete(file.id)
    with pytest.raises(GatewayError) as raised:
        await ada.read(file.id)
    assert reason_of(raised) == "storage_unavailable"

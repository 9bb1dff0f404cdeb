import asyncio
import os
import stat
import sys
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.errors import GatewayError
from services.common.settings import SettingsError, Storage
from services.common.storage.database import open_engine
from services.files.blob_errors import BlobMissingError
from services.files.blob_store import Blobs
from services.files.blobs import FOLDER, open_blobs
from services.files.folder_blobs import FolderBlobs
from services.files.repository import FileRepository
from tests.services.files.running_file_store import MIB, reason_of

KEY = "file-" + "0" * 26


@pytest.fixture
def blobs(place: Storage) -> Blobs:
    return open_blobs(place)


async def read(blobs: Blobs, first: int, length: int) -> bytes:
    async with blobs.reading(KEY, first, length) as pieces:
        return b"".join([piece async for piece in pieces])


async def test_a_blob_is_not_there_before_it_is_finished(blobs: Blobs) -> None:
    content = os.urandom(7 * MIB)
    async with blobs.writing(KEY) as writing:
        for start in range(0, len(content), 100_000):
            await writing.write(content[start : start + 100_000])
        with pytest.raises(BlobMissingError):
            await read(blobs, 0, 1)
        await writing.finish()
    assert await read(blobs, 0, len(content)) == content


async def test_a_writing_that_breaks_off_leaves_nothing(blobs: Blobs) -> None:
    for size in (1, 7 * MIB):
        with pytest.raises(ZeroDivisionError):
            async with blobs.writing(KEY) as writing:
                await writing.write(bytes(size))
                raise ZeroDivisionError
        assert [entry async for batch in blobs.entries() for entry in batch] == []


async def test_a_blob_shorter_than_what_is_asked_for_is_a_fault(blobs: Blobs) -> None:
    async with blobs.writing(KEY) as writing:
        await writing.write(b"12345")
        await writing.finish()
    with pytest.raises(GatewayError) as raised:
        await read(blobs, 2, 4)
    assert reason_of(raised) == "storage_unavailable"


async def test_a_missing_blob_cannot_be_read_but_deleted(blobs: Blobs) -> None:
    for length in (0, 1):
        with pytest.raises(BlobMissingError):
            await read(blobs, 0, length)
    await blobs.delete(KEY)


def test_only_the_gateways_user_enters_the_folder(tmp_path: Path) -> None:
    open_blobs(Storage(data_dir=tmp_path / "var"))
    mode = (tmp_path / "var" / FOLDER).stat().st_mode
    assert stat.S_IMODE(mode) == 0o700


@pytest.mark.parametrize("url", ["bucket", "s3://", "s3:///prefix", "gs://bucket", "file:///tmp"])
def test_a_place_that_is_no_bucket_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError) as raised:
        open_blobs(Storage(data_dir=tmp_path, blob_url=url))
    assert "storage.blob_url" in str(raised.value)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    with pytest.raises(SettingsError) as raised:
        open_blobs(Storage(data_dir=tmp_path))
    assert str(tmp_path / FOLDER) in str(raised.value)


async def test_a_cancelled_listing_loads_no_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = FolderBlobs.at(tmp_path)
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    listing = asyncio.ensure_future(anext(blobs.entries()))
    await asyncio.sleep(0)
    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing


async def test_a_database_that_is_down_is_a_store_that_is_down(tmp_path: Path) -> None:
    storage = Storage(data_dir=tmp_path, database_url="postgresql://nobody@127.0.0.1:1/none")
    engine: AsyncEngine = open_engine(storage)
    with pytest.raises(GatewayError) as raised:
        await FileRepository(engine).get("user_ada", KEY)
    assert reason_of(raised) == "storage_unavailable"
    assert raised.value.retry_after_s
    await engine.dispose()

"""`gateway files`, over a folder and a SQLite database of its own."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from gateway.files.v1.files_pb2 import (
    PURPOSE_FINE_TUNE,
    CreateFileRequest,
    File,
    FileHeader,
    FileTrailer,
)
from services import cli
from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.settings import Limits, Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from services.files.blobs import FOLDER, open_blobs
from services.files.creation import FileCreator
from services.files.metrics import FileMetrics
from services.files.repository import FileRepository
from tests.disks import Disk


async def _coming(filename: str) -> AsyncIterator[CreateFileRequest]:
    yield CreateFileRequest(header=FileHeader(filename=filename))
    yield CreateFileRequest(chunk=b"12345")
    yield CreateFileRequest(trailer=FileTrailer(purpose=PURPOSE_FINE_TUNE))


async def _fill(folder: Path, *filenames: str) -> list[File]:
    """Make the users ada and bob, and keep files of ada's; give them."""
    storage = Storage(data_dir=folder)
    engine = open_engine(storage)
    await migrate(engine)
    accounts = AccountRepository(engine)
    for user in ("ada", "bob"):
        await accounts.create_key(user)
    ada = await accounts.caller_named("ada")
    creator = FileCreator(
        FileRepository(engine),
        open_blobs(storage),
        Limits(),
        Clock(),
        FileMetrics(CollectorRegistry()),
        Disk().reserve,
    )
    files = [await creator.receive(ada, _coming(filename)) for filename in filenames]
    await engine.dispose()
    return files


@pytest.fixture
def files(tmp_path: Path) -> list[File]:
    return asyncio.run(_fill(tmp_path, "données.txt", "a\u202egpj.exe"))


def run(folder: Path, line: str, status: int = 0) -> str:
    environ = {"GATEWAY_DATA_DIR": str(folder), "GATEWAY_DATABASE_URL": None}
    result = CliRunner().invoke(cli.app, line.split(), env=environ, prog_name="gateway")
    assert result.exit_code == status, result.output
    return result.output


def test_the_files_of_a_user_are_listed(tmp_path: Path, files: list[File]) -> None:
    heading, *lines = run(tmp_path, "files list --user ada").splitlines()
    assert heading.split() == ["ID", "BYTES", "CREATED", "EXPIRES", "PURPOSE", "TYPE", "NAME"]
    columns = {line.split()[0]: line.split()[1:] for line in lines}
    assert set(columns) == {file.id for file in files}
    size, created, expires, purpose, kind, name = columns[files[0].id]
    assert (size, purpose, kind, name) == ("5", "fine_tune", "text/plain", "données.txt")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", created)
    assert created < expires
    assert columns[files[1].id][-1] == r"a\u202egpj.exe"
    assert len(run(tmp_path, "files list --user bob").splitlines()) == 1


def test_a_listing_longer_than_a_page_is_whole(
    tmp_path: Path, files: list[File], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.commands.files._PAGE", 1)
    assert len(run(tmp_path, "files list --user ada").splitlines()) == 1 + len(files)


def test_a_file_is_deleted_with_its_bytes(tmp_path: Path, files: list[File]) -> None:
    gone, kept = files
    run(tmp_path, f"files rm --user ada {gone.id}")
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == [kept.id]
    assert gone.id not in run(tmp_path, "files list --user ada")
    assert "no such file" in run(tmp_path, f"files rm --user ada {gone.id}", status=1)


def test_another_users_file_is_not_deleted(tmp_path: Path, files: list[File]) -> None:
    run(tmp_path, f"files rm --user bob {files[0].id}", status=1)
    assert files[0].id in run(tmp_path, "files list --user ada")


def test_the_usage_is_shown_beside_the_quota(tmp_path: Path, files: list[File]) -> None:
    heading, line = run(tmp_path, "files usage --user ada").splitlines()
    assert heading.split() == ["OWNER", "FILES", "BYTES", "QUOTA"]
    assert line.split()[1:] == ["2", "10", str(1 << 30)]


def test_a_user_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "'eve'" in run(tmp_path, "files usage --user eve", status=1)

"""Backups of a gateway that serves, and gateways that serve what was restored."""

import asyncio
import json
import os
import random
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from services.backup.backup import back_up
from services.backup.manifest import BackupError
from services.backup.restore import restore
from services.common.settings import Storage
from tests.e2e.gateway import Gateway, gateway
from tests.e2e.processes import command
from tests.e2e.users import User
from tests.services.test_cli import Command

NOBODY = 9
FILES = 30


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of `gateway` on the data below a folder."""
    environ = {
        **os.environ,
        "GATEWAY_CONFIG": str(folder / "gateway.toml"),
        "GATEWAY_DATA_DIR": str(folder / "var"),
    }
    return subprocess.run(
        [command("gateway"), *arguments], env=environ, capture_output=True, text=True
    )


@asynccontextmanager
async def served(folder: Path, workers: int = 1) -> AsyncIterator[tuple[Gateway, User]]:
    """Run a gateway on the data below a folder."""
    starting = gateway(folder, NOBODY, workers=workers)
    at = await asyncio.to_thread(starting.__enter__)
    try:
        async with aiohttp.ClientSession() as http:
            yield at, User(http, at.address, at.key)
    finally:
        await asyncio.to_thread(starting.__exit__, None, None, None)


async def upload(user: User, content: bytes) -> str:
    answer = await user.upload(content)
    assert answer.status == 200, answer
    file_id: str = answer.body["id"]
    return file_id


async def store(user: User, chance: random.Random, stored_ids: list[str]) -> None:
    """Upload and delete files, edit and talk, until cancelled."""
    document = await user.create_document()
    session = await user.open_document(document)
    while True:
        made = [await upload(user, chance.randbytes(100_000)) for _ in range(4)]
        await user.insert(session, "while it is copied")
        await user.chat("while it is copied", memory_id="meanwhile")
        for file_id in made[:3]:
            assert (await user.delete_file(file_id)).status == 200
        stored_ids.append(made[3])


async def test_all_acknowledged_before_the_start_is_restored(tmp_path: Path) -> None:
    chance = random.Random(5)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    contents: dict[str, bytes] = {}
    async with served(first, workers=2) as (at, user):
        for _ in range(FILES):
            content = chance.randbytes(chance.choice([0, 10, 300_000]))
            contents[await upload(user, content)] = content
        deleted = await upload(user, b"deleted before the start")
        await user.delete_file(deleted)
        document = await user.create_document()
        await user.insert(await user.open_document(document), "before the start")
        assert (await user.chat("before the start", memory_id="talk")).status == 200
        writers = [asyncio.create_task(store(user, random.Random(seed), [])) for seed in range(4)]
        await asyncio.sleep(0)
        done = await asyncio.to_thread(run, first, "backup", str(tmp_path / "copy"))
        assert not any(writer.done() for writer in writers)
        for writer in writers:
            writer.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        key = at.key
    assert done.returncode == 0, done.stderr
    assert not (first / "var" / "backup").exists()
    manifest = json.loads((tmp_path / "copy" / "manifest.json").read_text())
    assert {f"files/{file_id}" for file_id in contents} <= manifest["files"].keys()
    assert oct((tmp_path / "copy" / "gateway.db").stat().st_mode) == "0o100600"
    # Nothing of the first gateway is left to look at.
    shutil.rmtree(first / "var")

    (second / "gateway.toml").touch()
    put = run(second, "restore", str(tmp_path / "copy"))
    assert put.returncode == 0, put.stderr
    async with served(second) as (at, user):
        assert at.key == key
        for file_id, content in contents.items():
            assert await user.content(file_id) == content
        # Every file that is listed has its bytes, also those that came meanwhile.
        listed = await user.files()
        names = {one["id"] for one in listed.body["data"]}
        assert deleted not in names
        for file_id in names:
            await user.content(file_id)
        session = await user.open_document(document)
        assert await user.read(session) == ["before the start"]
        assert await user.turns("talk") == ["before the start"]
        # And it takes what is new.
        await upload(user, b"after the restore")
        assert (await user.insert(session, "after")).status == 200


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a small gateway."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "gateway.toml").touch()
    Command(folder)("keys create --user ada")
    back_up(Storage(data_dir=folder / "var"), folder / "copy", datetime.now(UTC))
    return folder / "copy"


@pytest.fixture
def copied(tmp_path: Path, made: Path) -> Path:
    """A copy of that backup, and its data folder beside it."""
    shutil.copytree(made.parent / "var", tmp_path / "data" / "var")
    (tmp_path / "data" / "gateway.toml").touch()
    return Path(shutil.copytree(made, tmp_path / "copy"))


def refusal(folder: Path, *arguments: str) -> str:
    return Command(folder).refused(" ".join(arguments))


def new_folder(tmp_path: Path, held: Sequence[str] = ()) -> Path:
    folder = tmp_path / "new"
    (folder / "var").mkdir(parents=True)
    (folder / "gateway.toml").touch()
    for name in held:
        (folder / "var" / name).touch()
    return folder


def test_a_folder_with_data_is_not_restored_into(tmp_path: Path, copied: Path) -> None:
    folder = new_folder(tmp_path, ["something"])
    assert "is not empty" in refusal(folder, "restore", str(copied))
    assert [one.name for one in (folder / "var").iterdir() if one.name != "gateway.lock"] == [
        "something"
    ]


async def test_a_running_gateway_is_not_restored_into(tmp_path: Path, copied: Path) -> None:
    folder = tmp_path / "running"
    folder.mkdir()
    async with served(folder):
        message = await asyncio.to_thread(refusal, folder, "restore", str(copied))
    assert "another gateway uses this data folder" in message


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("a byte of the database", "digest does not match the backup"),
        ("no database", "missing, although"),
        ("no manifest", "not a complete backup"),
        ("a path outside", "not a file of a backup"),
        ("a newer step", "does not have"),
        ("a newer format", "newer version"),
        ("no JSON", "not the manifest"),
    ],
)
def test_a_damaged_backup_leaves_an_empty_folder(
    tmp_path: Path, copied: Path, damage: str, says: str
) -> None:
    path = copied / "manifest.json"
    manifest = json.loads(path.read_text())
    if damage == "a byte of the database":
        held = bytearray((copied / "gateway.db").read_bytes())
        held[-1] ^= 1
        (copied / "gateway.db").write_bytes(held)
    elif damage == "no database":
        (copied / "gateway.db").unlink()
    elif damage == "no manifest":
        path.unlink()
    elif damage == "a path outside":
        manifest["files"]["../outside"] = manifest["files"]["gateway.db"]
        path.write_text(json.dumps(manifest))
    elif damage == "a newer step":
        path.write_text(json.dumps(manifest | {"migration": "9999"}))
    elif damage == "a newer format":
        path.write_text(json.dumps(manifest | {"format": 2}))
    else:
        path.write_text("{")
    with pytest.raises(BackupError) as refused:
        restore(Storage(data_dir=tmp_path / "new"), copied)
    assert says in str(refused.value)
    assert {one.name for one in (tmp_path / "new").glob("*")} <= {"gateway.lock"}


def test_backups_go_into_a_new_folder_elsewhere(tmp_path: Path, copied: Path) -> None:
    data, other = tmp_path / "data" / "var", tmp_path / "other"
    assert "is not empty" in refusal(tmp_path / "data", "backup", str(copied))
    for source, target, says in (
        (data, data / "copy", "elsewhere"),
        (other, tmp_path / "b", "no "),
    ):
        with pytest.raises(BackupError, match=says):
            back_up(Storage(data_dir=source), target, datetime.now(UTC))


def test_servers_of_their_own_have_backups_of_their_own(tmp_path: Path) -> None:
    for elsewhere in ({"database_url": "postgresql://a/b"}, {"blob_url": "s3://a"}):
        storage = Storage.model_validate({"data_dir": tmp_path, **elsewhere})
        with pytest.raises(BackupError, match="pg_dump"):
            back_up(storage, tmp_path / "copy", datetime.now(UTC))
        with pytest.raises(BackupError, match="pg_dump"):
            restore(storage, tmp_path / "copy")


def test_a_file_that_the_disk_damaged_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()

    async def one_file() -> str:
        async with served(folder) as (_, user):
            return await upload(user, b"as it was")

    file_id = asyncio.run(one_file())
    (folder / "var" / "files" / file_id).write_bytes(b"as it is.")
    with pytest.raises(BackupError, match=file_id):
        back_up(Storage(data_dir=folder / "var"), tmp_path / "copy", datetime.now(UTC))
    assert not (tmp_path / "copy" / "manifest.json").exists()

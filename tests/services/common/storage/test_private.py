"""Files that only the gateway's own user may read."""

import logging
import stat
from pathlib import Path

import pytest

from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from services.common.storage.private import make_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_files_of_a_database_are_made_private(tmp_path: Path) -> None:
    for _ in range(2):
        engine = open_engine(Storage(data_dir=tmp_path))
        await migrate(engine)
        files = [tmp_path / f"gateway.db{tail}" for tail in ("", "-wal", "-shm")]
        assert [mode(file) for file in files] == [0o600] * 3
        await engine.dispose()
        (tmp_path / "gateway.db").chmod(0o644)


def test_access_of_others_is_taken_away_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "file"
    file.touch(0o644)
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o755)
    with caplog.at_level(logging.WARNING):
        for path in (file, folder, tmp_path / "missing"):
            make_private(path)
            make_private(path)
    assert (mode(file), mode(folder)) == (0o600, 0o700)
    assert [record.__dict__["mode"] for record in caplog.records] == ["0644", "0755"]


def test_a_folder_that_is_shared_stays_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o1777)
    make_private(tmp_path)
    assert mode(tmp_path) == 0o1777
    assert "shared with other users" in caplog.text


def test_a_narrower_mode_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch(0o400)
    make_private(file)
    assert mode(file) == 0o400

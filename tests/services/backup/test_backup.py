"""Files that come and go between the steps of a backup."""

import json
import sqlite3
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from services.backup import backup
from services.backup.copying import snapshot
from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate

ROW = """
INSERT INTO files (id, owner_id, filename, purpose, size_bytes, mime_type, created_at_s,
expires_at_s, sha256) VALUES (?, 'ada', 'a', 'assistants', ?, 'text/plain', 0, 9999999999, ?)
"""


class Data:
    """A data folder, with files that are written and deleted as the gateway does."""

    def __init__(self, folder: Path) -> None:
        self.storage = Storage(data_dir=folder)
        (folder / "files").mkdir()
        self._database = sqlite3.connect(folder / "gateway.db", isolation_level=None)
        self._database.execute("INSERT INTO file_usage VALUES ('ada', 0, 0, 0)")

    def upload(self, number: int) -> None:
        content = b"%d" % number
        self._path(number).write_bytes(content)
        digest = sha256(content).hexdigest()
        self._database.execute(ROW, (self._path(number).name, len(content), digest))

    def delete(self, number: int) -> None:
        self._database.execute("DELETE FROM files WHERE id = ?", (self._path(number).name,))
        self._path(number).unlink()

    def close(self) -> None:
        self._database.close()

    def _path(self, number: int) -> Path:
        return self.storage.data_dir / "files" / f"file-{number:026}"


@pytest.fixture
async def data(tmp_path: Path) -> Data:
    storage = Storage(data_dir=tmp_path / "var")
    engine = open_engine(storage)
    await migrate(engine)
    await engine.dispose()
    return Data(storage.data_dir)


def test_files_that_come_and_go_meanwhile_leave_no_gap(
    data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        data.upload(number)
    snapshots = []

    def busy_snapshot(source: Path, target: Path) -> None:
        is_first = not snapshots
        snapshots.append(target)
        if is_first:
            data.upload(3)  # after its folder was looked at
            data.upload(4)
        snapshot(source, target)
        if is_first:
            data.delete(1)  # its bytes are linked
            data.delete(4)  # its bytes are not: only another snapshot is without its row

    monkeypatch.setattr(backup, "snapshot", busy_snapshot)
    made = backup.back_up(data.storage, tmp_path / "copy", datetime.now(UTC))
    data.close()
    assert len(snapshots) == 2
    assert {path for path in made.files if path.startswith("files/")} == {
        f"files/file-{number:026}" for number in (2, 3)
    }
    manifest = json.loads((tmp_path / "copy" / "manifest.json").read_text())
    assert manifest["files"].keys() == made.files.keys()
    assert not (data.storage.data_dir / "backup").exists()


def test_a_row_that_never_has_its_bytes_is_named(data: Data, tmp_path: Path) -> None:
    data.upload(1)
    next((data.storage.data_dir / "files").iterdir()).unlink()
    with pytest.raises(backup.BackupError, match="missing, although the database refers to it"):
        backup.back_up(data.storage, tmp_path / "copy", datetime.now(UTC))
    data.close()

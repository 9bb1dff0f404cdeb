"""Back up a gateway's data while the gateway runs.

1. Hard links to the users' files are created in another folder, so that a file that is deleted
   during the backup remains available.
2. SQLite's backup API copies a snapshot of the database.
3. Files that were uploaded in between are linked too. Now every file row of the snapshot has its
   file, unless the file was uploaded and deleted since step 1; then the next round finds neither.
4. The linked files are copied to the backup and verified. The manifest is written last: a folder
   without a manifest is not a backup.

The backup contains everything that was acknowledged before its start. Data written during the
backup may be included.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from services.accounts import development
from services.backup.copying import check_database, copy, entry_of, opened, snapshot, sync_folder
from services.backup.manifest import BLOBS, DATABASE, NAME, BackupError, BackupFile, Manifest
from services.common.settings import Storage

# Names of complete uploads; other files are still being written.
_BLOB = re.compile(r"file-[0-9A-Z]{26}", re.ASCII)
_STAGE = "backup"
_ROUNDS = 10
_USE_INSTEAD = (
    "gateway backup supports only SQLite and files on this machine. For PostgreSQL, first use "
    "pg_dump or the server's continuous archiving; then, for a bucket, its versioning or "
    "replication. The first sweep after limits.orphan_grace_s deletes objects without a row"
)


def check_is_local(storage: Storage) -> None:
    """Check that all data are on this machine.

    Raises:
        BackupError: they are not; the message names alternatives.
    """
    if storage.database_url or storage.blob_url:
        raise BackupError(_USE_INSTEAD)


def back_up(storage: Storage, target: Path, now: datetime) -> Manifest:
    """Copy the data of a gateway, which may be running, into a new or an empty folder.

    Raises:
        BackupError: the data are not on this machine, there are none, the folder is in the data
            folder or not empty, the file system has no hard links, another backup is running, or
            the copy is inconsistent or damaged.
        OSError: something cannot be read or written.
    """
    check_is_local(storage)
    source = storage.data_dir
    database = source / DATABASE
    if not database.exists():
        raise BackupError(f"{database}: does not exist; no gateway has run in {source.absolute()}")
    if target.exists() and any(target.iterdir()):
        raise BackupError(f"{target}: is not empty")
    if target.absolute().is_relative_to(source.absolute()):
        raise BackupError(
            f"{target}: inside the data folder; choose a folder elsewhere, preferably on another "
            "disk"
        )
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    (target / BLOBS).mkdir(mode=0o700)
    with _stage(source / _STAGE) as stage:
        _copy_consistently(source, stage, target / DATABASE)
        for blob in sorted(stage.iterdir()):
            copy(blob, target / BLOBS / blob.name)
    with suppress(FileNotFoundError):
        copy(source / development.FILE, target / development.FILE)
    return _finish(target, now)


@contextmanager
def _stage(folder: Path) -> Iterator[Path]:
    """Create a folder for links, locked for one backup at a time; remove it at exit.

    Raises:
        BackupError: another backup is running.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Links of a backup that was killed.
        for path in folder.iterdir():
            path.unlink()
        yield folder
        shutil.rmtree(folder)
    except BlockingIOError as error:
        raise BackupError(f"{folder}: another backup is running") from error
    finally:
        os.close(descriptor)


def _copy_consistently(source: Path, stage: Path, database: Path) -> None:
    """Copy the database, and link all files that it refers to."""
    for _ in range(_ROUNDS):
        _link(source / BLOBS, stage)
        snapshot(source / DATABASE, database)
        _link(source / BLOBS, stage)
        rows = _file_rows(database)
        if all((stage / name).exists() for name in rows):
            # Files without a row belong to running uploads, or were deleted in the meantime.
            for blob in stage.iterdir():
                if blob.name not in rows:
                    blob.unlink()
            return
    missing = next(name for name in rows if not (stage / name).exists())
    raise BackupError(
        f"{source / BLOBS / missing}: missing, although the database refers to it; see the log of "
        "the gateway, or delete the file with the API"
    )


def _link(blobs: Path, stage: Path) -> None:
    if not blobs.exists():
        return
    with os.scandir(blobs) as listing:
        for entry in listing:
            if _BLOB.fullmatch(entry.name):
                try:
                    os.link(entry.path, stage / entry.name)
                except (FileExistsError, FileNotFoundError):
                    continue  # linked before, or deleted now
                except OSError as error:
                    raise BackupError(
                        f"{blobs}: this file system has no hard links ({error.strerror}); use a "
                        "snapshot of the file system"
                    ) from error


def _file_rows(database: Path) -> Mapping[str, BackupFile]:
    """Return the size and digest of each file in the database, by id."""
    with opened(database) as connection:
        rows = connection.execute("SELECT id, size_bytes, sha256 FROM files")
        return {name: BackupFile(size, digest) for name, size, digest in rows}


def _finish(target: Path, now: datetime) -> Manifest:
    """Verify the copies, and write the manifest.

    Raises:
        BackupError: the database is damaged, or a file does not match its row.
    """
    migration = check_database(target / DATABASE)
    paths = [path for path in target.rglob("*") if path.is_file()]
    files = {str(path.relative_to(target)): entry_of(path) for path in paths}
    for name, row in _file_rows(target / DATABASE).items():
        if files[f"{BLOBS}/{name}"] != row:
            raise BackupError(
                f"{BLOBS}/{name}: digest does not match the database; the file is damaged on "
                "disk: restore it from an older backup, or delete it with the API"
            )
    manifest = Manifest(now.isoformat(timespec="seconds"), migration, files)
    for folder in (target / BLOBS, target):
        sync_folder(folder)
    unfinished = target / f"{NAME}.new"
    unfinished.write_text(manifest.encode())
    unfinished.chmod(0o600)
    os.replace(unfinished, target / NAME)
    sync_folder(target)
    return manifest

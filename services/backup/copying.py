"""Durable copies of files, with their digests."""

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from services.backup.manifest import BackupError, BackupFile

_PIECE = 1 << 20
# SQLite's files beside the database.
_BESIDE = ("-wal", "-shm", "-journal")


def copy(source: Path, target: Path) -> BackupFile:
    """Copy a file to a new file with mode 0600; return its size and digest.

    Raises:
        OSError: a file cannot be opened, or the disk is full.
    """
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as read:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            while piece := read.read(_PIECE):
                digest.update(piece)
                size += file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    return BackupFile(size, digest.hexdigest())


def entry_of(path: Path) -> BackupFile:
    """Return the size and digest of a file.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as read:
        digest = hashlib.file_digest(read, "sha256")
        return BackupFile(read.tell(), digest.hexdigest())


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that its entries survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def opened(database: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing SQLite file for reading.

    Raises:
        BackupError: SQLite cannot read it.
    """
    try:
        with closing(
            sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            yield connection
    except sqlite3.Error as error:
        raise BackupError(f"{database}: {error}") from error


def snapshot(source: Path, target: Path) -> None:
    """Copy a snapshot of a SQLite database, which others may be writing to.

    Raises:
        BackupError: SQLite cannot read or write.
    """
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    with opened(source) as live, closing(sqlite3.connect(target)) as copied:
        live.backup(copied)
        # A single file without a write-ahead log, for copying and hashing. The gateway enables the
        # log again.
        copied.execute("PRAGMA journal_mode = DELETE")
    for suffix in _BESIDE:
        Path(f"{target}{suffix}").unlink(missing_ok=True)


def check_database(database: Path) -> str:
    """Check the integrity of a database; return its migration step.

    Raises:
        BackupError: the database is damaged, or not that of a gateway.
    """
    with opened(database) as connection:
        (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if state != "ok":
            raise BackupError(f"{database}: damaged: {state}")
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(revision)

"""Copies of files that survive a power cut, with their digests."""

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from services.backup.manifest import BackupError, Entry

_PIECE = 1 << 20
# SQLite's files beside the database.
_BESIDE = ("-wal", "-shm", "-journal")


def copy(source: Path, target: Path) -> Entry:
    """Copy a file to a new one that only this user may read.

    Raises:
        OSError: one of them cannot be opened, or the disk is full.
    """
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as read:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as written:
            while piece := read.read(_PIECE):
                digest.update(piece)
                size += written.write(piece)
            written.flush()
            os.fsync(written.fileno())
    return Entry(size, digest.hexdigest())


def entry_of(path: Path) -> Entry:
    """Return the size and digest of a file.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as read:
        digest = hashlib.file_digest(read, "sha256")
        return Entry(read.tell(), digest.hexdigest())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def opened(database: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file that is there, to read it.

    Raises:
        BackupError: SQLite cannot read it.
    """
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as one:
            yield one
    except sqlite3.Error as error:
        raise BackupError(f"{database}: {error}") from error


def snapshot(source: Path, target: Path) -> None:
    """Copy a SQLite database at one moment, while others write to it.

    Raises:
        BackupError: SQLite cannot read or write.
    """
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    with opened(source) as live, closing(sqlite3.connect(target)) as copied:
        live.backup(copied)
        # Of one file, which is moved and digested as such. The gateway turns the log on again.
        copied.execute("PRAGMA journal_mode = DELETE")
    for suffix in _BESIDE:
        Path(f"{target}{suffix}").unlink(missing_ok=True)


def check_database(database: Path) -> str:
    """Return the migration that a database is at.

    Raises:
        BackupError: the database is damaged, or none of a gateway.
    """
    with opened(database) as connection:
        (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if state != "ok":
            raise BackupError(f"{database}: is damaged: {state}")
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(revision)

"""The order in which processes write to a SQLite file.

When SQLite's own lock is held, a process sleeps for longer and longer before it tries again, and a
process that writes all the time takes the lock again before that. Here a process that has written
lets one go first that already waits: both wait for the same place in front of the lock.
"""

import fcntl
import os
import sqlite3
import time
from pathlib import Path

from services.common.storage.file_locks import try_lock

_PAUSE_S = 0.001


class SqliteWriteLock:
    """A lock of one connection on two files beside the database; any thread may use it.

    The system releases it when its process ends.
    """

    def __init__(self, database: Path, wait_s: float) -> None:
        """Create a lock that is waited for for at most `wait_s` seconds."""
        self._paths = Path(f"{database}-first"), Path(f"{database}-writer")
        self._wait_s = wait_s
        self._descriptors: tuple[int, int] | None = None

    def acquire(self) -> None:
        """Wait for the lock; where its files cannot be made, SQLite's own lock has to do.

        Raises:
            sqlite3.OperationalError: it was not free in time.
        """
        if not self._descriptors:
            try:
                self._descriptors = _open_both(*self._paths)
            except OSError:  # a full disk, on which transactions that delete go on
                return
        first, writer = self._descriptors
        until = time.monotonic() + self._wait_s
        _lock(first, until)
        try:
            _lock(writer, until)
        finally:
            fcntl.flock(first, fcntl.LOCK_UN)

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptors:
            fcntl.flock(self._descriptors[1], fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the lock and close its files."""
        descriptors, self._descriptors = self._descriptors, None
        for descriptor in descriptors or ():
            os.close(descriptor)


def _open_both(first: Path, writer: Path) -> tuple[int, int]:
    """Open both files, or neither."""
    descriptor = _open(first)
    try:
        return descriptor, _open(writer)
    except OSError:
        os.close(descriptor)
        raise


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock(descriptor: int, until: float) -> None:
    while True:
        if try_lock(descriptor):
            return
        if time.monotonic() > until:
            raise sqlite3.OperationalError("database is locked")
        time.sleep(_PAUSE_S)

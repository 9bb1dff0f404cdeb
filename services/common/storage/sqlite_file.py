"""Connections to the SQLite file of the database."""

import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from services.common.storage.write_lock import SqliteWriteLock

# Time that a statement waits for another writer of the file.
_BUSY_TIMEOUT_MS = 10_000
_BUSY_PAUSE_S = 0.005


class SqliteFile(sqlite3.Connection):
    """A connection whose transactions wait for those of other processes in turn.

    It rolls back its transaction when it is closed. When a connection is closed because its caller
    was cancelled, a statement may still be running or referenced. SQLite then keeps the transaction
    open, and with it the lock that all other writers wait for.
    """

    def __init__(self, database: str, *args: Any, **options: Any) -> None:
        super().__init__(database, *args, **options)
        self._lock = SqliteWriteLock(Path(database), _BUSY_TIMEOUT_MS / 1000)

    def begin_to_write(self) -> None:
        """Begin a transaction that holds the write lock."""
        self._lock.acquire()
        try:
            self.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._lock.release()
            raise

    def commit(self) -> None:
        """Commit."""
        try:
            super().commit()
        finally:
            if not self.in_transaction:
                self._lock.release()

    def rollback(self) -> None:
        """Roll back."""
        try:
            super().rollback()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Roll back and close."""
        # The connection may already be closed.
        with suppress(sqlite3.Error):
            if self.in_transaction:
                self.rollback()
        super().close()
        self._lock.close()


def set_up(connection: Any, _record: object) -> None:
    """Set up a new connection of the driver; a listener of SQLAlchemy."""
    # Otherwise Python's driver begins transactions implicitly, and none for DDL.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {_BUSY_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        _execute_patiently(cursor, f"PRAGMA {pragma}")
    cursor.close()


def _execute_patiently(cursor: Any, statement: str) -> None:
    """Execute a statement; retry while the database is locked.

    `busy_timeout` does not apply to the change to a write-ahead log, which several processes may
    attempt at once when they open a new file.
    """
    until = time.monotonic() + _BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            cursor.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_BUSY_PAUSE_S)

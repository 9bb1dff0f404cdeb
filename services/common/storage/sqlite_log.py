"""Disk space of SQLite's write-ahead log, allocated in advance.

A transaction appends to the log, which SQLite overwrites from its beginning once its pages are in
the database, and deletes with the last connection. With blocks for a whole log, transactions that
do not enlarge the database, such as deletions, succeed on a full disk.
"""

import os
from contextlib import suppress
from pathlib import Path

from services.common.storage.database import SQLITE_FILE
from services.common.storage.disk import free_bytes

# SQLite copies the log into the database once it has 1,000 pages of 4,096 bytes, with their heads.
_LOG_BYTES = 5 << 20
# Less free space is left to what frees some.
_LEAST_FREE = 4 * _LOG_BYTES


def allocate_log(data_dir: Path) -> None:
    """Allocate the blocks of the log in a data folder, which a connection must have open.

    SQLite ignores what follows its last transaction. Without enough free space, or if the system
    cannot allocate blocks, the log remains as it is.
    """
    with suppress(AttributeError, OSError):
        if free_bytes(data_dir) < _LEAST_FREE:
            return
        # Closing a file releases the locks of its process, but SQLite holds none on this one.
        descriptor = os.open(data_dir / f"{SQLITE_FILE}-wal", os.O_RDWR)
        try:
            os.posix_fallocate(descriptor, 0, _LOG_BYTES)
        finally:
            os.close(descriptor)

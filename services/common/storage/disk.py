"""The reserve of free disk space, which reading and deleting need.

If less than `storage.min_free_bytes` is free, no new data are stored. A full disk would stop the
gateway entirely: SQLite needs free space even for deleting.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

LIMIT = "storage.min_free_bytes"

_INTERVAL_S = 1.0
_RETRY_AFTER_S = 30

log = logging.getLogger(__name__)


def free_bytes(folder: Path) -> int:
    """Return the free bytes for unprivileged processes on the file system of a folder."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


class DiskReserve:
    """Reserve of free space: new writes are rejected when it is reached.

    Args:
        folder: the folder with the data.
        least: bytes that must stay free; 0 allows all writes, for data that are stored elsewhere.
        show: called with the state whenever it changes, for metrics: 1 while writes are rejected.
        read: returns the free bytes on the file system of a folder.
    """

    def __init__(
        self,
        folder: Path,
        least: int,
        *,
        show: Callable[[float], None] = lambda state: None,
        read: Callable[[Path], int] = free_bytes,
    ) -> None:
        self._folder = folder
        self._least = least
        self._read = read
        self._is_low = False
        self._show = show
        self.look()

    def check(self) -> None:
        """Check that new data may be written.

        Raises:
            GatewayError: storage_full, when less than the reserve is free.
        """
        if self._is_low:
            raise GatewayError(
                errors_pb2.REASON_STORAGE_FULL,
                "the gateway's disk is almost full; writes are rejected, reads and deletions "
                "continue to work; try again later",
                retry_after_s=_RETRY_AFTER_S,
                limit=LIMIT,
            )

    def look(self) -> None:
        """Read the free space, and log a change."""
        if self._least:
            self._note(self._read_free())

    def _read_free(self) -> int | None:
        try:
            return self._read(self._folder)
        except OSError as error:
            log.error("the free disk space could not be read", extra={"storage": str(error)})
            return None

    def _note(self, free: int | None) -> None:
        if free is None:
            return
        is_low = free < self._least
        if is_low != self._is_low:
            self._is_low = is_low
            self._show(is_low)
            details = {
                "free_bytes": free,
                "min_free_bytes": self._least,
                "folder": str(self._folder),
            }
            if is_low:
                log.error("the disk is almost full: new writes are rejected", extra=details)
            else:
                log.warning("the disk has free space again: new writes are accepted", extra=details)

    async def watch(self) -> None:
        """Check the free space every second until cancelled."""
        while self._least:
            await asyncio.sleep(_INTERVAL_S)
            # In a thread: a network file system may block.
            self._note(await asyncio.to_thread(self._read_free))

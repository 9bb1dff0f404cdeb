"""The sweeper that removes expired files, and blobs without a file.

A crash leaves bytes without a row, and so does a store that was down when a file was
deleted. They cannot be distinguished from an upload whose row is not committed yet, so
only those older than a grace period are deleted. An upload that is not ready to commit
within half of that period fails.
"""

import logging

from services.common.clock import Clock, ExpiryClock
from services.common.leases import Lease
from services.common.settings import Limits
from services.common.sweeping import Sweeper
from services.files.blobs import Blobs
from services.files.metrics import Metrics
from services.files.repository import FileRepository

_AT_ONCE = 500

log = logging.getLogger(__name__)


class FileSweeper(Sweeper):
    """The sweeper of files."""

    def __init__(
        self,
        repository: FileRepository,
        blobs: Blobs,
        lease: Lease,
        limits: Limits,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        super().__init__(lease, limits.sweep_every_s)
        self._repository = repository
        self._blobs = blobs
        self._limits = limits
        self._clock = clock
        self._expiry = ExpiryClock(clock, limits.orphan_grace_s)
        self._metrics = metrics
        self._orphans_due_at = clock.monotonic()

    async def remove_expired(self) -> None:
        """Delete expired files, and orphaned blobs once per grace period."""
        await self._sweep_expired()
        if self._clock.monotonic() >= self._orphans_due_at:
            await self._sweep_orphans()
            self._orphans_due_at = self._clock.monotonic() + self._limits.orphan_grace_s
        total = await self._repository.total()
        self._metrics.stored_files.set(total.files)
        self._metrics.stored_bytes.set(total.size_bytes)

    async def _sweep_expired(self) -> None:
        while removed := await self._repository.remove_expired(_AT_ONCE):
            for file_id in removed:
                await self._blobs.delete(file_id)
            self._metrics.swept.labels("expired").inc(len(removed))
            log.info("expired files deleted", extra={"files": len(removed)})
            if len(removed) < _AT_ONCE or not await self.renew_lease():
                return

    async def _sweep_orphans(self) -> None:
        # A clock that was set makes no blob of an upload in progress look old.
        oldest_s = self._expiry.bounds_ms()[0] / 1000 - self._limits.orphan_grace_s
        async for batch in self._blobs.entries():
            # An incomplete blob has a number after the id, and never has a row.
            old = {entry.key for entry in batch if entry.modified_s < oldest_s}
            for key in await self._repository.unknown(old):
                await self._blobs.delete(key)
                self._metrics.swept.labels("orphan").inc()
                log.info("bytes without a file deleted", extra={"key": key})
            if not await self.renew_lease():
                return

"""The sweeper that removes expired files, and blobs that no file has.

Bytes without a row are what a crash leaves behind, or a store that was down when a file
was deleted. They look the same as an upload whose row is still to come, so only those
older than a grace period go; an upload that takes longer to commit than half of it
gives up.
"""

import logging

from services.common.clock import Clock
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
        self._metrics = metrics
        self._orphans_due_at = clock.monotonic()

    async def clear(self) -> None:
        """Clear away expired files, and orphans when it is time for them."""
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
            log.info("expired files swept", extra={"files": len(removed)})
            if len(removed) < _AT_ONCE or not await self.goes_on():
                return

    async def _sweep_orphans(self) -> None:
        oldest_s = self._clock.now() - self._limits.orphan_grace_s
        async for batch in self._blobs.entries():
            # A part of a blob has a number behind the id, and no row ever.
            old = {entry.key for entry in batch if entry.modified_s < oldest_s}
            for key in await self._repository.unknown(old):
                await self._blobs.delete(key)
                self._metrics.swept.labels("orphan").inc()
                log.info("bytes without a file swept", extra={"key": key})
            if not await self.goes_on():
                return

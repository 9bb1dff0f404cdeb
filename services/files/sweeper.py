"""Clears away what is over: files that expired, and bytes that no file has.

Bytes without a row are what a crash leaves behind, or a store that was down when a file
was deleted. They look the same as an upload whose row is still to come, so only those
older than a grace period go; an upload that takes longer to commit than half of it
gives up.
"""

import asyncio
import logging

from services.common.errors import GatewayError
from services.common.ids import Source
from services.common.leases import Lease
from services.common.settings import Limits
from services.files.blobs import Blobs
from services.files.metrics import Metrics
from services.files.repository import FileRepository

LEASE = "files_sweeper"

_AT_ONCE = 500
# How many periods between sweeps a lease lasts: whoever holds it renews it in each.
LEASE_PERIODS = 3

log = logging.getLogger(__name__)


class Sweeper:
    """The sweeper of one process; of those that share a database one at a time works."""

    def __init__(
        self,
        repository: FileRepository,
        blobs: Blobs,
        lease: Lease,
        limits: Limits,
        source: Source,
        metrics: Metrics,
    ) -> None:
        self._repository = repository
        self._blobs = blobs
        self._lease = lease
        self._limits = limits
        self._source = source
        self._metrics = metrics
        self._orphans_due_at = source.monotonic()

    async def run(self) -> None:
        """Sweep for ever; what does not work now is tried again the next time."""
        while True:
            try:
                await self.sweep()
            except GatewayError as error:
                log.warning("a sweep was cut short", extra={"error": error.message})
            except Exception:
                log.exception("a sweep failed")
            await asyncio.sleep(self._limits.sweep_every_s)

    async def sweep(self) -> bool:
        """Clear away what is over, unless another process does; tell whether it was ours to do.

        Raises:
            GatewayError: unavailable, storage_unavailable; what was cleared by then is.
        """
        if not await self._lease.take():
            return False
        await self._sweep_expired()
        if self._source.monotonic() >= self._orphans_due_at:
            await self._sweep_orphans()
            self._orphans_due_at = self._source.monotonic() + self._limits.orphan_grace_s
        total = await self._repository.total()
        self._metrics.stored_files.set(total.files)
        self._metrics.stored_bytes.set(total.size_bytes)
        return True

    async def stop(self) -> None:
        """Leave the work to another process, at once."""
        try:
            await self._lease.release()
        except GatewayError as error:
            log.warning("the sweeper's lease was left", extra={"error": error.message})

    async def _sweep_expired(self) -> None:
        while removed := await self._repository.remove_expired(_AT_ONCE):
            for file_id in removed:
                await self._blobs.delete(file_id)
            self._metrics.swept.labels("expired").inc(len(removed))
            log.info("expired files swept", extra={"files": len(removed)})
            if len(removed) < _AT_ONCE or not await self._lease.take():
                return

    async def _sweep_orphans(self) -> None:
        oldest_s = self._source.now() - self._limits.orphan_grace_s
        async for batch in self._blobs.entries():
            # A part of a blob has a number behind the id, and no row ever.
            old = {entry.key for entry in batch if entry.modified_s < oldest_s}
            for key in await self._repository.unknown(old):
                await self._blobs.delete(key)
                self._metrics.swept.labels("orphan").inc()
                log.info("bytes without a file swept", extra={"key": key})
            if not await self._lease.take():
                return

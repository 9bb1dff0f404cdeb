"""The sweeper that removes expired files, and blobs without a file.

A crash leaves bytes without a row, and so does a store that was down when a file was
deleted. They cannot be distinguished from an upload whose row is not committed yet, so
only those older than a grace period are deleted. An upload that is not ready to commit
within half of that period fails.
"""

import logging

from services.common.clock import Clock, ExpiryClock
from services.common.settings import Limits
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches
from services.files.blob_store import Blobs, delete_blobs
from services.files.metrics import FileMetrics
from services.files.repository import FileRepository
from services.files.upload_repository import PART_PREFIX, UploadRepository

_AT_ONCE = 500
# Each may have a thousand parts.
_UPLOADS_AT_ONCE = 20

log = logging.getLogger(__name__)


def file_sweeper(
    repository: FileRepository,
    uploads: UploadRepository,
    blobs: Blobs,
    lease: Lease,
    limits: Limits,
    clock: Clock,
    metrics: FileMetrics,
) -> Sweeper:
    """Return the sweeper of what has expired, and of orphaned blobs once per grace period."""
    expiry = ExpiryClock(clock, limits.orphan_grace_s)
    orphans_due_at = clock.monotonic()

    async def remove_old(renew: Renew) -> None:
        nonlocal orphans_due_at
        await _remove_expired(repository, blobs, metrics, renew)
        await _remove_expired_uploads(uploads, blobs, metrics, renew)
        if clock.monotonic() >= orphans_due_at:
            # A clock that was set makes no blob of an upload in progress look old.
            oldest_s = expiry.bounds_ms()[0] / 1000 - limits.orphan_grace_s
            await _remove_orphans(repository, uploads, blobs, oldest_s, metrics, renew)
            orphans_due_at = clock.monotonic() + limits.orphan_grace_s
        total = await repository.total()
        metrics.stored_files.set(total.files)
        metrics.stored_bytes.set(total.size_bytes)

    return Sweeper(lease, limits.sweep_every_s, remove_old)


async def _remove_expired(
    repository: FileRepository, blobs: Blobs, metrics: FileMetrics, renew: Renew
) -> None:
    async def remove_batch(at_most: int) -> int:
        file_ids = await repository.remove_expired(at_most)
        await delete_blobs(blobs, file_ids)
        if file_ids:
            metrics.swept.labels("expired").inc(len(file_ids))
            log.info("expired files deleted", extra={"files": len(file_ids)})
        return len(file_ids)

    await remove_in_batches(remove_batch, _AT_ONCE, renew)


async def _remove_expired_uploads(
    uploads: UploadRepository, blobs: Blobs, metrics: FileMetrics, renew: Renew
) -> None:
    async def remove_batch(at_most: int) -> int:
        count, part_ids = await uploads.remove_expired(at_most)
        await delete_blobs(blobs, part_ids)
        if count:
            metrics.swept.labels("upload").inc(count)
            log.info("expired uploads deleted", extra={"uploads": count})
        return count

    await remove_in_batches(remove_batch, _UPLOADS_AT_ONCE, renew)


async def _remove_orphans(
    repository: FileRepository,
    uploads: UploadRepository,
    blobs: Blobs,
    oldest_s: float,
    metrics: FileMetrics,
    renew: Renew,
) -> None:
    """Delete the blobs without a row that are older than a time in Unix seconds."""
    async for batch in blobs.entries():
        # An incomplete blob has a number after the id, and never has a row.
        old = {entry.key for entry in batch if entry.modified_s < oldest_s}
        part_ids = {key for key in old if key.startswith(PART_PREFIX)}
        unknown_files = await repository.unknown(old - part_ids)
        if orphans := sorted(unknown_files | await uploads.unknown_parts(part_ids)):
            await delete_blobs(blobs, orphans)
            metrics.swept.labels("orphan").inc(len(orphans))
            log.info("bytes without a file deleted", extra={"keys": orphans})
        if not await renew():
            return

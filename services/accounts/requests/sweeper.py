"""The sweeper that deletes old entries of the request log, and their bodies."""

import logging

from services.accounts.requests.bodies import BodyStore
from services.accounts.requests.repository import RequestRepository
from services.common.clock import Clock
from services.common.ids import LOGGED_REQUEST, time_prefix
from services.common.settings import RequestLog
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches

_AT_ONCE = 2_000

log = logging.getLogger(__name__)


def request_sweeper(
    repository: RequestRepository,
    bodies: BodyStore,
    lease: Lease,
    every_s: float,
    settings: RequestLog,
    clock: Clock,
) -> Sweeper:
    """Return the sweeper of entries that are older, or more, than the settings say."""

    async def remove_expired(renew: Renew) -> None:
        expired = time_prefix(LOGGED_REQUEST, clock.now_ms() - int(settings.keep_s * 1000))
        cutoff = max(expired, await repository.oldest_of_newest(settings.max_entries))

        async def remove(at_most: int) -> int:
            removed = await repository.remove_before(cutoff, at_most)
            if removed:
                log.info("old entries of the request log deleted", extra={"entries": removed})
            return removed

        await remove_in_batches(remove, _AT_ONCE, renew)
        # Also those that have no entry: it was never written, or the process was killed in between.
        removed = await bodies.remove_before(cutoff, settings.max_stored_bytes)
        if removed:
            log.info("old bodies of the request log deleted", extra={"bodies": removed})

    return Sweeper(lease, every_s, remove_expired)

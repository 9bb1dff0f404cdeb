"""Runs erasures: removes what all services store of a user, batch by batch."""

import logging
from collections.abc import Sequence
from functools import partial

from prometheus_client import CollectorRegistry

from services.accounts.erasure.repository import ErasureRepository
from services.common.errors import GatewayError
from services.common.process.metrics import Gauge
from services.common.storage.erasing import EraseBatch
from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches

_ERASURES_AT_ONCE = 100
_REPORTS_AT_ONCE = 100

log = logging.getLogger(__name__)


class Eraser:
    """Removes the data of users who are being erased.

    Args:
        repository: the erasures.
        batches: the functions of all stores.
    """

    def __init__(self, repository: ErasureRepository, batches: Sequence[EraseBatch]) -> None:
        self._repository = repository
        self._batches = batches

    async def run(self, user_id: str, renew: Renew) -> None:
        """Remove all data of a user: pass after pass, until one finds nothing.

        Ends early when `renew` returns False; whoever runs the erasure next goes on.

        Raises:
            GatewayError: a store is unavailable.
        """
        removed = True
        while removed:
            removed = False
            count = self._repository.counting(user_id)
            for erase_batch in self._batches:
                while await erase_batch(user_id, count):
                    removed = True
                    if not await renew():
                        return
        await self._repository.end_pass(user_id)

    async def run_due(self, renew: Renew) -> None:
        """Run the erasures that are due; one that fails is due again in the next sweep."""
        for user_id in await self._repository.due(_ERASURES_AT_ONCE):
            try:
                await self.run(user_id, renew)
            except GatewayError as error:
                extra = {"user": user_id, "error": error.message}
                log.warning("the erasure of a user was interrupted", extra=extra)
            if not await renew():
                return


def erasure_sweeper(
    eraser: Eraser,
    repository: ErasureRepository,
    lease: Lease,
    every_s: float,
    retention_s: float,
    registry: CollectorRegistry,
) -> Sweeper:
    """Return the sweeper that runs erasures.

    Args:
        eraser: runs them.
        repository: the erasures.
        lease: see `sweeper_lease`.
        every_s: seconds between two sweeps.
        retention_s: seconds for which the report of a finished erasure is kept.
        registry: registry for the metrics.
    """
    # Set by the process that swept last.
    unfinished = Gauge(
        "gateway_erasures_unfinished",
        "Users whose data are being erased, as of the last sweep.",
        multiprocess_mode="mostrecent",
        registry=registry,
    )

    async def sweep(renew: Renew) -> None:
        await eraser.run_due(renew)
        unfinished.set(await repository.unfinished())
        remove_older = partial(repository.remove_older, retention_s)
        await remove_in_batches(remove_older, _REPORTS_AT_ONCE, renew)

    return Sweeper(lease, every_s, sweep)

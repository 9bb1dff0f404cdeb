"""Periodic deletion of cached conversions."""

import logging

from services.common.ids import Source
from services.common.leases import Lease
from services.common.settings import Adaptation
from services.common.sweeping import Sweeper
from services.inference.adaptation.store import KeptConversions, overdue

# Each sweep lists the whole store: it runs this many times less often than `limits.sweep_every_s`.
ROUNDS = 10

log = logging.getLogger(__name__)


class ConversionSweeper(Sweeper):
    """Deletes cached conversions that are too old or exceed the bounds."""

    def __init__(
        self,
        store: KeptConversions,
        lease: Lease,
        every_s: float,
        bounds: Adaptation,
        source: Source,
    ) -> None:
        super().__init__(lease, every_s)
        self._store = store
        self._bounds = bounds
        self._source = source

    async def clear(self) -> None:
        """Delete the entries that exceed the bounds."""
        entries = await self._store.entries()
        if going := overdue(entries, self._source.now(), self._bounds):
            await self._store.delete(going)
            log.info("conversions swept", extra={"conversions": len(going)})

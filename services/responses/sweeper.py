"""Sweeper of stored responses."""

from services.common.leases import Lease
from services.common.sweeping import Sweeper
from services.responses.repository import ResponseRepository

_BATCH = 100


class ResponseSweeper(Sweeper):
    """Deletes responses that have expired, and interrupts those whose process has died."""

    def __init__(self, repository: ResponseRepository, lease: Lease, every_s: float) -> None:
        super().__init__(lease, every_s)
        self._repository = repository

    async def clear(self) -> None:
        """Interrupt responses that nobody generates any more, and delete expired ones."""
        await self._repository.interrupt_expired()
        while await self._repository.delete_expired(_BATCH) == _BATCH and await self.goes_on():
            pass

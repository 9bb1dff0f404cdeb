"""Sweeper of stored responses and conversations."""

from services.common.leases import Lease
from services.common.sweeping import Sweeper
from services.responses.conversations.repository import ConversationRepository
from services.responses.repository import ResponseRepository

_BATCH = 100


class ResponseSweeper(Sweeper):
    """The sweeper of stored responses and conversations."""

    def __init__(
        self,
        repository: ResponseRepository,
        conversations: ConversationRepository,
        lease: Lease,
        every_s: float,
    ) -> None:
        super().__init__(lease, every_s)
        self._repository = repository
        self._conversations = conversations

    async def remove_expired(self) -> None:
        """Interrupt responses with expired leases; delete expired responses and conversations."""
        await self._repository.interrupt_expired()
        for delete_expired in (self._repository.delete_expired, self._conversations.delete_expired):
            while await delete_expired(_BATCH) == _BATCH and await self.renew_lease():
                pass

"""Sweeper of stored responses, conversations and chat completions."""

from services.common.storage.leases import Lease
from services.common.storage.sweeping import Renew, Sweeper, remove_in_batches
from services.responses.chats.repository import ChatRepository
from services.responses.conversations.repository import ConversationRepository
from services.responses.repository import ResponseRepository

_BATCH = 100


def response_sweeper(
    repository: ResponseRepository,
    conversations: ConversationRepository,
    chats: ChatRepository,
    lease: Lease,
    every_s: float,
) -> Sweeper:
    """Return the sweeper of expired responses, conversations and chat completions.

    It also interrupts the responses whose leases have expired.
    """

    async def remove_expired(renew: Renew) -> None:
        await repository.interrupt_expired()
        await remove_in_batches(repository.delete_expired, _BATCH, renew)
        await remove_in_batches(conversations.delete_expired, _BATCH, renew)
        await remove_in_batches(chats.delete_expired, _BATCH, renew)

    return Sweeper(lease, every_s, remove_expired)

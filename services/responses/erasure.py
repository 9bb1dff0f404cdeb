"""Erasure of a user's stored responses, conversations and chat completions."""

from sqlalchemy import ColumnElement
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.storage.database import write
from services.common.storage.erasing import CountErased
from services.common.storage.owners import charge
from services.responses.chats.repository import delete_chats
from services.responses.chats.tables import chats
from services.responses.conversations.rows import delete_conversations
from services.responses.conversations.tables import conversations
from services.responses.response_rows import delete_responses
from services.responses.tables import responses

_AT_ONCE = 100


class ResponseErasure:
    """Removes batches of a user's responses, conversations and chat completions.

    Responses that are being generated are removed too: their ends cannot be stored then.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove some things of one kind; return their number, 0 if there are none of any kind.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        which: ColumnElement[bool] = responses.c.owner_id == user_id

        async def remove_responses(connection: AsyncConnection) -> int:
            # Others lock several responses in another order. One that is locked is waited for.
            sizes = await delete_responses(connection, which, limit=_AT_ONCE, skip_locked=True)
            sizes = sizes or await delete_responses(connection, which, limit=1)
            await count(connection, "responses", len(sizes), sum(sizes))
            return len(sizes)

        async def remove_conversations(connection: AsyncConnection) -> int:
            theirs = conversations.c.owner_id == user_id
            freed = await delete_conversations(connection, theirs, limit=_AT_ONCE, skip_locked=True)
            freed = freed or await delete_conversations(connection, theirs, limit=1)
            size = sum(size for _, size in freed)
            await charge(connection, user_id, -size)
            await count(connection, "conversations", len(freed), size)
            return len(freed)

        async def remove_chats(connection: AsyncConnection) -> int:
            theirs = chats.c.owner_id == user_id
            sizes = await delete_chats(connection, theirs, limit=_AT_ONCE, skip_locked=True)
            sizes = sizes or await delete_chats(connection, theirs, limit=1)
            await count(connection, "chat_completions", len(sizes), sum(sizes))
            return len(sizes)

        for remove in (remove_responses, remove_conversations, remove_chats):
            if removed := await write(self._engine, remove):
                return removed
        return 0

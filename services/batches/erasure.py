"""Erasure of a user's batches."""

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.batches.repository import delete_some
from services.batches.tables import batches
from services.common.storage.erasing import CountErased


class BatchErasure:
    """Removes a user's batches, with their requests and results.

    Batches that have not ended are removed too: their results cannot be stored then.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove some rows; return their number.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """

        async def count_batch(connection: AsyncConnection) -> None:
            await count(connection, "batches", 1)

        return await delete_some(self._engine, batches.c.user_id == user_id, count_batch)

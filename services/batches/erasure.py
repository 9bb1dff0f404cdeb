"""Erasure of a user's batches."""

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.batches.repository import delete_some
from services.batches.tables import batches
from services.common.storage.database import reading_once, write
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
        theirs = batches.c.user_id == user_id
        query = select(func.count()).select_from(batches).where(theirs)
        async with reading_once(self._engine) as connection:
            before = await connection.scalar(query) or 0
        removed = await delete_some(self._engine, theirs)
        async with reading_once(self._engine) as connection:
            after = await connection.scalar(query) or 0
        if after < before:
            await write(self._engine, lambda connection: count(connection, "batches", 1))
        return removed

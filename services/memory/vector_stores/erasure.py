"""Erasure of a user's vector stores."""

from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.storage.database import write
from services.common.storage.erasing import CountErased
from services.memory.archive import index
from services.memory.vector_stores.tables import (
    vector_store_batches,
    vector_store_files,
    vector_stores,
)

_ROWS_AT_ONCE: Final = 500


class VectorStoreErasure:
    """Removes a user's vector stores, with their index.

    A file that is being indexed is removed too: no more of it can be stored then.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove some rows; return their number.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """

        async def transact(connection: AsyncConnection) -> int:
            first = select(vector_stores.c.id).where(vector_stores.c.user_id == user_id).limit(1)
            store_id = await connection.scalar(first.with_for_update())
            if store_id is None:
                return 0
            for table in (vector_store_files, vector_store_batches):
                await connection.execute(delete(table).where(table.c.store_id == store_id))
            if removed := await index.remove_part(connection, store_id, _ROWS_AT_ONCE):
                return removed
            await connection.execute(delete(vector_stores).where(vector_stores.c.id == store_id))
            await count(connection, "vector_stores", 1)
            return 1

        return await write(self._engine, transact)

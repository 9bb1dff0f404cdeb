"""Erasure of a user's entries of the request log, and their bodies."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.accounts.requests.bodies import BodyStore
from services.accounts.requests.repository import remove_entries
from services.accounts.requests.tables import request_log
from services.common.storage.database import reading_once, write
from services.common.storage.erasing import CountErased

_AT_ONCE = 200


class RequestErasure:
    """Removes batches of a user's entries."""

    def __init__(self, engine: AsyncEngine, bodies: BodyStore) -> None:
        self._engine = engine
        self._bodies = bodies

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove some entries; return their number.

        The bodies are deleted first: as long as any are left, an entry names them.

        Raises:
            GatewayError: unavailable; storage_unavailable.
        """
        query = (
            select(request_log.c.id, request_log.c.has_bodies)
            .where(request_log.c.user_id == user_id)
            .order_by(request_log.c.id)
            .limit(_AT_ONCE)
        )
        async with reading_once(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        if not rows:
            return 0
        size = await self._bodies.remove([row.id for row in rows if row.has_bodies])

        async def remove(connection: AsyncConnection) -> None:
            removed = await remove_entries(connection, [row.id for row in rows])
            await count(connection, "logged_requests", removed, size)

        await write(self._engine, remove)
        return len(rows)

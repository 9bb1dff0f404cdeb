"""Erasure of a user's entries in the stores of converted media and of cached answers.

Answers that the user's team shares belong to the team, and are deleted when they are old.
"""

from collections.abc import Callable, Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.settings import Storage
from services.common.storage.byte_store import ByteStore, open_store
from services.common.storage.database import write
from services.common.storage.disk import DiskReserve
from services.common.storage.erasing import CountErased, EraseBatch
from services.inference.assembly import ANSWERS
from services.inference.response_cache.keys import owner_of_user
from services.media.conversion.cache import CONVERSIONS, owner_of


class StoreErasure:
    """Removes a user's entries of one store.

    Args:
        engine: the database of the report.
        store: the store.
        kind: what its entries are in the report.
        owner_of: returns the part of keys that names a user.
    """

    def __init__(
        self, engine: AsyncEngine, store: ByteStore, kind: str, owner_of: Callable[[str], str]
    ) -> None:
        self._engine = engine
        self._store = store
        self._kind = kind
        self._owner_of = owner_of

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove the entries; return their number.

        Raises:
            GatewayError: unavailable; storage_unavailable.
        """
        entries = await self._store.entries(self._owner_of(user_id))
        if entries:
            await self._store.delete([entry.key for entry in entries])
            size = sum(entry.size for entry in entries)
            await write(
                self._engine,
                lambda connection: count(connection, self._kind, len(entries), size),
            )
        return len(entries)


def store_erasures(
    engine: AsyncEngine, storage: Storage, reserve: DiskReserve
) -> Sequence[EraseBatch]:
    """Return the erasures of both stores."""
    return [
        StoreErasure(engine, open_store(storage, reserve, name), kind, owner)
        for name, kind, owner in (
            (CONVERSIONS, "conversions", owner_of),
            (ANSWERS, "cached_answers", owner_of_user),
        )
    ]

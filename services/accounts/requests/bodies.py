"""The store of the bodies of the request log: one blob for each entry."""

import asyncio
from collections.abc import Iterable, Sequence

from google.protobuf.message import DecodeError

from gateway.requests.v1.requests_pb2 import RequestBodies
from services.common.ids import LOGGED_REQUEST
from services.common.storage.byte_store import ByteStore, StoredBytes

_PARALLEL_WRITES = 8
_PARALLEL_READS = 8
_DELETED_AT_ONCE = 500
# Digits of the time in ids that name a folder: those of about 12 days.
_FOLDER_DIGITS = 3
_FOLDER = len(LOGGED_REQUEST) + _FOLDER_DIGITS


class BodyStore:
    """Stores bodies by the ids of their entries.

    Args:
        store: where they are stored.
    """

    def __init__(self, store: ByteStore) -> None:
        self._store = store

    async def put(self, bodies: Iterable[RequestBodies]) -> None:
        """Store bodies.

        Raises:
            GatewayError: storage_unavailable; storage_full.
        """
        room = asyncio.Semaphore(_PARALLEL_WRITES)

        async def put_one(one: RequestBodies) -> None:
            async with room:
                await self._store.put(_key(one.id), one.SerializeToString())

        await asyncio.gather(*map(put_one, bodies))

    async def get(self, entry_id: str) -> RequestBodies | None:
        """Return the bodies of an entry, or None if they are not stored any more.

        Raises:
            GatewayError: storage_unavailable.
        """
        content = await self._store.get(_key(entry_id))
        try:
            return None if content is None else RequestBodies.FromString(content)
        except DecodeError:
            return None

    async def remove(self, entry_ids: Sequence[str]) -> int:
        """Remove the bodies of entries; return their size in bytes.

        Raises:
            GatewayError: storage_unavailable.
        """
        keys = [_key(entry_id) for entry_id in entry_ids]
        room = asyncio.Semaphore(_PARALLEL_READS)

        async def size_of(key: str) -> int:
            async with room:
                return len(await self._store.get(key) or b"")

        size = sum(await asyncio.gather(*map(size_of, keys)))
        await self._store.delete(keys)
        return size

    async def remove_before(self, cutoff_id: str, max_bytes: int) -> int:
        """Remove the bodies of entries with smaller ids, and the oldest beyond `max_bytes`.

        Returns:
            The number of bodies that were removed.

        Raises:
            GatewayError: storage_unavailable.
        """
        removed = _overdue(await self._store.entries(), cutoff_id, max_bytes)
        for start in range(0, len(removed), _DELETED_AT_ONCE):
            await self._store.delete(removed[start : start + _DELETED_AT_ONCE])
        return len(removed)


def _key(entry_id: str) -> str:
    return f"{entry_id[:_FOLDER]}/{entry_id}"


def _overdue(entries: Iterable[StoredBytes], cutoff_id: str, max_bytes: int) -> Sequence[str]:
    """Return the keys to remove. Pure."""
    overdue: list[str] = []
    total = 0
    for entry in sorted(entries, key=lambda entry: entry.key, reverse=True):
        total += entry.size
        if total > max_bytes or entry.key.partition("/")[2] < cutoff_id:
            overdue.append(entry.key)
    return overdue

"""Exporter to a bucket: an object of JSON lines for each batch."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from services.common.errors import GatewayError
from services.common.storage.byte_store import ByteStore
from services.request_log.exporters.base import ExportedRequest, ExportError, RenderEntry
from services.request_log.exporters.json_lines import json_lines

# Batches of a process between two removals of old objects, which list the bucket.
_REMOVE_EVERY = 50


class BucketExporter:
    """Writes each batch as an object named `day/id.jsonl`, and removes the oldest objects.

    Args:
        store: the bucket.
        max_bytes: maximum bytes of all objects; may be exceeded by those of `_REMOVE_EVERY` batches
            of each process.
        render: returns the JSON object of an entry.
    """

    name = "bucket"

    def __init__(self, store: ByteStore, max_bytes: int, render: RenderEntry) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._render = render
        self._until_removal = 0

    async def send(self, batch: Sequence[ExportedRequest]) -> int:
        """Write an object; see `Exporter`."""
        content = await asyncio.to_thread(json_lines, batch, self._render)
        first = batch[0].logged
        day = datetime.fromtimestamp(first.time_ms / 1000, UTC).date()
        try:
            # A further attempt replaces the object.
            await self._store.put(f"{day}/{first.id}.jsonl", content)
            if self._until_removal == 0:
                await self._remove_oldest()
        except GatewayError as error:
            raise ExportError(error.message) from error
        self._until_removal = (self._until_removal - 1) % _REMOVE_EVERY
        return 0

    async def close(self) -> None:
        """Do nothing: the store has no connections to close."""

    async def _remove_oldest(self) -> None:
        kept_bytes = 0
        keys = []
        entries = await self._store.entries()
        for entry in sorted(entries, key=lambda entry: entry.key, reverse=True):
            kept_bytes += entry.size
            if kept_bytes > self._max_bytes:
                keys.append(entry.key)
        if keys:
            await self._store.delete(keys)

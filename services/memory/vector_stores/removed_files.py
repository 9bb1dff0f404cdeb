"""Removal of files from all vector stores, when they are removed from the file store.

Searches do not find them from then on; jobs remove their text from the index.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.memory.jobs.job_queue import JobQueue
from services.memory.vector_stores.file_rows import drop_texts
from services.memory.vector_stores.tables import vector_store_files

# Ids of files in a statement.
_AT_ONCE: Final = 100


class RemovedFiles:
    """Removes files from vector stores.

    Args:
        queue: the queue of background jobs.
    """

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue

    async def __call__(self, connection: AsyncConnection, file_ids: Sequence[str]) -> None:
        """Remove files that are being removed from the file store, whoever's vector stores."""
        files = vector_store_files.c
        for start in range(0, len(file_ids), _AT_ONCE):
            which = files.file_id.in_(file_ids[start : start + _AT_ONCE])
            # Most files are in no vector store.
            if await connection.scalar(select(files.id).where(which).limit(1)) is not None:
                await drop_texts(connection, self._queue, which)
                await connection.execute(delete(vector_store_files).where(which))

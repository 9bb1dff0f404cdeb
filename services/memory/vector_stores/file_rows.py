"""Rules of the rows of files that adding and indexing share."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.memory.jobs.job_queue import JobKind, JobQueue
from services.memory.vector_stores.records import quota_exceeded
from services.memory.vector_stores.tables import vector_store_files

# The number of the first chunk of a file whose chunks have no numbers yet.
UNKNOWN: Final = -1
_BYTES_LIMIT: Final = "vector_stores.max_bytes_per_user"


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits of the files of vector stores.

    Attributes:
        max_files: of a vector store.
        max_chunks: of a vector store.
        max_bytes: of the index of all vector stores of a user.
    """

    max_files: int
    max_chunks: int
    max_bytes: int


async def check_bytes(
    connection: AsyncConnection, limits: FileLimits, user_id: str, added: int
) -> None:
    """Check that a user has room for so many more bytes of the index.

    Raises:
        GatewayError: storage_quota_exceeded.
    """
    files = vector_store_files.c
    summed = select(func.sum(files.usage_bytes)).where(files.user_id == user_id)
    if int(await connection.scalar(summed) or 0) + added > limits.max_bytes:
        raise quota_exceeded(
            f"your vector stores have at most {limits.max_bytes:,} bytes", _BYTES_LIMIT
        )


async def drop_texts(
    connection: AsyncConnection, queue: JobQueue, which: ColumnElement[bool]
) -> None:
    """Lock files, and put the jobs that remove their text from the index."""
    files = vector_store_files.c
    query = select(files.store_id, files.user_id, files.first_chunk, files.chunks).where(which)
    for row in (await connection.execute(query.order_by(files.id).with_for_update())).all():
        if row.first_chunk != UNKNOWN:
            numbers = row.first_chunk, row.first_chunk + row.chunks
            await queue.put(
                connection, JobKind.UNINDEX, row.user_id, None, numbers, text=row.store_id
            )

"""The jobs that index the text of files, and that remove it.

The numbers of a file's chunks are reserved first. The chunks are then stored some at a time, each
time in the transaction that counts them, so that after the death of a process the next one goes on
where it ended. Searches only see files that are complete.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row

from services.common.errors import GatewayError
from services.memory.archive.binary_quantization import VALUE_BYTES
from services.memory.archive.index import ArchivedTurn
from services.memory.jobs.job_handlers import MAX_EMBED_CHARACTERS
from services.memory.jobs.job_queue import Job, JobKind
from services.memory.jobs.retries import INDEX_ATTEMPTS, MODEL_ATTEMPTS
from services.memory.jobs.task_client import TaskClient
from services.memory.vector_stores.chunking import cut
from services.memory.vector_stores.file_text import failure_of
from services.memory.vector_stores.index_repository import FileGoneError, IndexRepository
from services.memory.vector_stores.store_repository import ALL_CHUNKS, StoreRepository

# Chunks that are embedded in a call, and stored or removed in a transaction.
_AT_ONCE: Final = 32
# Rows of the index of a deleted vector store that are removed in a transaction.
_ROWS_AT_ONCE: Final = 500
_SERVER_ERROR: Final = "server_error"
_INTERRUPTED: Final = "the file could not be indexed; add it again"

log = logging.getLogger(__name__)


class IndexingJobs:
    """The handlers of the jobs of vector stores.

    Args:
        stores: the vector stores.
        files: their files.
        read: returns the text of a file.
        tasks: embeds chunks, if an embedding model is configured.
    """

    def __init__(
        self,
        stores: StoreRepository,
        files: IndexRepository,
        read: Callable[[Row[Any]], Awaitable[str]],
        tasks: TaskClient,
    ) -> None:
        self._stores = stores
        self._files = files
        self._read = read
        self._tasks = tasks

    async def run(self, job: Job) -> None:
        """Run a job.

        Raises:
            GatewayError: it has to run again later.
            JobLostError: another process has it.
        """
        if job.kind is JobKind.INDEX:
            await self._index(job)
        else:
            await self._unindex(job)

    async def _index(self, job: Job) -> None:
        file = await self._files.pending(job.text)
        if file is None:
            await self._files.finish(job)
            return
        try:
            try:
                await self._index_file(job, file)
            except GatewayError as error:
                code, message = failure_of(error), error.message
                if not code:
                    if job.attempts + 1 < INDEX_ATTEMPTS:
                        raise
                    code, message = _SERVER_ERROR, _INTERRUPTED
                await self._files.fail(file, job, code, message)
        except FileGoneError:
            await self._files.finish(job)

    async def _index_file(self, job: Job, file: Row[Any]) -> None:
        text = await self._read(file)
        chunks = await asyncio.to_thread(cut, text, file.max_chunk_tokens, file.overlap_tokens)
        if not chunks:
            await self._files.fail(file, job, "invalid_file", "the file has no text")
            return
        # The models of a memory are tried as often; then words have to do.
        embeds = self._tasks.can_embed and job.attempts < MODEL_ATTEMPTS
        model, vectors = await self._embed(file, chunks[:1]) if embeds else ("", [])
        dimensions = len(vectors[0]) if vectors else 0
        size = sum(len(chunk.encode()) + VALUE_BYTES * dimensions for chunk in chunks)
        first, indexed = await self._files.begin(file, len(chunks), size)
        for start in range(indexed, len(chunks), _AT_ONCE):
            part = chunks[start : start + _AT_ONCE]
            turns = [
                ArchivedTurn(first + start + place, chunk, 0) for place, chunk in enumerate(part)
            ]
            by_number: Mapping[int, Sequence[float]] = {}
            if embeds:
                model, vectors = await self._embed(file, part)
                by_number = dict(zip((turn.number for turn in turns), vectors, strict=True))
            stemmed = await asyncio.to_thread(_with_terms, turns)
            await self._files.add_chunks(file, stemmed, start + len(part), model, by_number)
        await self._files.complete(file, job)

    async def _embed(
        self, file: Row[Any], chunks: Sequence[str]
    ) -> tuple[str, Sequence[Sequence[float]]]:
        texts = [chunk[:MAX_EMBED_CHARACTERS] for chunk in chunks]
        embedding = await self._tasks.embed(file.user_id, texts)
        return embedding.model, embedding.vectors

    async def _unindex(self, job: Job) -> None:
        """Remove chunks of a vector store from the index, or all of it."""
        store_id, numbers = job.text, (job.first_turn, job.last_turn)
        if numbers == ALL_CHUNKS:
            while await self._stores.remove_part(job.owner_id, store_id, _ROWS_AT_ONCE):
                pass
        else:
            while await self._files.remove_texts(store_id, *numbers, _AT_ONCE):
                pass
        await self._files.finish(job)


def _with_terms(turns: Sequence[ArchivedTurn]) -> list[ArchivedTurn]:
    return [turn.with_terms() for turn in turns]

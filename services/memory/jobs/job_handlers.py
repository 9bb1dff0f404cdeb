"""Handlers for each kind of job.

A handler first computes its results, with a model or without. It then writes them and finishes the
job in one transaction, so that they are stored exactly once or not at all; only vectors are written
in a transaction for each batch. A transaction locks the memory's row before the job.
"""

import asyncio
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.messages.summary_prompt import build_prompt, fit_summary
from services.common.storage.database import reading_once, write
from services.memory.archive.binary_quantization import VALUE_BYTES
from services.memory.archive.index import ArchivedTurn
from services.memory.jobs import extractive_summary
from services.memory.jobs.job_queue import Job, JobKind, JobLostError
from services.memory.jobs.retries import MODEL_ATTEMPTS, REDO_AFTER_S
from services.memory.jobs.stores import Stores
from services.memory.jobs.summaries import Summary
from services.memory.jobs.task_client import TaskClient
from services.memory.profile import extraction_prompt, rules
from services.memory.profile.facts import ExtractedFact, FactSource
from services.memory.storage.stored_turns import StoredTurn, conversation_text
from services.memory.storage.tables import memories

# Texts that are embedded in one call, and the characters of each: models truncate longer ones,
# or refuse them.
_EMBED_BATCH = 32
MAX_EMBED_CHARACTERS = 4_000


class MemoryChangedError(Exception):
    """Error raised when a memory changed during a job; the job has to run again."""


class JobHandlers:
    """The handlers of jobs.

    Args:
        engine: the database.
        stores: the stores of that database.
        tasks: the models.
    """

    def __init__(self, engine: AsyncEngine, stores: Stores, tasks: TaskClient) -> None:
        self._engine = engine
        self._queue = stores.queue
        self._repository = stores.repository
        self._archive = stores.archive
        self._summaries = stores.summaries
        self._facts = stores.facts
        self._tasks = tasks

    async def run(self, job: Job) -> None:
        """Run a job.

        Raises:
            GatewayError: a model failed, or the database does not answer.
            JobLostError: the job was lost; nothing was changed.
            MemoryChangedError: the job has to run again; nothing was changed.
        """
        match job.kind:
            case JobKind.SUMMARY:
                await self.summarise(job, by_model=job.attempts < MODEL_ATTEMPTS)
            case JobKind.REDO:
                await self._redo(job)
            case JobKind.FACTS:
                await self._extract_facts(job)
            case JobKind.EMBED:
                await self._embed(job)

    async def summarise(self, job: Job, *, by_model: bool) -> None:
        """Extend the summary to the last turn of a job, and archive those turns.

        Raises:
            GatewayError, JobLostError, MemoryChangedError: as `run`.
        """
        epoch = await self._epoch(job)
        before = await self._summaries.current(job.entity_id)
        first = before.last_turn + 1
        turns = await self._repository.turns(job.entity_id, first, job.last_turn)
        if not turns or turns[-1].number < job.last_turn:
            # The summary covers the turns already, or they were rewound.
            await self._finish(job)
            return
        by_model = by_model and self._tasks.can_summarise
        degraded = self._tasks.can_summarise and not by_model
        text = await self._summary_text(job, before, turns, by_model=by_model)
        archived = await asyncio.to_thread(_to_archived, turns)

        async def summarise(connection: AsyncConnection) -> None:
            if not await self._repository.mark_summarised(
                connection, job.entity_id, epoch, job.last_turn
            ):
                raise MemoryChangedError
            await self._queue.finish(connection, job)
            if await self._summaries.current_in(connection, job.entity_id) != before:
                raise MemoryChangedError
            summary = Summary(text, job.last_turn, degraded, first)
            await self._summaries.add(connection, job.entity_id, epoch, summary)
            await self._archive.add(connection, job.owner_id, job.entity_id, archived)
            await self._put_following(connection, job, summary, epoch)

        await write(self._engine, summarise)

    async def _put_following(
        self, connection: AsyncConnection, job: Job, summary: Summary, epoch: int
    ) -> None:
        """Enqueue the jobs that follow from a summary."""
        turns = summary.first_turn, summary.last_turn
        about = (job.owner_id, job.entity_id, turns)
        if summary.degraded:
            await self._queue.put(
                connection, JobKind.REDO, *about, variant=epoch, after_s=REDO_AFTER_S
            )
        if self._tasks.can_embed:
            await self._queue.put(connection, JobKind.EMBED, *about, variant=epoch)

    async def _summary_text(
        self, job: Job, before: Summary, turns: Sequence[StoredTurn], *, by_model: bool
    ) -> str:
        if not by_model:
            messages = [message for turn in turns for message in turn.messages]
            text = await asyncio.to_thread(extractive_summary.extend_summary, before.text, messages)
            return text or "(nothing was said)"
        texts = [conversation_text(turn.messages) for turn in turns]
        prompt = build_prompt(before.text, texts)
        return fit_summary(await self._tasks.summarise(job.owner_id, prompt))

    async def _redo(self, job: Job) -> None:
        """Make a degraded summary again with the model.

        Its text stays if it was withdrawn, or if a later summary is not degraded.
        """
        summary, before, is_last_good = await self._summaries.up_to(job.entity_id, job.last_turn)
        text = summary.text
        turns: list[StoredTurn] = []
        if summary.degraded and is_last_good and self._tasks.can_summarise:
            turns = await self._repository.turns(
                job.entity_id, summary.first_turn, summary.last_turn
            )
        if turns:
            text = await self._summary_text(job, before, turns, by_model=True)

        async def improve(connection: AsyncConnection) -> None:
            await self._lock(connection, job)
            await self._queue.finish(connection, job)
            await self._summaries.improve(connection, summary.id, text)

        await write(self._engine, improve)

    async def _extract_facts(self, job: Job) -> None:
        extracted = await self._extracted(job)
        said_in = FactSource(job.entity_id, job.last_turn) if job.entity_id else None

        async def put(connection: AsyncConnection) -> None:
            if job.entity_id:
                await self._lock(connection, job)
            await self._queue.finish(connection, job)
            await self._facts.put(connection, job.owner_id, extracted, said_in, job.created_at_ms)

        await write(self._engine, put)

    async def _extracted(self, job: Job) -> list[ExtractedFact]:
        if not self._tasks.can_extract or job.attempts >= MODEL_ATTEMPTS:
            return await asyncio.to_thread(rules.extract, job.text)
        current_facts = await self._facts.of(job.owner_id)
        answer = await self._tasks.extract(
            job.owner_id, extraction_prompt.build_prompt(job.text, current_facts)
        )
        return extraction_prompt.parse_facts(answer, job.text)

    async def _embed(self, job: Job) -> None:
        """Make the missing vectors of archived turns, each batch in a transaction of its own."""
        # The model's name, and so the turns without its vectors, is only known from its answer.
        model, after_turn = "", job.first_turn - 1
        while self._tasks.can_embed:
            epoch = await self._epoch(job)
            turns = await self._archive.without_vectors(
                job.owner_id, job.entity_id, model, after_turn=after_turn, limit=_EMBED_BATCH
            )
            if not turns:
                break
            after_turn = turns[-1].number if model else 0
            model = await self._embed_turns(job, turns, epoch)
        await self._finish(job)

    async def _embed_turns(self, job: Job, turns: Sequence[ArchivedTurn], epoch: int) -> str:
        """Embed archived turns unless the memory's epoch changed; return the name of the model."""
        texts = [turn.text[:MAX_EMBED_CHARACTERS] for turn in turns]
        embedding = await self._tasks.embed(job.owner_id, texts)
        numbers = [turn.number for turn in turns]
        vectors = dict(zip(numbers, embedding.vectors, strict=True))
        size = VALUE_BYTES * sum(len(vector) for vector in embedding.vectors)

        async def add(connection: AsyncConnection) -> None:
            if await self._lock(connection, job) != epoch:
                raise MemoryChangedError
            await self._repository.charge(connection, job.entity_id, job.owner_id, size)
            await self._archive.add_vectors(connection, job.entity_id, embedding.model, vectors)

        await write(self._engine, add)
        return embedding.model

    async def _finish(self, job: Job) -> None:
        await write(self._engine, lambda connection: self._queue.finish(connection, job))

    async def _epoch(self, job: Job) -> int:
        query = select(memories.c.epoch).where(memories.c.id == job.entity_id)
        async with reading_once(self._engine) as connection:
            epoch: int | None = await connection.scalar(query)
        if epoch is None:
            raise JobLostError
        return epoch

    async def _lock(self, connection: AsyncConnection, job: Job) -> int:
        """Lock a memory's row until the transaction ends; return its epoch."""
        query = select(memories.c.epoch).where(memories.c.id == job.entity_id)
        epoch: int | None = await connection.scalar(query.with_for_update(key_share=True))
        if epoch is None:
            raise JobLostError
        return epoch


def _to_archived(turns: Sequence[StoredTurn]) -> list[ArchivedTurn]:
    """Return the archive entries of turns, with their terms; turns without text are left out."""
    texts = [(turn, conversation_text(turn.messages)) for turn in turns]
    return [
        ArchivedTurn(turn.number, text, turn.created_at_ms).with_terms()
        for turn, text in texts
        if text
    ]

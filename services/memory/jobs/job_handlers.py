"""What each kind of job does.

A duty does its work first, be it with a model, and then puts all that came of it into
one transaction, in which the job is finished too: it counts once, or not at all. There
the memory's row is locked first, then the job.
"""

import asyncio
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.database import reading, writing
from services.memory.archive.index import ArchivedTurn
from services.memory.jobs import extractive_summary, summary_prompt
from services.memory.jobs.job_queue import Job, JobKind, JobLostError
from services.memory.jobs.retries import ATTEMPTS, REDO_AFTER_S
from services.memory.jobs.stores import Stores
from services.memory.jobs.summaries import Summary
from services.memory.jobs.task_client import TaskClient
from services.memory.profile import extraction_prompt, rules
from services.memory.profile.facts import ExtractedFact, FactSource
from services.memory.storage.tables import memories
from services.memory.transcript.turns import StoredTurn, conversation_text

# Texts that are embedded in one call, and characters of each: models read no more, or
# refuse to.
_EMBEDDED_AT_ONCE = 32
_MAX_EMBEDDED = 4_000
# Of a number in a vector, as it is stored.
_VALUE_BYTES = 4


class MemoryChangedError(Exception):
    """The memory changed while work was done on it: it is to be done anew, at once."""


class JobHandlers:
    """Does jobs.

    Args:
        engine: the database.
        stores: what is kept there.
        roles: the models.
    """

    def __init__(self, engine: AsyncEngine, stores: Stores, roles: TaskClient) -> None:
        self._engine = engine
        self._queue = stores.queue
        self._repository = stores.repository
        self._archive = stores.archive
        self._summaries = stores.summaries
        self._facts = stores.facts
        self._roles = roles

    async def do(self, job: Job) -> None:
        """Do a job.

        Raises:
            GatewayError: a model failed, or the database does not answer.
            LostError: the job is not ours any more; nothing was changed.
            MovedError: it has to be done anew; nothing was changed.
        """
        match job.kind:
            case JobKind.SUMMARY:
                await self.summarise(job, by_model=job.attempts < ATTEMPTS)
            case JobKind.REDO:
                await self._redo(job)
            case JobKind.FACTS:
                await self._find_facts(job)
            case JobKind.EMBED:
                await self._embed(job)

    async def summarise(self, job: Job, *, by_model: bool) -> None:
        """Extend the summary to the last turn of a job, and archive those turns.

        Raises:
            GatewayError, LostError, MovedError: as `do`.
        """
        epoch = await self._epoch(job)
        before = await self._summaries.current(job.entity_id)
        first = before.last_turn + 1
        turns = await self._repository.turns(job.entity_id, first, job.last_turn)
        if not turns or turns[-1].number < job.last_turn:
            # It was done before, or there are no such turns any more.
            await self._finish(job)
            return
        by_model = by_model and self._roles.can_write
        degraded = self._roles.can_write and not by_model
        text = await self._text(job, before, turns, by_model=by_model)
        async with writing(self._engine) as connection:
            if not await self._repository.mark_summarised(
                connection, job.entity_id, epoch, job.last_turn
            ):
                raise MemoryChangedError
            await self._queue.finish(connection, job)
            if await self._summaries.current_in(connection, job.entity_id) != before:
                raise MemoryChangedError
            summary = Summary(text, job.last_turn, degraded, first)
            await self._summaries.add(connection, job.entity_id, epoch, summary)
            await self._archive.add(connection, job.owner_id, job.entity_id, _to_archived(turns))
            await self._follow(connection, job, summary, epoch)

    async def _follow(
        self, connection: AsyncConnection, job: Job, summary: Summary, epoch: int
    ) -> None:
        """Put the jobs there that follow from a summary."""
        turns = summary.first_turn, summary.last_turn
        if summary.degraded:
            await self._queue.put(
                connection,
                JobKind.REDO,
                job.owner_id,
                job.entity_id,
                turns,
                variant=epoch,
                after_s=REDO_AFTER_S,
            )
        if self._roles.can_embed:
            await self._queue.put(
                connection, JobKind.EMBED, job.owner_id, job.entity_id, turns, variant=epoch
            )

    async def _text(
        self, job: Job, before: Summary, turns: Sequence[StoredTurn], *, by_model: bool
    ) -> str:
        if not by_model:
            messages = [message for turn in turns for message in turn.messages]
            text = await asyncio.to_thread(extractive_summary.extend_summary, before.text, messages)
            return text or "(nothing was said)"
        prompt = summary_prompt.build_prompt(
            before.text, [conversation_text(turn.messages) for turn in turns]
        )
        answer = await self._roles.summarise(job.owner_id, prompt)
        return summary_prompt.parse_summary(answer)

    async def _redo(self, job: Job) -> None:
        """Make a degraded summary again, unless a better one has taken its place since."""
        summary, before, counts = await self._summaries.up_to(job.entity_id, job.last_turn)
        text = summary.text
        turns: list[StoredTurn] = []
        if summary.degraded and counts and self._roles.can_write:
            turns = await self._repository.turns(
                job.entity_id, summary.first_turn, summary.last_turn
            )
        if turns:
            text = await self._text(job, before, turns, by_model=True)
        async with writing(self._engine) as connection:
            await self._lock(connection, job)
            await self._queue.finish(connection, job)
            await self._summaries.improve(connection, summary.id, text)

    async def _find_facts(self, job: Job) -> None:
        found = await self._found(job)
        said_in = FactSource(job.entity_id, job.last_turn) if job.entity_id else None
        async with writing(self._engine) as connection:
            if job.entity_id:
                await self._lock(connection, job)
            await self._queue.finish(connection, job)
            await self._facts.put(connection, job.owner_id, found, said_in, job.created_at_ms)

    async def _found(self, job: Job) -> list[ExtractedFact]:
        if not self._roles.can_write or job.attempts >= ATTEMPTS:
            return await asyncio.to_thread(rules.extract, job.text)
        known = await self._facts.of(job.owner_id)
        answer = await self._roles.extract(
            job.owner_id, extraction_prompt.build_prompt(job.text, known)
        )
        return extraction_prompt.parse_facts(answer, job.text)

    async def _embed(self, job: Job) -> None:
        """Make the vectors that archived turns lack, each step in a transaction of its own."""
        # Which model it is, and so which turns lack its vectors, shows in its first answer.
        model, after_turn = "", job.first_turn - 1
        while self._roles.can_embed:
            epoch = await self._epoch(job)
            turns = await self._archive.without_vectors(
                job.owner_id,
                job.entity_id,
                model,
                after_turn=after_turn,
                limit=_EMBEDDED_AT_ONCE,
            )
            if not turns:
                break
            after_turn = turns[-1].number if model else 0
            model = await self._embed_turns(job, turns, epoch)
        await self._finish(job)

    async def _embed_turns(self, job: Job, turns: Sequence[ArchivedTurn], epoch: int) -> str:
        """Embed archived turns, if they are what they were in an epoch; return the model."""
        texts = [turn.text[:_MAX_EMBEDDED] for turn in turns]
        made = await self._roles.embed(job.owner_id, texts)
        numbers = [turn.number for turn in turns]
        async with writing(self._engine) as connection:
            if await self._lock(connection, job) != epoch:
                raise MemoryChangedError
            vectors = dict(zip(numbers, made.vectors, strict=True))
            size = _VALUE_BYTES * sum(len(vector) for vector in made.vectors)
            await self._repository.charge(connection, job.entity_id, job.owner_id, size)
            await self._archive.add_vectors(connection, job.entity_id, made.model, vectors)
        return made.model

    async def _finish(self, job: Job) -> None:
        async with writing(self._engine) as connection:
            await self._queue.finish(connection, job)

    async def _epoch(self, job: Job) -> int:
        query = select(memories.c.epoch).where(memories.c.id == job.entity_id)
        async with reading(self._engine) as connection:
            epoch: int | None = await connection.scalar(query)
        if epoch is None:
            raise JobLostError
        return epoch

    async def _lock(self, connection: AsyncConnection, job: Job) -> int:
        """Lock a memory until the transaction's end; return its epoch."""
        query = select(memories.c.epoch).where(memories.c.id == job.entity_id)
        epoch: int | None = await connection.scalar(query.with_for_update(key_share=True))
        if epoch is None:
            raise JobLostError
        return epoch


def _to_archived(turns: Sequence[StoredTurn]) -> list[ArchivedTurn]:
    """Return turns as they are archived; one in which nobody said anything is not."""
    archived = [
        ArchivedTurn(turn.number, conversation_text(turn.messages), turn.created_at_ms)
        for turn in turns
    ]
    return [turn for turn in archived if turn.text]

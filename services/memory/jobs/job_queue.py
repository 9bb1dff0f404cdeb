"""The queue of background work in the database: durable, shared by all processes.

A job is put there in the transaction of what makes it necessary. Any process may take a
job that is due: it holds the job for a while, and again as long as it works on it; the
job of a process that died is free after that, or at once where the process was one of this
machine. Clocks of two machines differ, so two may
work on one job at once: whoever commits first has it, since `finish` removes the row in
the transaction of the work's outcome and fails where it is gone or another's.

Where a transaction also changes a memory, the memory's row is locked before its jobs.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.database import insert_into, reading, writing
from services.common.ids import Source
from services.common.instances import Instances
from services.memory.jobs.tables import jobs

PREFIX = "job_"

_HOLDER = "work"
_FREE = ""


class JobKind(StrEnum):
    """What is to be done.

    SUMMARY: make the summary reach up to `last_turn`. REDO: make a degraded summary again.
    FACTS: find what `text` says of the user. EMBED: make vectors of archived turns.
    """

    SUMMARY = "summary"
    REDO = "redo"
    FACTS = "facts"
    EMBED = "embed"


@dataclass(frozen=True, slots=True)
class Job:
    """A job that this process holds.

    Attributes:
        id: its own.
        kind: what is to be done.
        owner_id: the user for whom.
        entity_id: the memory, or "" for what was said outside of any.
        first_turn: where the turns begin that it is about, or 0.
        last_turn: where they end.
        text: with FACTS, what the user said.
        created_at_ms: Unix milliseconds.
        attempts: how often it failed.
        holder: proves that it is held.
    """

    id: str
    kind: JobKind
    owner_id: str
    entity_id: str
    first_turn: int
    last_turn: int
    text: str
    created_at_ms: int
    attempts: int
    holder: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much there is to do.

    Attributes:
        jobs: how many, those being worked on included.
        oldest_s: seconds since the oldest was put there; 0 where there is none.
    """

    jobs: int
    oldest_s: float


class JobLostError(Exception):
    """A job is not this process's any more: another took it, or there is no need for it."""


class JobQueue:
    """The queue as one process sees it.

    Methods that take a connection work in the caller's transaction; every other raises
    `unavailable` when the database does not answer.

    Args:
        engine: the database.
        source: ids and clocks.
        lease_s: seconds for which a job is held.
        instances: the processes of this machine, where the jobs of dead ones can be told.

    Attributes:
        lease_s: the same.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        source: Source,
        lease_s: float,
        instances: Instances | None = None,
    ) -> None:
        self._holder = _holder_prefix(instances.name if instances else "")
        if instances:
            instances.on_death.append(self.free_of)
        self._engine = engine
        self._source = source
        self.lease_s = lease_s
        self._lease_ms = int(lease_s * 1000)

    async def put(
        self,
        connection: AsyncConnection,
        kind: JobKind,
        owner_id: str,
        entity_id: str | None,
        turns: tuple[int, int] = (0, 0),
        *,
        variant: int = 0,
        text: str = "",
        after_s: float = 0,
    ) -> None:
        """Put a job there, due in `after_s` seconds, unless it is there already.

        Args:
            connection: the caller's transaction.
            kind: what is to be done.
            owner_id: the user for whom.
            entity_id: the memory, or None for what was said outside of any.
            turns: the first and the last that it is about.
            variant: what tells it from other jobs of its kind about the same turns.
            text: with FACTS, what the user said.
            after_s: seconds until it is due.
        """
        now_ms = self._now_ms()
        values = {
            "id": self._source.new_id(PREFIX),
            "kind": kind.value,
            "owner_id": owner_id,
            "entity_id": entity_id,
            "first_turn": turns[0],
            "last_turn": turns[1],
            "variant": variant,
            "text": text,
            "created_at_ms": now_ms,
            "due_at_ms": now_ms + int(after_s * 1000),
            "promoted": False,
            "attempts": 0,
            "holder": _FREE,
            "ends_at_ms": 0,
        }
        add = insert_into(connection, jobs).values(values)
        await connection.execute(add.on_conflict_do_nothing())

    async def claim(self, at_most: int, entity_id: str | None = None) -> list[Job]:
        """Take jobs that are due, those that somebody waits for first.

        Args:
            at_most: how many.
            entity_id: summaries of this memory alone.
        """
        now_ms = self._now_ms()
        query = (
            select(jobs.c.id)
            .where(jobs.c.due_at_ms <= now_ms, _is_free(now_ms), _is_next())
            .order_by(jobs.c.promoted.desc(), jobs.c.due_at_ms, jobs.c.id)
            .limit(at_most)
        )
        if entity_id is not None:
            query = query.where(_is_summary(entity_id))
        async with reading(self._engine) as connection:
            due = list(await connection.scalars(query))
        if not due:
            return []
        return await self._take(and_(jobs.c.id.in_(due), _is_free(now_ms)), skip=True)

    async def promote(self, entity_id: str) -> bool:
        """Make the summaries of a memory due now; return whether there are any to make."""
        promoted = (
            update(jobs)
            .where(_is_summary(entity_id))
            .values(promoted=True, due_at_ms=self._now_ms())
        )
        async with writing(self._engine) as connection:
            return bool((await connection.execute(promoted)).rowcount)

    async def steal(self, entity_id: str) -> Job | None:
        """Take the next summary of a memory, also from whoever has it; None without one."""
        taken = await self._take(and_(_is_summary(entity_id), _is_next()), skip=False)
        return taken[0] if taken else None

    async def waits(self, entity_id: str) -> bool:
        """Return whether a summary of a memory is still to be made."""
        query = select(jobs.c.id).where(_is_summary(entity_id)).limit(1)
        async with reading(self._engine) as connection:
            return await connection.scalar(query) is not None

    async def renew(self, job: Job) -> bool:
        """Hold a job for the whole length again; False when it is not held any more."""
        renewed = (
            update(jobs).where(_is_held(job)).values(ends_at_ms=self._now_ms() + self._lease_ms)
        )
        async with writing(self._engine) as connection:
            return bool((await connection.execute(renewed)).rowcount)

    async def finish(self, connection: AsyncConnection, job: Job) -> None:
        """Take a job away, in the transaction of what came of it.

        Raises:
            LostError: it is gone or another's: nothing of that transaction may stay.
        """
        if not (await connection.execute(delete(jobs).where(_is_held(job)))).rowcount:
            raise JobLostError

    async def drop(self, job: Job) -> None:
        """Take a job away of which nothing came."""
        async with writing(self._engine) as connection:
            await connection.execute(delete(jobs).where(_is_held(job)))

    async def give_back(self, job: Job, after_s: float, *, failed: bool) -> None:
        """Release a job, to be taken again in `after_s` seconds; if `failed`, that is counted."""
        given = (
            update(jobs)
            .where(_is_held(job))
            .values(
                holder=_FREE,
                ends_at_ms=0,
                due_at_ms=self._now_ms() + int(after_s * 1000),
                attempts=jobs.c.attempts + int(failed),
            )
        )
        async with writing(self._engine) as connection:
            await connection.execute(given)

    async def free_of(self, instance: str) -> None:
        """Release every job that a process held which has died."""
        freed = (
            update(jobs)
            .where(jobs.c.holder.startswith(_holder_prefix(instance), autoescape=True))
            .values(holder=_FREE, ends_at_ms=0)
        )
        async with writing(self._engine) as connection:
            await connection.execute(freed)

    async def cancel_from(
        self, connection: AsyncConnection, entity_id: str, first_turn: int
    ) -> None:
        """Take away what is to be done about a turn of a memory, or about later ones."""
        await _cancel(
            connection, and_(jobs.c.entity_id == entity_id, jobs.c.last_turn >= first_turn)
        )

    async def cancel_facts(self, connection: AsyncConnection, owner_id: str) -> None:
        """Take away all that is still to be found about a user."""
        await _cancel(connection, and_(jobs.c.owner_id == owner_id, jobs.c.kind == JobKind.FACTS))

    async def backlog(self) -> Backlog:
        """Return how much there is to do, for all processes; what is not due yet does not count."""
        now_ms = self._now_ms()
        query = select(func.count(), func.min(jobs.c.created_at_ms)).where(
            jobs.c.due_at_ms <= now_ms
        )
        async with reading(self._engine) as connection:
            count, oldest_ms = (await connection.execute(query)).one()
        return Backlog(count, max(now_ms - oldest_ms, 0) / 1000 if count else 0.0)

    async def _take(self, which: ColumnElement[bool], *, skip: bool) -> list[Job]:
        """Hold jobs; those in the hands of another transaction are waited for, or skipped."""
        there = select(jobs.c.id).where(which).with_for_update(skip_locked=skip)
        taken = (
            update(jobs)
            .where(jobs.c.id.in_(there))
            .values(
                holder=self._source.new_id(self._holder),
                ends_at_ms=self._now_ms() + self._lease_ms,
            )
            .returning(jobs)
        )
        async with writing(self._engine) as connection:
            rows = (await connection.execute(taken)).all()
        return [_to_job(row) for row in rows]

    def _now_ms(self) -> int:
        return int(self._source.now() * 1000)


def _holder_prefix(instance: str) -> str:
    """Return how the ids begin under which a process holds jobs."""
    return f"{_HOLDER}_{instance}_"


async def _cancel(connection: AsyncConnection, which: ColumnElement[bool]) -> None:
    # In one order everywhere, so that two who cancel several never wait for each other.
    ordered = select(jobs.c.id).where(which).order_by(jobs.c.id).with_for_update()
    await connection.execute(delete(jobs).where(jobs.c.id.in_(ordered)))


def _is_free(now_ms: int) -> ColumnElement[bool]:
    return jobs.c.ends_at_ms <= now_ms


def _is_held(job: Job) -> ColumnElement[bool]:
    return and_(jobs.c.id == job.id, jobs.c.holder == job.holder)


def _is_summary(entity_id: str) -> ColumnElement[bool]:
    return and_(jobs.c.entity_id == entity_id, jobs.c.kind == JobKind.SUMMARY)


def _is_next() -> ColumnElement[bool]:
    """Say of a job that no earlier turns of its memory wait for a summary, if it is for one."""
    earlier = jobs.alias("earlier")
    is_earlier = or_(
        earlier.c.last_turn < jobs.c.last_turn,
        and_(earlier.c.last_turn == jobs.c.last_turn, earlier.c.id < jobs.c.id),
    )
    is_behind = select(earlier.c.id).where(
        earlier.c.entity_id == jobs.c.entity_id, earlier.c.kind == JobKind.SUMMARY, is_earlier
    )
    return or_(jobs.c.kind != JobKind.SUMMARY, ~is_behind.exists())


def _to_job(row: Row[Any]) -> Job:
    return Job(
        id=row.id,
        kind=JobKind(row.kind),
        owner_id=row.owner_id,
        entity_id=row.entity_id or "",
        first_turn=row.first_turn,
        last_turn=row.last_turn,
        text=row.text,
        created_at_ms=row.created_at_ms,
        attempts=row.attempts,
        holder=row.holder,
    )

"""The queue of background jobs in the database: durable, and shared by all processes.

A job is put in the queue in the transaction of the change that makes it necessary. Any process may
claim a job that is due: it leases the job, and renews the lease while it works. A job of a process
that died is free once its lease has expired, or at once if the process ran on the same machine. The
clocks of machines differ, so two processes may work on one job at once. The first to commit wins:
`finish` deletes the row in the transaction of the job's results, and fails if the row is gone or
leased to another process.

If a transaction also changes a memory, it locks the memory's row before its jobs.
"""

from collections.abc import Collection
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids
from services.common.clock import Clock
from services.common.process.registry import ProcessRegistry
from services.common.storage.database import insert_if_absent, reading_once, write
from services.common.storage.leased_rows import (
    LeasedRows,
    delete_in_order,
    holder_prefix,
    is_held_by_process,
)
from services.memory.storage.tables import jobs

PREFIX = "job_"

_HOLDER = "work"
_FREE = ""


class JobKind(StrEnum):
    """The kinds of jobs.

    SUMMARY: extend the summary to `last_turn`. REDO: make a degraded summary again with the model.
    FACTS: extract facts about the user from `text`. EMBED: make vectors of archived turns. INDEX:
    index the file of a vector store, whose row has the id `text`. UNINDEX: remove the chunks from
    `first_turn` on, below `last_turn`, from the index of the vector store `text`.
    """

    SUMMARY = "summary"
    REDO = "redo"
    FACTS = "facts"
    EMBED = "embed"
    INDEX = "index"
    UNINDEX = "unindex"


# The jobs of memories, and those of vector stores, which are run apart: many files do not keep a
# memory waiting.
MEMORY_JOBS = (JobKind.SUMMARY, JobKind.REDO, JobKind.FACTS, JobKind.EMBED)
VECTOR_STORE_JOBS = (JobKind.INDEX, JobKind.UNINDEX)


# Condition that a job is no summary, or the earliest summary of its memory. Built once: an alias
# copies all columns, in reference cycles that only the garbage collector frees.
_earlier = jobs.alias("earlier")
_HAS_EARLIER = (
    select(_earlier.c.id)
    .where(
        _earlier.c.entity_id == jobs.c.entity_id,
        _earlier.c.kind == JobKind.SUMMARY,
        tuple_(_earlier.c.last_turn, _earlier.c.id) < tuple_(jobs.c.last_turn, jobs.c.id),
    )
    .exists()
)
_IS_NEXT = or_(jobs.c.kind != JobKind.SUMMARY, ~_HAS_EARLIER)


@dataclass(frozen=True, slots=True)
class Job:
    """A job that this process has claimed.

    Attributes:
        id: id of the job.
        kind: the kind of the job.
        owner_id: id of the user.
        entity_id: id of the memory, or "" for text outside of any.
        first_turn: number of the first turn that it is about, or 0.
        last_turn: number of the last one.
        text: the user's text, for FACTS; an id, for jobs of vector stores.
        created_at_ms: Unix milliseconds.
        attempts: number of times that the job has failed.
        holder: id of the claim, without which the job cannot be finished.
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
    """The jobs that are due.

    Attributes:
        jobs: their count, claimed ones included.
        oldest_s: seconds since the oldest was put in the queue; 0 if there is none.
    """

    jobs: int
    oldest_s: float


class JobLostError(Exception):
    """Error raised when another process has claimed a job, or when it was cancelled."""


class JobQueue:
    """Client of the job queue for one process.

    Methods that take a connection work in the caller's transaction; every other raises
    `unavailable` when the database does not answer.

    Args:
        engine: the database.
        clock: the clock.
        lease_s: seconds for which a claim lasts.
        processes: the processes of this machine, if their deaths can be detected.
        kinds: the kinds of jobs that are claimed and counted.
        new_id: makes the ids of jobs and of their holders.

    Attributes:
        lease_s: seconds for which a claim lasts.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        lease_s: float,
        processes: ProcessRegistry | None = None,
        *,
        kinds: Collection[JobKind] = MEMORY_JOBS,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._is_own = jobs.c.kind.in_([kind.value for kind in kinds])
        self._holder_prefix = holder_prefix(_HOLDER, processes.name if processes else "")
        if processes:
            processes.on_death.append(self.release_of_process)
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._rows = LeasedRows(jobs, clock, lease_s)
        self.lease_s = lease_s

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
        """Put a job in the queue, due in `after_s` seconds, unless it is queued already.

        `turns` are the first and the last turn that it is about (see `Job`), and `variant`
        distinguishes jobs of one kind about the same turns.
        """
        now_ms = self._clock.now_ms()
        values = {
            "id": self._new_id(PREFIX),
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
        await insert_if_absent(connection, jobs, values)

    async def claim(self, limit: int, entity_id: str | None = None) -> list[Job]:
        """Claim jobs that are due, promoted ones first.

        Args:
            limit: maximum number of jobs.
            entity_id: claim only summaries of this memory.
        """
        is_free = self._rows.has_expired()
        query = (
            select(jobs.c.id)
            .where(jobs.c.due_at_ms <= self._clock.now_ms(), is_free, self._is_own, _IS_NEXT)
            .order_by(jobs.c.promoted.desc(), jobs.c.due_at_ms, jobs.c.id)
            .limit(limit)
        )
        if entity_id is not None:
            query = query.where(_is_summary(entity_id))
        async with reading_once(self._engine) as connection:
            due = list(await connection.scalars(query))
        if not due:
            return []
        return await self._take(and_(jobs.c.id.in_(due), is_free), skip_locked=True)

    async def promote(self, entity_id: str) -> bool:
        """Make the queued summaries of a memory due now; return whether there are any."""
        due_at_ms = self._clock.now_ms()
        return await self._update(_is_summary(entity_id), promoted=True, due_at_ms=due_at_ms) > 0

    async def steal(self, entity_id: str) -> Job | None:
        """Claim the next summary of a memory even if it is claimed; None if none is queued."""
        stolen = await self._take(and_(_is_summary(entity_id), _IS_NEXT), skip_locked=False)
        return stolen[0] if stolen else None

    async def has_summaries(self, entity_id: str) -> bool:
        """Return whether a summary of a memory is still to be made."""
        query = select(jobs.c.id).where(_is_summary(entity_id)).limit(1)
        async with reading_once(self._engine) as connection:
            return await connection.scalar(query) is not None

    async def renew(self, claimed: Collection[Job]) -> set[Job]:
        """Renew the claims on jobs for their whole length; return those still claimed."""
        which = or_(*map(_is_claimed, claimed))
        rows = await write(self._engine, lambda connection: self._rows.hold(connection, which))
        renewed = {row.id for row in rows}
        return {job for job in claimed if job.id in renewed}

    async def finish(self, connection: AsyncConnection, job: Job) -> None:
        """Delete a job in the transaction of its results.

        Raises:
            JobLostError: it is gone or another claim's; the transaction has to be rolled back.
        """
        if not await delete_in_order(connection, jobs, _is_claimed(job)):
            raise JobLostError

    async def drop(self, job: Job) -> None:
        """Delete a job without results."""
        await write(
            self._engine,
            lambda connection: delete_in_order(connection, jobs, _is_claimed(job)),
        )

    async def release(self, job: Job, after_s: float, *, failed: bool) -> None:
        """Release a job, to be claimed again in `after_s` seconds; count a failure if `failed`."""
        await self._update(
            _is_claimed(job),
            holder=_FREE,
            ends_at_ms=0,
            due_at_ms=self._clock.now_ms() + int(after_s * 1000),
            attempts=jobs.c.attempts + int(failed),
        )

    async def release_of_process(self, process: str) -> None:
        """Release every job of a process that has died."""
        theirs = is_held_by_process(jobs.c.holder, _HOLDER, process)
        await self._update(theirs, holder=_FREE, ends_at_ms=0)

    async def cancel_from(
        self, connection: AsyncConnection, entity_id: str, first_turn: int
    ) -> None:
        """Delete the jobs about a turn of a memory, or about later ones."""
        about = and_(jobs.c.entity_id == entity_id, jobs.c.last_turn >= first_turn)
        await delete_in_order(connection, jobs, about)

    async def cancel_facts(self, connection: AsyncConnection, owner_id: str) -> None:
        """Delete all jobs that would extract facts about a user."""
        extracting = and_(jobs.c.owner_id == owner_id, jobs.c.kind == JobKind.FACTS)
        await delete_in_order(connection, jobs, extracting)

    async def cancel_owner(self, connection: AsyncConnection, owner_id: str) -> int:
        """Delete all jobs of a user; return their number."""
        return await delete_in_order(connection, jobs, jobs.c.owner_id == owner_id)

    async def backlog(self) -> Backlog:
        """Return the backlog of all processes; jobs that are not due yet do not count."""
        now_ms = self._clock.now_ms()
        query = select(func.count(), func.min(jobs.c.created_at_ms)).where(
            jobs.c.due_at_ms <= now_ms, self._is_own
        )
        async with reading_once(self._engine) as connection:
            count, oldest_ms = (await connection.execute(query)).one()
        return Backlog(count, max(now_ms - oldest_ms, 0) / 1000 if count else 0.0)

    async def _update(self, which: ColumnElement[bool], **values: Any) -> int:
        """Update jobs in a transaction of its own; return the number of rows."""
        statement = update(jobs).where(which).values(values)
        changed = await write(self._engine, lambda connection: connection.execute(statement))
        return changed.rowcount

    async def _take(self, which: ColumnElement[bool], *, skip_locked: bool) -> list[Job]:
        holder = self._new_id(self._holder_prefix)
        rows = await write(
            self._engine,
            partial(self._rows.hold, which=which, skip_locked=skip_locked, holder=holder),
        )
        return [_to_job(row) for row in rows]


def _is_claimed(job: Job) -> ColumnElement[bool]:
    return and_(jobs.c.id == job.id, jobs.c.holder == job.holder)


def _is_summary(entity_id: str) -> ColumnElement[bool]:
    return and_(jobs.c.entity_id == entity_id, jobs.c.kind == JobKind.SUMMARY)


def _to_job(row: Row[Any]) -> Job:
    values = {field.name: row._mapping[field.name] for field in fields(Job)}
    return Job(**values | {"kind": JobKind(row.kind), "entity_id": row.entity_id or ""})

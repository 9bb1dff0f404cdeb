"""Retention: when deleted documents and old operations are removed permanently.

Deleted documents are purged after `articles.deleted_retention_s`, and the oldest of them
earlier if an owner's live and deleted documents exceed the quota together. Operations before a
snapshot are only history; they are kept until an owner's documents take up half of the
quota, and then the oldest ones of the largest documents are removed. The operation at the
snapshot's revision stays, so that the newest operation always has the document's revision.

All deletions run in small transactions, so that writers of other documents do not wait for them.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles.tables import (
    articles,
    comments,
    operations,
    requests,
    sessions,
    snapshots,
    suggestions,
    usage,
)
from services.articles.usage import OPERATION_BYTES, OwnerUsage, length_of, lock
from services.common.clock import Clock
from services.common.storage.database import reading, write
from services.common.storage.shown_files import remove_files_of

# `deleted_at_ms` of a document that is being purged and may be incomplete.
PURGING_MS = 0
# Operations deleted in one transaction: each may have 4 MB.
_AT_ONCE = 100
# Documents in one query.
_PAGE = 100

# Called in the transaction that purges a document, with the bytes charged for the document.
OnPurged = Callable[[AsyncConnection, int], Awaitable[None]]


class Retention:
    """Removes deleted documents and old operations.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock, owner_usage: OwnerUsage) -> None:
        self._engine = engine
        self._clock = clock
        self._usage = owner_usage

    async def purge(self, older_than_s: float) -> AsyncGenerator[str, None]:
        """Purge deleted documents one by one; yield their ids.

        Args:
            older_than_s: minimum seconds since their deletion, unless their owner is over quota.
        """
        until_ms = int((self._clock.now() - older_than_s) * 1000)
        while ids := await self._over(articles.c.deleted_at_ms <= until_ms):
            for article_id in ids:
                await self.purge_document(article_id)
                yield article_id
        for owner_id in await self._owners(self._usage.has_too_much_deleted()):
            theirs = and_(articles.c.creator_id == owner_id, articles.c.deleted_at_ms.is_not(None))
            for article_id in await self._over(theirs):
                if not await self._is(owner_id, self._usage.has_too_much_deleted()):
                    break
                await self.purge_document(article_id)
                yield article_id

    async def trim(self) -> AsyncGenerator[int, None]:
        """Remove old operations; yield the number that each transaction removed."""
        for owner_id in await self._owners(self._usage.has_much_history()):
            for article_id, revision in await self._with_history(owner_id):
                while await self._is(owner_id, self._usage.has_much_history()):
                    deleted_count = await self._trim(owner_id, article_id, revision)
                    if not deleted_count:
                        break
                    yield deleted_count

    async def _owners(self, which: ColumnElement[bool]) -> Sequence[str]:
        async with reading(self._engine) as connection:
            return (await connection.scalars(select(usage.c.owner_id).where(which))).all()

    async def _is(self, owner_id: str, how: ColumnElement[bool]) -> bool:
        query = select(usage.c.owner_id).where(usage.c.owner_id == owner_id, how)
        async with reading(self._engine) as connection:
            return await connection.scalar(query) is not None

    async def _over(self, which: ColumnElement[bool]) -> Sequence[str]:
        query = select(articles.c.id).where(which).order_by(articles.c.deleted_at_ms).limit(_PAGE)
        async with reading(self._engine) as connection:
            return (await connection.scalars(query)).all()

    async def purge_document(self, article_id: str, on_purged: OnPurged | None = None) -> None:
        """Purge a deleted document, unless it was restored.

        Args:
            article_id: the document.
            on_purged: called in the last transaction, with the bytes charged for the document.
        """
        marked = (
            update(articles)
            .where(articles.c.id == article_id, articles.c.deleted_at_ms.is_not(None))
            .values(deleted_at_ms=PURGING_MS)
            .returning(articles.c.creator_id)
        )
        owner_id = await write(self._engine, lambda connection: connection.scalar(marked))
        if owner_id is None:
            return
        oldest = (
            select(operations.c.revision)
            .where(operations.c.article_id == article_id)
            .order_by(operations.c.revision)
            .limit(_AT_ONCE)
        )
        delete_oldest = delete(operations).where(
            operations.c.article_id == article_id, operations.c.revision.in_(oldest)
        )
        deleted_count = _AT_ONCE
        while deleted_count == _AT_ONCE:
            deleted = await write(
                self._engine, lambda connection: connection.execute(delete_oldest), is_lasting=False
            )
            deleted_count = deleted.rowcount

        async def transact(connection: AsyncConnection) -> None:
            await lock(connection, owner_id)
            for table in (sessions, requests, comments, suggestions, snapshots, operations):
                await connection.execute(delete(table).where(table.c.article_id == article_id))
            await remove_files_of(connection, article_id)
            size = await connection.scalar(
                delete(articles).where(articles.c.id == article_id).returning(articles.c.size_bytes)
            )
            await self._usage.free(connection, owner_id, deleted=size or 0)
            if on_purged is not None and size is not None:
                await on_purged(connection, size)

        await write(self._engine, transact)

    async def _with_history(self, owner_id: str) -> Sequence[tuple[str, int]]:
        """Return the owner's documents with a snapshot, and its revision, the largest first."""
        query = (
            select(articles.c.id, snapshots.c.revision)
            .join(snapshots, snapshots.c.article_id == articles.c.id)
            .where(articles.c.creator_id == owner_id, articles.c.deleted_at_ms.is_(None))
            .order_by(articles.c.size_bytes.desc())
            .limit(_PAGE)
        )
        async with reading(self._engine) as connection:
            return [(row.id, row.revision) for row in await connection.execute(query)]

    async def _trim(self, owner_id: str, article_id: str, before: int) -> int:
        async def transact(connection: AsyncConnection) -> int:
            await lock(connection, owner_id)
            revisions = await _history(connection, article_id, before)
            if not revisions:
                return 0
            sizes = (await connection.execute(_sizes(connection, article_id))).one_or_none()
            if sizes is None:
                return 0  # deleted meanwhile
            # The content that the removed operations made is charged in their place.
            size = min(sum(size for _, size in revisions), max(0, sizes.charged - sizes.content))
            await connection.execute(
                update(articles)
                .where(articles.c.id == article_id)
                .values(size_bytes=articles.c.size_bytes - size)
            )
            await connection.execute(
                delete(operations).where(
                    operations.c.article_id == article_id,
                    operations.c.revision <= revisions[-1][0],
                )
            )
            await self._usage.free(connection, owner_id, live=size)
            return len(revisions)

        return await write(self._engine, transact)


def _sizes(connection: AsyncConnection, article_id: str) -> Select[Any]:
    """Return the query for what a live document is charged, and what its content takes.

    The content is in its snapshot and in the operations after it.
    """
    size = length_of(connection)
    after_snapshot = (
        select(func.coalesce(func.sum(_charged(size)), 0))
        .where(operations.c.article_id == article_id, operations.c.revision > snapshots.c.revision)
        .scalar_subquery()
    )
    return (
        select(
            articles.c.size_bytes.label("charged"),
            (snapshots.c.size_bytes + after_snapshot).label("content"),
        )
        .join(snapshots, snapshots.c.article_id == articles.c.id)
        .where(articles.c.id == article_id, articles.c.deleted_at_ms.is_(None))
        .with_for_update(of=articles)
    )


def _charged(size: Any) -> ColumnElement[int]:
    """Return the bytes charged for an operation; `size` is the SQL function for a length."""
    charged: ColumnElement[int] = (
        size(operations.c.operation) + size(operations.c.inverse) + OPERATION_BYTES
    )
    return charged


async def _history(
    connection: AsyncConnection, article_id: str, before: int
) -> Sequence[tuple[int, int]]:
    """Return the oldest operations before a revision, each with the bytes charged for it."""
    query = (
        select(operations.c.revision, _charged(length_of(connection)).label("size"))
        .where(operations.c.article_id == article_id, operations.c.revision < before)
        .order_by(operations.c.revision)
        .limit(_AT_ONCE)
    )
    return [(row.revision, row.size) for row in await connection.execute(query)]

"""Erasure of a user's documents, sessions, requests, comments, memberships of groups, and grants.

A document belongs to the user who created it, whoever can read it. The user's edits of others'
documents belong to those documents, whose logs keep the id of a user that no longer exists.
"""

from sqlalchemy import Table, and_, delete, exists, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles.groups import pass_on_groups
from services.articles.retention import PURGING_MS, Retention
from services.articles.tables import (
    articles,
    comments,
    grants,
    members,
    requests,
    sessions,
    suggestions,
    usage,
)
from services.articles.usage import OwnerUsage, lock
from services.common.storage.database import reading_once, write
from services.common.storage.erasing import CountErased

_AT_ONCE = 500
# The author of a comment whose author was erased.
_NOBODY = ""


class ArticleErasure:
    """Removes batches of what the article service stores of a user."""

    def __init__(self, engine: AsyncEngine, retention: Retention, owner_usage: OwnerUsage) -> None:
        self._engine = engine
        self._retention = retention
        self._usage = owner_usage

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove a document or, if there is none, the rest; return the number of removed things.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        if await self._remove_document(user_id, count):
            return 1

        async def remove_others(connection: AsyncConnection) -> int:
            theirs = sessions.c.user_id == user_id
            some = select(sessions.c.id).where(theirs).order_by(sessions.c.id)
            some = some.limit(_AT_ONCE).with_for_update()
            ended = await connection.execute(delete(sessions).where(sessions.c.id.in_(some)))
            await count(connection, "sessions", ended.rowcount)
            answered = requests.c.user_id == user_id
            some = select(requests.c.article_id, requests.c.request_id).where(answered)
            some = some.limit(_AT_ONCE).with_for_update()
            key = tuple_(requests.c.article_id, requests.c.request_id)
            forgotten = await connection.execute(delete(requests).where(answered, key.in_(some)))
            await count(connection, "requests", forgotten.rowcount)
            removed = ended.rowcount + forgotten.rowcount
            removed += await self._remove_comments(connection, user_id, count)
            withdrawn = suggestions.c.user_id == user_id
            some = select(suggestions.c.id).where(withdrawn).limit(_AT_ONCE).with_for_update()
            removed_rows = delete(suggestions).where(suggestions.c.id.in_(some))
            gone = await connection.execute(removed_rows)
            await count(connection, "suggestions", gone.rowcount)
            removed += gone.rowcount
            for kind, table in (("memberships", members), ("grants", grants)):
                removed += await self._remove_rows(connection, user_id, count, kind, table)
            await pass_on_groups(connection, user_id)
            await connection.execute(
                delete(usage).where(
                    usage.c.owner_id == user_id,
                    *(usage.c.documents == 0, usage.c.size_bytes == 0, usage.c.deleted_bytes == 0),
                )
            )
            return removed

        return await write(self._engine, remove_others)

    async def _remove_document(self, user_id: str, count: CountErased) -> bool:
        """Remove one of the user's documents; return whether there was one."""
        query = select(articles.c.id).where(articles.c.creator_id == user_id).limit(1)
        async with reading_once(self._engine) as connection:
            article_id = await connection.scalar(query)
        if article_id is None:
            return False

        async def mark_deleted(connection: AsyncConnection) -> None:
            await lock(connection, user_id)
            size = await connection.scalar(
                update(articles)
                .where(and_(articles.c.id == article_id, articles.c.deleted_at_ms.is_(None)))
                .values(deleted_at_ms=PURGING_MS)
                .returning(articles.c.size_bytes)
            )
            if size is not None:
                await self._usage.move(connection, user_id, size, deleted=True)

        async def count_document(connection: AsyncConnection, size: int) -> None:
            await count(connection, "documents", 1, size)

        await write(self._engine, mark_deleted)
        await self._retention.purge_document(article_id, count_document)
        return True

    @staticmethod
    async def _remove_comments(
        connection: AsyncConnection, user_id: str, count: CountErased
    ) -> int:
        """Remove some comments; those that others replied to stay without text and author."""
        theirs = comments.c.user_id == user_id
        some = select(comments.c.id).where(theirs).order_by(comments.c.id).limit(_AT_ONCE)
        comment_ids = (await connection.scalars(some.with_for_update())).all()
        if not comment_ids:
            return 0
        reply = comments.alias()
        answered = exists().where(
            reply.c.thread_id == comments.c.id,
            reply.c.id != comments.c.id,
            reply.c.user_id != user_id,
        )
        erased = comments.c.id.in_(comment_ids)
        await connection.execute(
            update(comments).where(erased, answered).values(user_id=_NOBODY, text="")
        )
        await connection.execute(delete(comments).where(erased, theirs))
        await count(connection, "comments", len(comment_ids))
        return len(comment_ids)

    @staticmethod
    async def _remove_rows(
        connection: AsyncConnection, user_id: str, count: CountErased, kind: str, table: Table
    ) -> int:
        removed = await connection.execute(delete(table).where(table.c.user_id == user_id))
        await count(connection, kind, removed.rowcount)
        return removed.rowcount

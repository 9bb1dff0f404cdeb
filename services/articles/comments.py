"""Comments of documents in the database.

They are no part of a document: edits do not touch them, and they make no revision. The passages
that they are on are found when they are read.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Row, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles.edit_results import EditResult
from services.articles.errors import NO_RIGHT, SCHEMA, failure, no_comment
from services.articles.repeats import AnsweredRequests, RepeatableRequest
from services.articles.tables import articles, comments
from services.articles.tree.anchors import Anchor
from services.articles.tree.operations import EditOutcome
from services.common import ids
from services.common.articles import limits
from services.common.clock import Clock
from services.common.storage.database import reading

PREFIX = "comment_"
# Bytes charged for a row, besides its texts.
_ROW_BYTES = 256
# The result of a change that returns nothing.
_CHANGED = EditResult(0)


class CommentChange(NamedTuple):
    """A change of the comments of a document.

    Attributes:
        article_id: the document.
        user_id: the caller.
        request: the request, if its caller gave it an id.
    """

    article_id: str
    user_id: str
    request: RepeatableRequest | None = None


class StoredComment(NamedTuple):
    """A comment, or a reply to one.

    Attributes:
        id: its id.
        thread_id: id of the first comment of its thread.
        user_id: its author; "" if the author was erased.
        created_at_ms: Unix milliseconds.
        edited_at_ms: Unix milliseconds of the last change of its text; None if there is none.
        text: its text.
        element_id: the element that it is on; "" for a reply.
        anchor: the passage in or below the element that it is on; None for all of the element.
        is_resolved: whether its thread is resolved.
    """

    id: str
    thread_id: str
    user_id: str
    created_at_ms: int
    edited_at_ms: int | None
    text: str
    element_id: str
    anchor: Anchor | None
    is_resolved: bool


class CommentRepository:
    """Comments in the database; every method raises `unavailable` when it does not answer."""

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        requests: AnsweredRequests,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._requests = requests
        self._new_id = new_id

    async def add(
        self,
        change: CommentChange,
        text: str,
        element_id: str,
        anchor: Anchor | None,
        revision: int,
    ) -> EditResult:
        """Add a comment; return its id, and the revision.

        Args:
            change: who adds it.
            text: the comment.
            element_id: the element that it is on.
            anchor: the passage that it is on; None for all of the element.
            revision: the revision of the document.

        Raises:
            GatewayError: 40003; 40905; 41002.
        """
        comment_id = self._new_id(PREFIX)
        row = {
            "id": comment_id,
            "article_id": change.article_id,
            "thread_id": comment_id,
            "element_id": element_id,
            "anchor": None if anchor is None else orjson.dumps(anchor.to_json()),
        }

        async def insert_comment(connection: AsyncConnection) -> EditResult:
            await self._insert(connection, row, change.user_id, text)
            return EditResult(revision, EditOutcome((comment_id,)))

        return await self._requests.once(*change, insert_comment)

    async def reply(self, change: CommentChange, comment_id: str, text: str) -> str:
        """Add a reply to the thread of a comment; return its id.

        Raises:
            GatewayError: 40003, 40410, 40905, 41002.
        """
        reply_id = self._new_id(PREFIX)

        async def insert_reply(connection: AsyncConnection) -> EditResult:
            thread_id = (await _find(connection, change.article_id, comment_id)).thread_id
            row = {"id": reply_id, "article_id": change.article_id, "thread_id": thread_id}
            await self._insert(connection, row, change.user_id, text)
            return EditResult(0, EditOutcome((reply_id,)))

        return (await self._requests.once(*change, insert_reply)).outcome.ids[0]

    async def edit(self, change: CommentChange, comment_id: str, text: str) -> None:
        """Change the text of a comment of the user's.

        Raises:
            GatewayError: 40003, 40301, 40410, 40905, 41002.
        """
        _check_text(text)

        async def update_text(connection: AsyncConnection) -> EditResult:
            row = await _find(connection, change.article_id, comment_id)
            if row.user_id != change.user_id:
                raise failure(NO_RIGHT, "/commentId", "only its author may edit a comment")
            growth = len(text.encode()) - len(row.text.encode())
            await _check_room(connection, change.article_id, 0, growth)
            await connection.execute(
                update(comments)
                .where(comments.c.id == comment_id)
                .values(
                    text=text,
                    edited_at_ms=self._now_ms(),
                    size_bytes=comments.c.size_bytes + growth,
                )
            )
            return _CHANGED

        await self._requests.once(*change, update_text)

    async def resolve(self, change: CommentChange, comment_id: str, *, reopens: bool) -> None:
        """Resolve the thread of a comment, or open it again.

        Raises:
            GatewayError: 40410, 40905, 41002.
        """

        async def update_thread(connection: AsyncConnection) -> EditResult:
            thread_id = (await _find(connection, change.article_id, comment_id)).thread_id
            await connection.execute(
                update(comments)
                .where(comments.c.id == thread_id)
                .values(resolved_at_ms=None if reopens else self._now_ms())
            )
            return _CHANGED

        await self._requests.once(*change, update_thread)

    async def delete(self, change: CommentChange, comment_id: str) -> None:
        """Delete a reply, or a comment with its replies.

        Raises:
            GatewayError: 40410; 40301, the user is neither its author nor the document's creator;
                40905, 41002.
        """
        creator = select(articles.c.creator_id).where(articles.c.id == change.article_id)

        async def remove(connection: AsyncConnection) -> EditResult:
            row = await _find(connection, change.article_id, comment_id)
            if change.user_id not in (row.user_id, await connection.scalar(creator)):
                problem = "only its author and the document's creator may delete a comment"
                raise failure(NO_RIGHT, "/commentId", problem)
            mine = or_(comments.c.id == comment_id, comments.c.thread_id == comment_id)
            await connection.execute(delete(comments).where(mine))
            return _CHANGED

        await self._requests.once(*change, remove)

    async def threads(
        self, article_id: str, *, with_resolved: bool
    ) -> Sequence[Sequence[StoredComment]]:
        """Return the threads of a document, the oldest first; the comment comes before its replies.

        Args:
            article_id: the document.
            with_resolved: whether to return resolved threads, too.
        """
        query = select(comments).where(comments.c.article_id == article_id)
        async with reading(self._engine) as connection:
            rows = (await connection.execute(query.order_by(comments.c.id))).all()
        threads: dict[str, list[StoredComment]] = {row.id: [] for row in rows if _is_first(row)}
        for row in sorted(rows, key=lambda row: not _is_first(row)):
            if row.thread_id in threads:
                threads[row.thread_id].append(_to_comment(row))
        return [thread for thread in threads.values() if with_resolved or not thread[0].is_resolved]

    async def _insert(
        self, connection: AsyncConnection, row: dict[str, Any], user_id: str, text: str
    ) -> None:
        _check_text(text)
        size = _ROW_BYTES + len(text.encode()) + len(row.get("anchor") or b"")
        await _check_room(connection, row["article_id"], 1, size)
        of_author = {"user_id": user_id, "text": text, "created_at_ms": self._now_ms()}
        await connection.execute(insert(comments).values(**row, **of_author, size_bytes=size))

    def _now_ms(self) -> int:
        return int(self._clock.now() * 1000)


def _check_text(text: str) -> None:
    if not text.strip() or len(text) > limits.COMMENT or "\0" in text:
        problem = f"must have 1 to {limits.COMMENT} characters, without NUL"
        raise failure(SCHEMA, "/text", problem)


async def _check_room(
    connection: AsyncConnection, article_id: str, added: int, growth: int
) -> None:
    query = select(func.count(), func.coalesce(func.sum(comments.c.size_bytes), 0)).where(
        comments.c.article_id == article_id
    )
    count, size = (await connection.execute(query)).one()
    if count + added > limits.COMMENTS or size + growth > limits.COMMENTS_BYTES:
        problem = (
            f"a document can have at most {limits.COMMENTS} comments and replies, of "
            f"{limits.COMMENTS_BYTES} bytes in all; delete some"
        )
        raise failure(SCHEMA, "", problem)


async def _find(connection: AsyncConnection, article_id: str, comment_id: str) -> Row[Any]:
    query = select(comments).where(comments.c.id == comment_id, comments.c.article_id == article_id)
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        raise no_comment()
    return row


def _is_first(row: Row[Any]) -> bool:
    return bool(row.id == row.thread_id)


def _to_comment(row: Row[Any]) -> StoredComment:
    anchor = None
    if row.anchor is not None:
        anchor = Anchor(**orjson.loads(row.anchor))
    return StoredComment(
        row.id,
        row.thread_id,
        row.user_id,
        row.created_at_ms,
        row.edited_at_ms,
        row.text,
        row.element_id,
        anchor,
        row.resolved_at_ms is not None,
    )

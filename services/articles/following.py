"""Following a document over gRPC: its changes, which a call may wait for, and who has it open."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from typing import Any

import grpc
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1.articles_pb2_grpc import ArticleEditorServiceServicer
from services.articles import responses
from services.articles.callers import Callers, UserNames
from services.articles.committer import DocumentCommitter
from services.articles.errors import SCHEMA, failure
from services.articles.sessions import SessionRepository
from services.articles.tables import articles, operations
from services.common.articles import limits
from services.common.storage.database import reading_once

Context = grpc.aio.ServicerContext

# Seconds between looks at the database, for edits that other processes made.
_LOOK_EVERY_S = 1.0


class ChangeWaiter:
    """Lets calls wait until documents change, in this process or another; writes nothing.

    Args:
        engine: the database.
        look_every_s: seconds between looks at the database.
    """

    def __init__(self, engine: AsyncEngine, look_every_s: float = _LOOK_EVERY_S) -> None:
        self._engine = engine
        self._look_every_s = look_every_s
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._has_ended = False

    def notify(self, article_id: str) -> None:
        """Wake the calls that wait for a document, which this process has edited."""
        for changed in self._waiting.get(article_id, ()):
            changed.set()

    def end(self) -> None:
        """Answer the calls that wait, and those that come; the process stops."""
        self._has_ended = True
        for article_id in self._waiting:
            self.notify(article_id)

    async def wait(self, article_id: str, revision: int, seconds: float) -> None:
        """Return once a document has another revision, is deleted, or the time is over.

        It returns at once when the process stops: the caller asks another one.
        """
        changed = asyncio.Event()
        self._waiting[article_id].add(changed)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not self._has_ended and await self._revision(article_id) == revision:
                        with suppress(TimeoutError):
                            async with asyncio.timeout(self._look_every_s):
                                await changed.wait()
        finally:
            self._waiting[article_id].discard(changed)
            if not self._waiting[article_id]:
                del self._waiting[article_id]

    async def _revision(self, article_id: str) -> int | None:
        newest = select(func.coalesce(func.max(operations.c.revision), 0)).where(
            operations.c.article_id == articles.c.id
        )
        query = select(newest.scalar_subquery()).where(
            articles.c.id == article_id, articles.c.deleted_at_ms.is_(None)
        )
        async with reading_once(self._engine) as connection:
            revision: int | None = await connection.scalar(query)
        return revision


class FollowingCalls(ArticleEditorServiceServicer):
    """The RPCs that follow a document."""

    _callers: Callers
    _committer: DocumentCommitter
    _names_of: UserNames
    _sessions: SessionRepository
    _waiter: ChangeWaiter

    async def ReadChanges(
        self, request: wire.ReadChangesRequest, context: "Context[Any, Any]"
    ) -> wire.ReadChangesResponse:
        """Return the changes since a revision, as soon as there are some if the caller waits."""
        if request.wait_seconds > limits.WAIT_SECONDS:
            raise failure(SCHEMA, "/waitSeconds", f"must be 0 to {limits.WAIT_SECONDS}")
        since = request.since if request.HasField("since") else None
        session = await self._callers.session(request.session_id)
        state, before = await self._committer.read_since(session, since)
        if state.revision == since and request.wait_seconds:
            article_id, _ = await self._committer.open(session)
            await self._waiter.wait(article_id, since, request.wait_seconds)
            state, before = await self._committer.read_since(session, since)
        if state.revision == since:
            return wire.ReadChangesResponse(revision=state.revision)
        return await asyncio.to_thread(responses.read_changes, state, before)

    async def ListSessions(
        self, request: wire.ListSessionsRequest, context: "Context[Any, Any]"
    ) -> wire.ListSessionsResponse:
        """List who has a document open."""
        session = await self._callers.session(request.session_id)
        article_id, _ = await self._committer.open(session)
        opened = await self._sessions.of_article(article_id)
        names = await self._names_of({one.user_id for one in opened})
        return wire.ListSessionsResponse(
            sessions=[
                wire.OpenSession(
                    user_id=one.user_id,
                    name=names.get(one.user_id, ""),
                    is_own=one.user_id == session.user_id,
                    is_this=one.session_id == session.session_id,
                    client_id=one.client_id if one.user_id == session.user_id else "",
                    idle_ms=one.idle_ms,
                )
                for one in opened
            ]
        )

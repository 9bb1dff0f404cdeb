"""Sessions: the documents that users have open, each with its expiry.

A user has at most one live session on a document, whichever API keys they use, and one more for
each client that names itself. Every call that
names a session extends its expiry. An expired session stays expired; its row is kept for a while,
so that callers get the error of an expired session.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles.errors import (
    document_deleted,
    no_document,
    no_session,
    session_expired,
    too_many_sessions,
)
from services.articles.repository import access_rights_of, find, with_access_columns
from services.articles.tables import articles, operations, sessions
from services.articles.usage import OwnerUsage
from services.common import ids
from services.common.articles import limits
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.settings import Articles
from services.common.storage.database import reading_once, write
from services.common.storage.key_lists import KeyList

PREFIX = "session_"

_REFS = KeyList((sessions.c.id, sessions.c.user_id), 1, "refs")
# When two calls of one user open a document at once, one creates the session, the other retries.
_ATTEMPTS = 3


class SessionRef(NamedTuple):
    """The session that a call names, and its caller."""

    session_id: str
    user_id: str


class LiveSession(NamedTuple):
    """The document of a live session.

    Attributes:
        article_id: id of the document.
        owner_id: user who created the document.
        revision: revision of the document.
        charged_bytes: bytes of its log that the owner is charged for.
        client_id: the client of the user's, "" if it does not name itself.
    """

    article_id: str
    owner_id: str
    revision: int
    charged_bytes: int
    client_id: str


class OpenSession(NamedTuple):
    """A live session on a document, and the milliseconds since the last call that named it."""

    session_id: str
    user_id: str
    client_id: str
    idle_ms: int


class SessionRepository:
    """Sessions in the database.

    Every method raises `unavailable` when the database does not answer.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        settings: Articles,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._length_ms = int(settings.session_ttl_s * 1000)
        self._most = settings.max_sessions
        self._usage = OwnerUsage(settings)

    async def open(
        self, user_id: str, plan: str, article_id: str, client_id: str = ""
    ) -> tuple[str, bool]:
        """Open a document; return the id of the user's session, and whether it existed.

        Args:
            user_id: the user.
            plan: name of the user's plan.
            article_id: the document.
            client_id: the client of the user's, which has a session of its own; "" for the one
                that all others share.

        Raises:
            GatewayError: 40402; 42901, when the user has too many others.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:

                async def transact(connection: AsyncConnection) -> Any:
                    await find(connection, user_id, article_id)
                    await self._usage.set_plan(connection, user_id, plan)
                    return await self._find_or_make(connection, user_id, article_id, client_id)

                return await write(self._engine, transact)
            except IntegrityError:
                # Another call created the session, or purged the document.
                if attempt == _ATTEMPTS:
                    raise
        raise no_document()

    async def end(self, session: SessionRef) -> None:
        """End a session.

        Raises:
            GatewayError: 40401, 40402, 41001, 41002.
        """

        async def transact(connection: AsyncConnection) -> Any:
            session_state = (await self.touch(connection, [session]))[session]
            if isinstance(session_state, LiveSession):
                await connection.execute(
                    delete(sessions).where(sessions.c.id == session.session_id)
                )
            return session_state

        session_state = await write(self._engine, transact)
        if isinstance(session_state, GatewayError):
            raise session_state

    async def article_of(self, session: SessionRef) -> str | None:
        """Return the document's id of a session, live or not; None if it is not the caller's."""
        query = select(sessions.c.article_id).where(
            sessions.c.id == session.session_id, sessions.c.user_id == session.user_id
        )
        async with reading_once(self._engine) as connection:
            article_id: str | None = await connection.scalar(query)
        return article_id

    async def of_article(self, article_id: str) -> list[OpenSession]:
        """Return the live sessions of those who may read a document, the latest used first."""
        now_ms = self._now_ms()
        query = (
            with_access_columns(
                select(sessions.c.id, sessions.c.user_id, sessions.c.client_id)
                .add_columns(sessions.c.expires_at_ms)
                .select_from(sessions.join(articles, articles.c.id == sessions.c.article_id)),
                sessions.c.user_id,
            )
            .where(
                sessions.c.article_id == article_id,
                sessions.c.expires_at_ms > now_ms,
                sessions.c.latest,
            )
            .order_by(sessions.c.expires_at_ms.desc(), sessions.c.id)
            .limit(limits.SESSIONS_LISTED)
        )
        async with reading_once(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        return [
            OpenSession(
                row.id,
                row.user_id,
                row.client_id,
                max(0, now_ms + self._length_ms - row.expires_at_ms),
            )
            for row in rows
            if access_rights_of(row, row.user_id).may_read
        ]

    async def touch(
        self, connection: AsyncConnection, refs: Collection[SessionRef]
    ) -> dict[SessionRef, LiveSession | GatewayError]:
        """Extend the expiry of sessions, within the caller's transaction.

        A transaction locks sessions before all other rows, and always in the same order, so that
        two transactions never deadlock.

        Returns:
            The document of each session, or the error for its calls.
        """
        now_ms = self._now_ms()
        times = {"now_ms": now_ms, "ends_at_ms": now_ms + self._length_ms}
        await connection.execute(_EXTEND, {**_REFS.values(sorted(refs)), **times})
        session_ids = list({ref.session_id for ref in refs})
        rows = (await connection.execute(_SESSIONS, {"session_ids": session_ids})).all()
        by_id = {row.session_id: row for row in rows}
        expired = [row.session_id for row in rows if row.latest and row.expires_at_ms <= now_ms]
        if expired:
            # For good, even if the clock is set back.
            await connection.execute(
                update(sessions).where(sessions.c.id.in_(sorted(expired))).values(latest=False)
            )
        return {ref: _live_or_error(by_id.get(ref.session_id), ref.user_id, now_ms) for ref in refs}

    async def forget_ended(self, older_than_s: float, at_most: int) -> int:
        """Delete sessions that expired at least `older_than_s` seconds ago; return their number.

        Args:
            older_than_s: see above.
            at_most: the maximum number of deleted sessions.
        """
        until_ms = self._now_ms() - int(older_than_s * 1000)
        oldest = select(sessions.c.id).where(sessions.c.expires_at_ms <= until_ms).limit(at_most)
        ended = delete(sessions).where(sessions.c.id.in_(oldest))
        removed = await write(self._engine, lambda connection: connection.execute(ended))
        return removed.rowcount

    async def _find_or_make(
        self, connection: AsyncConnection, user_id: str, article_id: str, client_id: str
    ) -> tuple[str, bool]:
        now_ms = self._now_ms()
        ends_ms = now_ms + self._length_ms
        latest = (
            sessions.c.user_id == user_id,
            sessions.c.article_id == article_id,
            sessions.c.client_id == client_id,
            sessions.c.latest,
        )
        reused = await connection.execute(
            update(sessions)
            .where(*latest, sessions.c.expires_at_ms > now_ms)
            .values(expires_at_ms=ends_ms)
            .returning(sessions.c.id)
        )
        if session_id := reused.scalar_one_or_none():
            return session_id, True
        # A session that another call creates at the same time stays, and makes the insert fail.
        await connection.execute(
            update(sessions).where(*latest, sessions.c.expires_at_ms <= now_ms).values(latest=False)
        )
        await self._make_room(connection, user_id, now_ms)
        session_id = self._new_id(PREFIX)
        await connection.execute(
            insert(sessions).values(
                id=session_id,
                user_id=user_id,
                article_id=article_id,
                client_id=client_id,
                latest=True,
                expires_at_ms=ends_ms,
            )
        )
        return session_id, False

    async def _make_room(self, connection: AsyncConnection, user_id: str, now_ms: int) -> None:
        """Keep the number of a user's sessions below the limit, expired ones included.

        Concurrent processes may exceed it by a few.

        Raises:
            GatewayError: 42901.
        """
        mine = sessions.c.user_id == user_id
        count_sessions = select(func.count()).where(mine)
        if (await connection.execute(count_sessions)).scalar_one() < self._most:
            return
        # Expired sessions are deleted before a new one is refused.
        await connection.execute(delete(sessions).where(mine, sessions.c.expires_at_ms <= now_ms))
        first_end_ms, session_count = (
            await connection.execute(
                select(func.min(sessions.c.expires_at_ms), func.count()).where(mine)
            )
        ).one()
        if session_count >= self._most:
            raise too_many_sessions(self._most, max(1, (first_end_ms - now_ms) // 1000))

    def _now_ms(self) -> int:
        return int(self._clock.now() * 1000)


def _session_query() -> Select[Any]:
    revision = (
        select(func.coalesce(func.max(operations.c.revision), 0))
        .where(operations.c.article_id == articles.c.id)
        .scalar_subquery()
    )
    query = select(
        sessions.c.id.label("session_id"),
        sessions.c.user_id,
        sessions.c.expires_at_ms,
        sessions.c.latest,
        sessions.c.client_id,
        articles.c.id.label("article_id"),
        articles.c.deleted_at_ms,
        articles.c.charged_bytes,
        revision.label("revision"),
    ).select_from(sessions.join(articles, articles.c.id == sessions.c.article_id))
    of_ids = sessions.c.id.in_(bindparam("session_ids", expanding=True))
    return with_access_columns(query, sessions.c.user_id).where(of_ids)


# Built once, as every edit executes them, and building them takes longer than running them.
_SESSIONS = _session_query()
_EXTEND = (
    update(sessions)
    .where(
        sessions.c.id.in_(
            select(sessions.c.id)
            .where(
                _REFS.condition, sessions.c.expires_at_ms > bindparam("now_ms"), sessions.c.latest
            )
            .order_by(sessions.c.id)
            .with_for_update()
        )
    )
    .values(expires_at_ms=bindparam("ends_at_ms"))
)


def _live_or_error(row: Row[Any] | None, user_id: str, now_ms: int) -> LiveSession | GatewayError:
    if row is None or row.user_id != user_id:
        return no_session()
    if row.deleted_at_ms is not None:
        return document_deleted()
    if row.expires_at_ms <= now_ms or not row.latest:
        return session_expired()
    if not access_rights_of(row, user_id).may_read:
        # The user lost access after the session was opened.
        return no_document("/sessionId")
    return LiveSession(
        row.article_id, row.creator_id, row.revision, row.charged_bytes, row.client_id
    )

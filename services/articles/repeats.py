"""Edits that callers send again, since they got no answer: they are applied once.

A caller gives a request an id. Its result is stored in the transaction of the edit, for each user
and document: neither a crash nor a second call at the same time applies it again.
"""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from copy import deepcopy
from typing import NamedTuple

from sqlalchemy import and_, delete, insert, select, tuple_
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.articles.v1 import articles_pb2 as wire
from gateway.articles.v1 import comments_pb2
from gateway.articles.v1.suggestions_pb2 import AcceptSuggestionRequest, RejectSuggestionRequest
from services.articles.edit_results import EditResult
from services.articles.errors import SCHEMA, failure, request_differs
from services.articles.repository import lock_document
from services.articles.tables import requests
from services.common.clock import Clock
from services.common.storage.database import reading_once, write
from services.common.storage.key_lists import KeyList

# Seconds for which a request is remembered at least, unless there are too many newer ones.
REMEMBERED_S = 24 * 3600
# Requests of a user in a document that are remembered.
REMEMBERED = 1_000
MAX_LENGTH = 64  # characters
# An edit that is committed at the same time may have the same id.
_ATTEMPTS = 3

_KEY = (requests.c.article_id, requests.c.user_id, requests.c.request_id)
_KEYS = KeyList(_KEY, 2, "keys")

EditRequest = (
    wire.ApplyEditRequest
    | wire.ReverseEditRequest
    | wire.RestoreRevisionRequest
    | wire.ImportArticleRequest
    | AcceptSuggestionRequest
    | RejectSuggestionRequest
    | comments_pb2.AddCommentRequest
    | comments_pb2.ReplyToCommentRequest
    | comments_pb2.EditCommentRequest
    | comments_pb2.ResolveCommentRequest
    | comments_pb2.DeleteCommentRequest
)


class RepeatableRequest(NamedTuple):
    """The id that a caller gave to a request, and a hash of what it asks for."""

    id: str
    fingerprint: bytes

    @classmethod
    def of(cls, request: EditRequest) -> "RepeatableRequest | None":
        """Return the id and the hash of a request, or None if it has no id.

        Raises:
            GatewayError: 40003, the id is invalid.
        """
        if not request.HasField("request_id"):
            return None
        request_id = request.request_id
        is_plain = request_id.isascii() and request_id.isprintable()
        if not (is_plain and 1 <= len(request_id) <= MAX_LENGTH):
            problem = f"must have 1 to {MAX_LENGTH} printable ASCII characters"
            raise failure(SCHEMA, "/requestId", problem)
        content = deepcopy(request)
        # The session may be a new one.
        content.ClearField("session_id")
        content.ClearField("request_id")
        message = content.SerializeToString(deterministic=True)
        name = content.DESCRIPTOR.name.encode()
        return cls(request_id, hashlib.sha256(name + b"\0" + message).digest())


class RequestKey(NamedTuple):
    """Names a remembered request."""

    article_id: str
    user_id: str
    request_id: str


class StoredRequest(NamedTuple):
    """A request that was answered: its hash, and the result."""

    fingerprint: bytes
    result: EditResult

    def result_for(self, request: RepeatableRequest) -> EditResult:
        """Return the result for the same request.

        Raises:
            GatewayError: 40905, it is another one.
        """
        if request.fingerprint != self.fingerprint:
            raise request_differs()
        return self.result


class AnsweredRequests:
    """Answered requests in the database."""

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def get(self, key: RequestKey) -> StoredRequest | None:
        """Return a request if it is stored; raise `unavailable` if the database is."""
        async with reading_once(self._engine) as connection:
            return (await self.find(connection, [key])).get(key)

    async def find(
        self, connection: AsyncConnection, keys: Collection[RequestKey]
    ) -> Mapping[RequestKey, StoredRequest]:
        """Return those requests that are stored, within the caller's transaction."""
        query = select(*_KEY, requests.c.fingerprint, requests.c.answer)
        rows = await connection.execute(query.where(_KEYS.condition), _KEYS.values(sorted(keys)))
        return {
            RequestKey(*row[:3]): StoredRequest(
                row.fingerprint, EditResult.of(wire.ApplyEditResponse.FromString(row.answer))
            )
            for row in rows
        }

    async def once(
        self,
        article_id: str,
        user_id: str,
        request: RepeatableRequest | None,
        change: Callable[[AsyncConnection], Awaitable[EditResult]],
    ) -> EditResult:
        """Return the result of a change in a transaction, which locks the document.

        Args:
            article_id: the document.
            user_id: the caller.
            request: the request, if its caller gave it an id. If its result is stored, that is
                returned, and nothing is changed.
            change: changes something within the transaction.

        Raises:
            GatewayError: 40905, another request has the same id; 41002; unavailable.
        """

        async def transact(connection: AsyncConnection) -> EditResult:
            await lock_document(connection, article_id)
            if request is None:
                return await change(connection)
            key = RequestKey(article_id, user_id, request.id)
            stored = await self.find(connection, [key])
            if key in stored:
                return stored[key].result_for(request)
            result = await change(connection)
            await self.add(connection, {key: StoredRequest(request.fingerprint, result)})
            return result

        for _ in range(_ATTEMPTS - 1):
            try:
                return await write(self._engine, transact)
            except IntegrityError:
                continue
        return await write(self._engine, transact)

    async def add(
        self, connection: AsyncConnection, answered: Mapping[RequestKey, StoredRequest]
    ) -> None:
        """Store requests within the caller's transaction, and remove the oldest beyond the limit.

        Raises:
            IntegrityError: another process was first with one of them.
        """
        at_ms = int(self._clock.now() * 1000)
        # The same order everywhere, so that two transactions never deadlock.
        rows = [
            {
                **key._asdict(),
                "at_ms": at_ms,
                "fingerprint": stored.fingerprint,
                "answer": stored.result.to_message().SerializeToString(),
            }
            for key, stored in sorted(answered.items())
        ]
        await connection.execute(insert(requests), rows)
        for article_id, user_id in sorted({key[:2] for key in answered}):
            theirs = and_(requests.c.article_id == article_id, requests.c.user_id == user_id)
            oldest_kept_ms = (
                select(requests.c.at_ms)
                .where(theirs)
                .order_by(requests.c.at_ms.desc())
                .offset(REMEMBERED - 1)
                .limit(1)
                .scalar_subquery()
            )
            older = select(requests.c.request_id).where(theirs, requests.c.at_ms < oldest_kept_ms)
            await connection.execute(
                # Another transaction may remove the same ones.
                delete(requests).where(
                    theirs, requests.c.request_id.in_(older.with_for_update(skip_locked=True))
                )
            )

    async def forget_old(self, at_most: int) -> int:
        """Remove requests that need not be remembered any more; return their number."""
        until_ms = int((self._clock.now() - REMEMBERED_S) * 1000)
        old = (
            select(*_KEY)
            .where(requests.c.at_ms <= until_ms)
            .limit(at_most)
            .with_for_update(skip_locked=True)
        )
        forgotten = delete(requests).where(tuple_(*_KEY).in_(old))
        removed = await write(
            self._engine, lambda connection: connection.execute(forgotten), is_lasting=False
        )
        return removed.rowcount

"""Committer of edits: the only code of a process that changes documents.

Calls that wait at the same time share a transaction, and so its fsync:

1. The expiry of every named session is extended, and its document is brought up to date.
2. Each edit is applied to the current state of its document.
3. The owners are charged for the growth of the log, and the operations are appended to the log.
   Files that the documents show, and results of requests that callers may repeat, are stored.
4. The calls are answered after the commit. A refused call does not affect the others.

If another process was first to append a revision, the primary key of the log fails the transaction.
It is rolled back, and its calls are applied again to the newer documents.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles.cache import DocumentCache, DocumentState
from services.articles.edit_calls import (
    NO_CONDITIONS,
    Call,
    CallAnswer,
    CallKind,
    EditConditions,
    Transaction,
    apply_calls,
    request_key,
)
from services.articles.edit_results import EditResult
from services.articles.loader import DocumentLoader
from services.articles.metrics import ArticleMetrics
from services.articles.operation_log import OperationLog
from services.articles.repeats import AnsweredRequests, RepeatableRequest, RequestKey
from services.articles.sessions import SessionRef, SessionRepository
from services.articles.snapshots import SnapshotTaker
from services.articles.suggestions import lock_pending, remove_accepted
from services.articles.tree.document import Document
from services.articles.tree.operations import DocumentEdit
from services.articles.usage import OwnerUsage, add_to_documents, blocks_for
from services.common.errors import GatewayError, unavailable
from services.common.process.offload import offload_if
from services.common.storage.database import write
from services.common.storage.shown_files import add_shown_files, remove_shown_files

_BATCH = 64
# With two busy processes an attempt succeeds about every other time.
_ATTEMPTS = 30


class _DeletedError(Exception):
    """Error raised when a document was deleted after its session had been checked."""


class _QuotaError(Exception):
    """Error raised when the edits of a batch exceed a quota together; each alone may fit."""


class DocumentCommitter:
    """Reads and edits the documents of sessions, for one process.

    Every method raises `unavailable` when the database does not answer, and 40401, 40402,
    41001 or 41002 when the session is not alive.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        sessions: SessionRepository,
        operation_log: OperationLog,
        cache: DocumentCache,
        metrics: ArticleMetrics,
        usage: OwnerUsage,
        requests: AnsweredRequests,
        on_edited: Callable[[str], None] = lambda article_id: None,
    ) -> None:
        """Initialize the committer; `on_edited` is called with the id of each edited document."""
        self._engine = engine
        self._sessions = sessions
        self._log = operation_log
        self._cache = cache
        self._metrics = metrics
        self._usage = usage
        self._requests = requests
        self._on_edited = on_edited
        self._loader = DocumentLoader(sessions, operation_log, cache, metrics)
        self._snapshots = SnapshotTaker(operation_log, cache, metrics)
        self._waiting: deque[Call] = deque()
        self._working: asyncio.Task[None] | None = None

    async def keep_alive(self, session: SessionRef) -> None:
        """Extend a session's expiry."""
        await self._enqueue(CallKind.KEEP_ALIVE, session)

    async def read(self, session: SessionRef) -> DocumentState:
        """Return the current document of a session."""
        _, state = await self.open(session)
        return state

    async def open(self, session: SessionRef) -> tuple[str, DocumentState]:
        """Return the id of a session's document, and the current document."""
        article_id = await self._loader.preload(session)
        state = await self._enqueue(CallKind.READ, session)
        assert isinstance(state, DocumentState)
        return article_id, state

    async def read_since(
        self, session: SessionRef, revision: int | None
    ) -> tuple[DocumentState, Document | None]:
        """Return the current document of a session, and its state at a revision, if available."""
        article_id, state = await self.open(session)
        before = None
        if revision is not None:
            before = await self._log.state_at(article_id, state, revision)
        return state, before

    async def edit(
        self,
        session: SessionRef,
        edit: DocumentEdit,
        conditions: EditConditions = NO_CONDITIONS,
        request: RepeatableRequest | None = None,
    ) -> EditResult:
        """Apply an edit and make it durable.

        Args:
            session: the session of the document.
            edit: the edit.
            conditions: what must hold for it.
            request: the request, if its caller gave it an id. If its result is stored, that is
                returned, and nothing is applied.

        Raises:
            GatewayError: the edit cannot be applied to the document; 40303, when it exceeds
                the quota of the document's owner; 40901, when `conditions` do not hold; 40905,
                when another request has the same id.
        """
        await self._loader.preload(session)
        result = await self._enqueue(CallKind.EDIT, session, edit, conditions, request)
        assert isinstance(result, EditResult)
        return result

    async def result_of(self, session: SessionRef, request: RepeatableRequest) -> EditResult | None:
        """Return the result of a request that was answered before, or None.

        Raises:
            GatewayError: 40905, another request has the same id.
        """
        article_id, _ = await self.open(session)
        stored = await self._requests.get(RequestKey(article_id, session.user_id, request.id))
        return None if stored is None else stored.result_for(request)

    def forget(self, article_id: str) -> None:
        """Remove a deleted document from the cache."""
        self._cache.drop(article_id)

    async def stop(self) -> None:
        """Wait for the running transaction and snapshots."""
        if self._working is not None:
            await asyncio.gather(self._working, return_exceptions=True)
        await self._snapshots.stop()

    async def _enqueue(
        self,
        kind: CallKind,
        session: SessionRef,
        edit: DocumentEdit | None = None,
        conditions: EditConditions = NO_CONDITIONS,
        request: RepeatableRequest | None = None,
    ) -> CallAnswer:
        answer: asyncio.Future[CallAnswer] = asyncio.get_running_loop().create_future()
        self._waiting.append(Call(kind, session, answer, edit, conditions, request))
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                await self._try([call for call in batch if not call.answer.done()])
        finally:
            self._working = None

    async def _try(self, batch: list[Call]) -> None:
        try:
            transaction = await self._commit(batch)
        except (IntegrityError, _DeletedError):
            self._metrics.conflicts.inc()
            self._retry(batch)
        except _QuotaError:
            for call in batch:
                await self._try([call])
        except Exception as error:
            for call in batch:
                call.fail(error)
        else:
            self._answer(transaction)

    def _retry(self, batch: list[Call]) -> None:
        for call in reversed(batch):
            call.attempts += 1
            if call.attempts < _ATTEMPTS:
                self._waiting.appendleft(call)
            else:
                call.fail(unavailable("too many concurrent edits of this document; try again"))

    async def _commit(self, batch: list[Call]) -> Transaction:
        async def commit(connection: AsyncConnection) -> Transaction:
            transaction = Transaction()
            admitted = await self._admit(connection, batch, transaction)
            keys = {key for call in admitted if (key := request_key(*call)) is not None}
            if keys:
                stored = await self._requests.find(connection, keys)
                transaction.stored_requests.update(stored)
            if accepting_ids := {
                suggestion_id
                for call, _ in admitted
                if (suggestion_id := call.conditions.suggestion_id) is not None
            }:
                transaction.pending_ids = await lock_pending(connection, accepting_ids)
            # Edits of any length run in a thread: a short one may delete a table of 10,000 cells.
            edits = any(call.kind is CallKind.EDIT for call, _ in admitted)
            await offload_if(edits, apply_calls, admitted, transaction)
            if transaction.entries and await self._charge(connection, transaction):
                await self._log.append(connection, transaction.entries)
                await _store_shown_files(connection, transaction)
            if transaction.accepted_ids:
                await remove_accepted(connection, transaction.accepted_ids)
            if transaction.new_requests:
                await self._requests.add(connection, transaction.new_requests)
            return transaction

        return await write(self._engine, commit)

    async def _admit(
        self, connection: AsyncConnection, batch: list[Call], transaction: Transaction
    ) -> list[tuple[Call, str]]:
        """Return the calls whose sessions are alive, each with the id of its document."""
        sessions = await self._sessions.touch(connection, {call.session for call in batch})
        admitted: list[tuple[Call, str]] = []
        for call in batch:
            session = sessions[call.session]
            if isinstance(session, GatewayError):
                transaction.errors.append((call, session))
                continue
            if call.kind is CallKind.KEEP_ALIVE:
                transaction.results.append((call, None))
                continue
            call.client_id = session.client_id
            article_id = session.article_id
            if article_id not in transaction.states:
                state = await self._loader.current(connection, session)
                transaction.initial[article_id] = transaction.states[article_id] = state
                transaction.sessions[article_id] = session
            admitted.append((call, article_id))
        return admitted

    async def _charge(self, connection: AsyncConnection, transaction: Transaction) -> bool:
        """Charge the owners of documents whose logs exceed the bytes charged so far.

        Returns:
            Whether there are operations to append: False if a single call exceeds a quota.

        Raises:
            _DeletedError: a document is deleted.
            _QuotaError: the edits of several calls exceed a quota together.
        """
        by_owner: dict[str, int] = {}
        by_article: dict[str, int] = {}
        for article_id, session in transaction.sessions.items():
            log_bytes = transaction.states[article_id].log_bytes
            if size := blocks_for(log_bytes - session.charged_bytes):
                by_article[article_id] = size
                by_owner[session.owner_id] = by_owner.get(session.owner_id, 0) + size
        if not by_article:
            return True
        if await self._usage.charge(connection, by_owner):
            if not await add_to_documents(connection, by_article):
                raise _DeletedError
            return True
        if len(transaction.results) + len(transaction.errors) > 1:
            raise _QuotaError
        # Nothing was charged. Only the new expiry of the call's session is committed.
        [(owner_id, size)] = by_owner.items()
        transaction.refuse(await self._usage.refusal(connection, owner_id, size))
        return False

    def _answer(self, transaction: Transaction) -> None:
        for article_id, state in transaction.states.items():
            self._cache.put(article_id, state)
        self._metrics.held.set(len(self._cache))
        for article_id, state in transaction.states.items():
            self._snapshots.take_if_due(article_id, state)
        for article_id in {entry.article_id for entry in transaction.entries}:
            self._on_edited(article_id)
        self._metrics.edits.inc(len(transaction.entries))
        self._metrics.commits.inc()
        for call, result in transaction.results:
            if not call.answer.done():
                call.answer.set_result(result)
        for call, error in transaction.errors:
            call.fail(error)


async def _store_shown_files(connection: AsyncConnection, transaction: Transaction) -> None:
    shown, hidden = transaction.shown_files()
    if shown:
        await add_shown_files(connection, shown)
    if hidden:
        await remove_shown_files(connection, hidden)

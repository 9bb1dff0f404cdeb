"""Committer of edits: the only code of a process that changes documents.

Calls that wait at the same time share a transaction, and so its fsync:

1. The expiry of every named session is extended, and its document is brought up to date.
2. Each edit is applied to the current state of its document.
3. The owners are charged for the growth of the log, and the operations are appended to the log.
4. The calls are answered after the commit. A refused call does not affect the others.

If another process was first to append a revision, the primary key of the log fails the transaction.
It is rolled back, and its calls are applied again to the newer documents.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles import codec
from services.articles.cache import DocumentCache, DocumentState
from services.articles.errors import block_changed, stale
from services.articles.loader import DocumentLoader
from services.articles.metrics import ArticleMetrics
from services.articles.operation_log import LogEntry, OperationLog
from services.articles.sessions import LiveSession, SessionRef, SessionRepository
from services.articles.snapshots import SnapshotTaker
from services.articles.tree.document import Document
from services.articles.tree.nodes import Element
from services.articles.tree.operations import DocumentEdit
from services.articles.usage import OwnerUsage, add_to_documents, blocks_for, size_of
from services.common.errors import GatewayError, unavailable
from services.common.process.offload import offload_if
from services.common.storage.database import write

_BATCH = 64
# With two busy processes an attempt succeeds about every other time.
_ATTEMPTS = 30


class EditResult(NamedTuple):
    """The result of an edit.

    Attributes:
        state: the document right after the edit.
        ids: ids of the blocks or of the reference that the edit added, if any.
        ids_of_edits: if several edits were applied together, the ids of each.
    """

    state: DocumentState
    ids: tuple[str, ...] = ()
    ids_of_edits: tuple[tuple[str, ...], ...] = ()


class EditConditions(NamedTuple):
    """What must hold for an edit when it is applied.

    Attributes:
        revision: the revision of the document.
        block: a block with its id as in the document, position aside.
    """

    revision: int | None = None
    block: Element | None = None

    def check(self, state: DocumentState) -> None:
        """Raise `GatewayError` 40901 unless a document fulfils the conditions."""
        if self.revision not in (None, state.revision):
            raise stale(state.revision)
        if self.block is not None and state.document.element(self.block.id) != self.block:
            raise block_changed(state.revision)


NO_CONDITIONS = EditConditions()


class _Kind(Enum):
    KEEP_ALIVE = auto()
    READ = auto()
    EDIT = auto()


@dataclass(eq=False, slots=True)
class _Call:
    """A call that waits for a transaction; the answer to KEEP_ALIVE is None."""

    kind: _Kind
    session: SessionRef
    answer: "asyncio.Future[EditResult | None]"
    edit: DocumentEdit | None = None
    conditions: EditConditions = NO_CONDITIONS
    attempts: int = 0

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(slots=True)
class _Transaction:
    """The work of one transaction, whose calls are answered after the commit.

    Attributes:
        sessions: a session of each document, by the document's id.
        states: the documents, with the edits of the transaction applied.
        entries: the operations to append to the log.
        results: the calls that succeed, with their results.
        errors: the calls that fail, with their errors.
    """

    sessions: dict[str, LiveSession] = field(default_factory=dict)
    states: dict[str, DocumentState] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    results: list[tuple[_Call, EditResult | None]] = field(default_factory=list)
    errors: list[tuple[_Call, Exception]] = field(default_factory=list)


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
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._log = operation_log
        self._cache = cache
        self._metrics = metrics
        self._usage = usage
        self._loader = DocumentLoader(sessions, operation_log, cache, metrics)
        self._snapshots = SnapshotTaker(operation_log, cache, metrics)
        self._waiting: deque[_Call] = deque()
        self._working: asyncio.Task[None] | None = None

    async def keep_alive(self, session: SessionRef) -> None:
        """Extend a session's expiry."""
        await self._enqueue(_Kind.KEEP_ALIVE, session)

    async def read(self, session: SessionRef) -> DocumentState:
        """Return the current document of a session."""
        _, state = await self.open(session)
        return state

    async def open(self, session: SessionRef) -> tuple[str, DocumentState]:
        """Return the id of a session's document, and the current document."""
        article_id = await self._loader.preload(session)
        result = await self._enqueue(_Kind.READ, session)
        assert result is not None
        return article_id, result.state

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
    ) -> EditResult:
        """Apply an edit and make it durable.

        Raises:
            GatewayError: the edit cannot be applied to the document; 40303, when it exceeds
                the quota of the document's owner; 40901, when `conditions` do not hold.
        """
        await self._loader.preload(session)
        result = await self._enqueue(_Kind.EDIT, session, edit, conditions)
        assert result is not None
        return result

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
        kind: _Kind,
        session: SessionRef,
        edit: DocumentEdit | None = None,
        conditions: EditConditions = NO_CONDITIONS,
    ) -> EditResult | None:
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(_Call(kind, session, answer, edit, conditions))
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        result: EditResult | None = await answer
        return result

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
                await self._try([call for call in batch if not call.answer.done()])
        finally:
            self._working = None

    async def _try(self, batch: list[_Call]) -> None:
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

    def _retry(self, batch: list[_Call]) -> None:
        for call in reversed(batch):
            call.attempts += 1
            if call.attempts < _ATTEMPTS:
                self._waiting.appendleft(call)
            else:
                call.fail(unavailable("too many concurrent edits of this document; try again"))

    async def _commit(self, batch: list[_Call]) -> _Transaction:
        transaction = _Transaction()

        async def commit(connection: AsyncConnection) -> None:
            admitted = await self._admit(connection, batch, transaction)
            # Edits of any length run in a thread: a short one may delete a table of 10,000 cells.
            edits = any(call.kind is _Kind.EDIT for call, _ in admitted)
            await offload_if(edits, _apply, admitted, transaction)
            if transaction.entries and await self._charge(connection, transaction):
                await self._log.append(connection, transaction.entries)

        await write(self._engine, commit)
        return transaction

    async def _admit(
        self, connection: AsyncConnection, batch: list[_Call], transaction: _Transaction
    ) -> list[tuple[_Call, str]]:
        """Return the calls whose sessions are alive, each with the id of its document."""
        sessions = await self._sessions.touch(connection, {call.session for call in batch})
        admitted: list[tuple[_Call, str]] = []
        for call in batch:
            session = sessions[call.session]
            if isinstance(session, GatewayError):
                transaction.errors.append((call, session))
                continue
            if call.kind is _Kind.KEEP_ALIVE:
                transaction.results.append((call, None))
                continue
            article_id = session.article_id
            if article_id not in transaction.states:
                transaction.states[article_id] = await self._loader.current(connection, session)
                transaction.sessions[article_id] = session
            admitted.append((call, article_id))
        return admitted

    async def _charge(self, connection: AsyncConnection, transaction: _Transaction) -> bool:
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
        [(call, _)] = transaction.results
        error = await self._usage.refusal(connection, owner_id, size)
        transaction.states.clear()
        transaction.entries.clear()
        transaction.results.clear()
        transaction.errors.append((call, error))
        return False

    def _answer(self, transaction: _Transaction) -> None:
        for article_id, state in transaction.states.items():
            self._cache.put(article_id, state)
            self._snapshots.take_if_due(article_id, state)
        self._metrics.edits.inc(len(transaction.entries))
        self._metrics.commits.inc()
        self._metrics.held.set(len(self._cache))
        for call, result in transaction.results:
            if not call.answer.done():
                call.answer.set_result(result)
        for call, error in transaction.errors:
            call.fail(error)


def _apply(calls: Sequence[tuple[_Call, str]], transaction: _Transaction) -> None:
    """Apply calls in order, each to the document whose id is given with it."""
    for call, article_id in calls:
        _apply_one(call, article_id, transaction)


def _apply_one(call: _Call, article_id: str, transaction: _Transaction) -> None:
    state = transaction.states[article_id]
    if call.edit is None:
        transaction.results.append((call, EditResult(state)))
        return
    try:
        call.conditions.check(state)
        applied = codec.apply(state.document, call.edit)
    except Exception as error:
        # Any exception fails this call alone.
        transaction.errors.append((call, error))
        return
    if state.document.is_same(applied.document):
        # Nothing to store: the edit is answered as one that was made, at the same revision.
        result = EditResult(state, applied.ids, applied.ids_of_edits)
        transaction.results.append((call, result))
        return
    revision = state.revision + 1
    after = replace(
        state,
        document=applied.document,
        revision=revision,
        tail_operations=state.tail_operations + 1,
        tail_bytes=state.tail_bytes + len(applied.operation),
        log_bytes=state.log_bytes + size_of(applied.operation, applied.inverse),
    )
    transaction.states[article_id] = after
    transaction.entries.append(
        LogEntry(article_id, revision, call.session.user_id, applied.operation, applied.inverse)
    )
    transaction.results.append((call, EditResult(after, applied.ids, applied.ids_of_edits)))

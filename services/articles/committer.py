"""Where edits become durable: the one way in which this process changes documents.

Calls that wait at the same time share a transaction, so that they share its fsync: it
moves their sessions' ends, brings their documents up to date, applies each edit to the
tree as it is then, and adds what was done to the log. A call is answered after the
commit. A refused one takes nothing from the others.

Where another process was first with a revision, the log's key undoes the whole
transaction, and the calls are applied again to what the other made of the document.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles import codec
from services.articles.cache import DocumentCache, DocumentState
from services.articles.errors import no_session, stale
from services.articles.metrics import Metrics
from services.articles.operation_log import LogEntry, OperationLog, is_snapshot_due
from services.articles.sessions import LiveSession, SessionRef, SessionRepository
from services.articles.tree.operations import Operation
from services.articles.usage import Usage, add_to_documents, blocks_for, size_of
from services.common.database import writing
from services.common.errors import GatewayError, unavailable

_AT_ONCE = 64
# With two processes that never rest each attempt wins about every other time.
_ATTEMPTS = 30
_KNOWN_SESSIONS = 10_000

log = logging.getLogger(__name__)


class EditResult(NamedTuple):
    """What a call has come to.

    Attributes:
        opened: the document with the call's own edit in it, and none after.
        ids: what the edit made; empty for a read.
    """

    opened: DocumentState
    ids: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class _Call:
    named: SessionRef
    operation: Operation | None
    if_revision: int | None
    answer: "asyncio.Future[EditResult]"
    attempts: int = 0

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(slots=True)
class _Work:
    """What one transaction does, until it is committed."""

    opened: dict[str, DocumentState] = field(default_factory=dict)
    entries: list[LogEntry] = field(default_factory=list)
    outcomes: list[tuple[_Call, EditResult]] = field(default_factory=list)
    refusals: list[tuple[_Call, Exception]] = field(default_factory=list)
    found: dict[str, LiveSession] = field(default_factory=dict)


class _DeletedError(Exception):
    """Error raised when a document was deleted after its session was found alive."""


class _QuotaError(Exception):
    """Error raised when the edits of a batch do not fit together; each may by itself."""


class DocumentCommitter:
    """The documents of one process.

    Every method raises `unavailable` when the database does not answer, and 40401, 40402,
    41001 or 41002 when the session does not serve.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        sessions: SessionRepository,
        article_log: OperationLog,
        cache: DocumentCache,
        metrics: Metrics,
        accounts: Usage,
    ) -> None:
        self._engine = engine
        self._accounts = accounts
        self._sessions = sessions
        self._log = article_log
        self._cache = cache
        self._metrics = metrics
        self._waiting: deque[_Call] = deque()
        self._working: asyncio.Task[None] | None = None
        self._loading: dict[str, asyncio.Task[DocumentState]] = {}
        self._snapshots: dict[str, asyncio.Task[None]] = {}
        # The document of a session never changes; the least recently used one first.
        self._articles: OrderedDict[SessionRef, str] = OrderedDict()

    async def read(self, named: SessionRef) -> DocumentState:
        """Return the document of a session as it is now."""
        return (await self._call(named, None, None)).opened

    async def edit(
        self, named: SessionRef, operation: Operation, if_revision: int | None
    ) -> EditResult:
        """Apply an operation and make it durable.

        Raises:
            GatewayError: what the tree refuses; 40303, when it does not fit in the quota of
                the document's owner; 40901, when the document is not at `if_revision`.
        """
        return await self._call(named, operation, if_revision)

    async def stop(self) -> None:
        """Wait for what was begun."""
        tasks = [task for task in (self._working, *self._snapshots.values()) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _call(
        self, named: SessionRef, operation: Operation | None, if_revision: int | None
    ) -> EditResult:
        await self._warm(named)
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append(_Call(named, operation, if_revision, answer))
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        outcome: EditResult = await answer
        return outcome

    async def _warm(self, named: SessionRef) -> None:
        """Have the session's document in memory before a transaction needs it."""
        article_id = self._articles.get(named)
        if article_id is None:
            article_id = await self._sessions.article_of(named)
            if article_id is None:
                # Nothing of the caller's would be kept alive by going on.
                raise no_session()
            self._articles[named] = article_id
            if len(self._articles) > _KNOWN_SESSIONS:
                self._articles.popitem(last=False)
        else:
            self._articles.move_to_end(named)
        if self._cache.get(article_id) is None:
            await self._load(article_id)

    async def _load(self, article_id: str) -> DocumentState:
        """Read a document from the log; calls that want one at once share the reading."""
        task = self._loading.get(article_id)
        if task is None:
            task = asyncio.create_task(self._read(article_id))
            self._loading[article_id] = task
            task.add_done_callback(partial(self._loaded, article_id))
        # One caller that leaves must not take the document from the others.
        return await asyncio.shield(task)

    def _loaded(self, article_id: str, task: asyncio.Task[DocumentState]) -> None:
        del self._loading[article_id]
        if not task.cancelled():
            task.exception()  # seen here, for the case that every caller has left

    async def _read(self, article_id: str) -> DocumentState:
        opened = await self._log.load(article_id)
        self._cache.put(article_id, opened)
        self._metrics.loaded.inc()
        return opened

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
                await self._attempt([call for call in batch if not call.answer.done()])
        finally:
            self._working = None

    async def _attempt(self, batch: list[_Call]) -> None:
        try:
            work = await self._commit(batch)
        except (IntegrityError, _DeletedError):
            self._metrics.conflicts.inc()
            self._again(batch)
        except _QuotaError:
            for call in batch:
                await self._attempt([call])
        except Exception as error:
            for call in batch:
                call.fail(error)
        else:
            self._settle(work)

    def _again(self, batch: list[_Call]) -> None:
        for call in reversed(batch):
            call.attempts += 1
            if call.attempts < _ATTEMPTS:
                self._waiting.appendleft(call)
            else:
                call.fail(unavailable("the document is edited from many sides; try again"))

    async def _commit(self, batch: list[_Call]) -> _Work:
        work = _Work()
        async with writing(self._engine) as connection:
            states = await self._sessions.touch(connection, {call.named for call in batch})
            admitted: list[tuple[_Call, str]] = []
            for call in batch:
                state = states[call.named]
                if isinstance(state, GatewayError):
                    work.refusals.append((call, state))
                    continue
                if state.article_id not in work.opened:
                    work.opened[state.article_id] = await self._current(connection, state)
                    work.found[state.article_id] = state
                admitted.append((call, state.article_id))
            if any(call.operation is not None for call, _ in admitted):
                # In a thread: a short call may delete a table of 10,000 cells.
                await asyncio.to_thread(_apply, admitted, work)
            else:
                _apply(admitted, work)
            if work.entries and await self._charge(connection, work):
                await self._log.append(connection, work.entries)
        return work

    async def _charge(self, connection: AsyncConnection, work: _Work) -> bool:
        """Charge the documents' owners where a log outgrows what it is charged for.

        Returns:
            Whether there are operations to be added.

        Raises:
            _DeletedError: a document is gone.
            _QuotaError: they do not all fit.
        """
        by_owner: dict[str, int] = {}
        by_article: dict[str, int] = {}
        for article_id, live in work.found.items():
            if size := blocks_for(work.opened[article_id].log_bytes - live.charged_bytes):
                by_article[article_id] = size
                by_owner[live.owner_id] = by_owner.get(live.owner_id, 0) + size
        if not by_article:
            return True
        if await self._accounts.charge(connection, by_owner):
            if not await add_to_documents(connection, by_article):
                raise _DeletedError
            return True
        if len(work.outcomes) + len(work.refusals) > 1:
            raise _QuotaError
        # Nothing was charged; what remains of the call is that its session lives on.
        [(owner_id, size)] = by_owner.items()
        [(call, _)] = work.outcomes
        refusal = await self._accounts.refusal(connection, owner_id, size)
        work.opened.clear()
        work.entries.clear()
        work.outcomes.clear()
        work.refusals.append((call, refusal))
        return False

    async def _current(self, connection: AsyncConnection, live: LiveSession) -> DocumentState:
        held = self._cache.get(live.article_id)
        if held is None:
            return await self._log.load_within(connection, live.article_id)
        if held.revision >= live.revision:
            return held
        return await self._log.catch_up(connection, live.article_id, held)

    def _settle(self, work: _Work) -> None:
        for article_id, opened in work.opened.items():
            self._cache.put(article_id, opened)
            if is_snapshot_due(opened) and article_id not in self._snapshots:
                task = asyncio.create_task(self._snapshot(article_id, opened))
                self._snapshots[article_id] = task
        self._metrics.edits.inc(len(work.entries))
        self._metrics.commits.inc()
        self._metrics.held.set(len(self._cache))
        for call, outcome in work.outcomes:
            if not call.answer.done():
                call.answer.set_result(outcome)
        for call, error in work.refusals:
            call.fail(error)

    async def _snapshot(self, article_id: str, opened: DocumentState) -> None:
        try:
            taken = await self._log.take_snapshot(article_id, opened)
            held = self._cache.get(article_id)
            if held is not None:
                since = replace(
                    held,
                    snapshot_bytes=taken.snapshot_bytes,
                    tail_operations=max(0, held.tail_operations - opened.tail_operations),
                    tail_bytes=max(0, held.tail_bytes - opened.tail_bytes),
                )
                self._cache.put(article_id, since)
            self._metrics.snapshots.inc()
        except Exception:
            # The log has all there is; the next edit tries again.
            log.exception("a snapshot was not kept")
        finally:
            del self._snapshots[article_id]


def _apply(calls: Sequence[tuple[_Call, str]], work: _Work) -> None:
    """Apply calls in their order, each to the document with the id beside it."""
    for call, article_id in calls:
        _apply_one(call, article_id, work)


def _apply_one(call: _Call, article_id: str, work: _Work) -> None:
    opened = work.opened[article_id]
    if call.operation is None:
        work.outcomes.append((call, EditResult(opened)))
        return
    try:
        if call.if_revision not in (None, opened.revision):
            raise stale(opened.revision)
        applied = codec.apply(opened.document, call.operation)
    except Exception as error:
        # Whatever it is, it is this call's alone.
        work.refusals.append((call, error))
        return
    revision = opened.revision + 1
    after = replace(
        opened,
        document=applied.document,
        revision=revision,
        tail_operations=opened.tail_operations + 1,
        tail_bytes=opened.tail_bytes + len(applied.operation),
        log_bytes=opened.log_bytes + size_of(applied.operation, applied.inverse),
    )
    work.opened[article_id] = after
    work.entries.append(
        LogEntry(article_id, revision, call.named.user_id, applied.operation, applied.inverse)
    )
    work.outcomes.append((call, EditResult(after, applied.ids)))

"""Operation log: the durable history of each document, from which it is built.

A document is built from its newest snapshot, if there is one, and all operations after that. The
log also keeps the operations before that, each with its inverse, until the owner's
documents take up much of their quota (see `retention`).
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace
from sqlalchemy import Row, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.articles import codec
from services.articles.cache import DocumentState
from services.articles.reversible import HEAD_BYTES, EntryHead, read_head
from services.articles.tables import operations, sessions, snapshots
from services.articles.tree.document import Document
from services.articles.usage import OPERATION_BYTES, length_of
from services.common.clock import Clock
from services.common.process.offload import offload_if
from services.common.storage.database import insert_into, reading, write
from services.common.storage.shown_files import ShownFile, add_shown_files, files_of

# Bytes of operations from which on catching up replays them in a thread; a load always does.
_LARGE_TAIL = 32 << 10

# Between two statements a snapshot may be taken and the operations before it removed.
_ATTEMPTS = 3


class UndoLimit(NamedTuple):
    """Operations, and bytes of their inverses, up to which they are undone for a caller."""

    operations: int
    size_bytes: int


# For callers that poll, and for those that ask for the history.
_RECENT = UndoLimit(64, 1 << 20)
HISTORY = UndoLimit(10_000, 16 << 20)
# The inverses become one operation of the log.
RESTORED = UndoLimit(10_000, 4 << 20)
# Entries of a user that decide what can be undone.
_MOST_ENTRIES = 5_000


class LogEntry(NamedTuple):
    """An applied operation, for the log."""

    article_id: str
    revision: int
    user_id: str
    operation: bytes
    inverse: bytes
    client_id: str = ""


class MissingRevisionError(Exception):
    """Error raised when an operation is missing from the log."""


class OperationLog:
    """Operations and snapshots in the database.

    Every method that opens a transaction raises `unavailable` when the database does not
    answer.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def load(self, article_id: str) -> DocumentState:
        """Return the current state of a document."""
        async with reading(self._engine) as connection:
            state = await self.load_within(connection, article_id)
            file_ids = state.document.blocks.files()
            is_stored = not file_ids or bool(await files_of(connection, article_id))
        if not is_stored:
            # A version before the table of shown files made the document.
            shown = [ShownFile(article_id, file_id) for file_id in file_ids]
            await write(self._engine, lambda connection: add_shown_files(connection, shown))
        return state

    async def load_within(self, connection: AsyncConnection, article_id: str) -> DocumentState:
        """Return the state of a document, read in the caller's transaction."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._load(connection, article_id)
            except MissingRevisionError:
                continue
        return await self._load(connection, article_id)

    async def _load(self, connection: AsyncConnection, article_id: str) -> DocumentState:
        snapshot = (
            await connection.execute(
                select(
                    snapshots.c.revision,
                    snapshots.c.content,
                    snapshots.c.size_bytes,
                    snapshots.c.log_bytes,
                ).where(snapshots.c.article_id == article_id)
            )
        ).one_or_none()
        tail = await _after(connection, article_id, snapshot.revision if snapshot else 0)
        return await offload_if(True, _build, snapshot, tail)

    async def catch_up(
        self, connection: AsyncConnection, article_id: str, state: DocumentState
    ) -> DocumentState:
        """Return a document with the operations applied that other processes have appended."""
        try:
            tail = await _after(connection, article_id, state.revision)
            is_large = sum(len(row.operation) for row in tail) >= _LARGE_TAIL
            return await offload_if(is_large, _replayed, state, tail)
        except MissingRevisionError:
            # The cached state is so old that operations after it have been removed.
            return await self.load_within(connection, article_id)

    async def state_at(
        self,
        article_id: str,
        state: DocumentState,
        revision: int,
        limit: UndoLimit = _RECENT,
    ) -> Document | None:
        """Return a document at an earlier revision, by undoing the operations since.

        Returns:
            The document, or None if the revision is not an earlier one, or is too old.
        """
        inverses = await self.inverses_since(article_id, state, revision, limit)
        if inverses is None:
            return None
        return await asyncio.to_thread(_undone, state.document, inverses)

    async def inverses_since(
        self, article_id: str, state: DocumentState, revision: int, limit: UndoLimit
    ) -> Sequence[bytes] | None:
        """Return what undoes the operations since a revision, the newest first.

        Returns:
            The inverses, or None if the revision is not an earlier one, or is too old.
        """
        count = state.revision - revision
        if not 0 < count <= limit.operations:
            return None
        async with reading(self._engine) as connection:
            size = length_of(connection)
            undone = (operations.c.article_id == article_id, operations.c.revision > revision)
            until = operations.c.revision <= state.revision
            sizes = await connection.execute(
                select(size(operations.c.inverse)).where(*undone, until)
            )
            lengths = sizes.scalars().all()
            if len(lengths) != count or sum(lengths) > limit.size_bytes:
                return None
            inverses = await connection.execute(
                select(operations.c.inverse)
                .where(*undone, until)
                .order_by(operations.c.revision.desc())
            )
            inverse_bytes: Sequence[bytes] = inverses.scalars().all()
        return inverse_bytes

    async def heads_of(self, article_id: str, user_id: str, session_id: str) -> list[EntryHead]:
        """Return the newest entries of the client of a user's session, the oldest first."""
        of_session = sessions.c.id == session_id
        client_id = select(sessions.c.client_id).where(of_session).scalar_subquery()
        query = (
            select(operations.c.revision, func.substr(operations.c.operation, 1, HEAD_BYTES))
            .where(
                operations.c.article_id == article_id,
                operations.c.user_id == user_id,
                operations.c.client_id == client_id,
            )
            .order_by(operations.c.revision.desc())
            .limit(_MOST_ENTRIES)
        )
        async with reading(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        return [read_head(revision, bytes(head)) for revision, head in reversed(rows)]

    async def page(
        self, article_id: str, before: int, limit: int
    ) -> Sequence[Row[int, str, int, bytes]]:
        """Return the entries below a revision, the newest first: revision, user, time, head."""
        query = (
            select(
                operations.c.revision,
                operations.c.user_id,
                operations.c.at_ms,
                func.substr(operations.c.operation, 1, HEAD_BYTES).label("head"),
            )
            .where(operations.c.article_id == article_id, operations.c.revision < before)
            .order_by(operations.c.revision.desc())
            .limit(limit)
        )
        async with reading(self._engine) as connection:
            return (await connection.execute(query)).all()

    async def entry(self, article_id: str, revision: int) -> tuple[bytes, bytes] | None:
        """Return the operation that made a revision, and its inverse."""
        query = select(operations.c.operation, operations.c.inverse).where(
            operations.c.article_id == article_id, operations.c.revision == revision
        )
        async with reading(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else (row.operation, row.inverse)

    async def append(self, connection: AsyncConnection, entries: Sequence[LogEntry]) -> None:
        """Append operations within the caller's transaction.

        Raises:
            IntegrityError: another process was first with one of the revisions.
        """
        now_ms = int(self._clock.now() * 1000)
        # The same order everywhere, so that two transactions never deadlock.
        rows = [entry._asdict() | {"at_ms": now_ms} for entry in sorted(entries)]
        await connection.execute(insert(operations), rows)

    async def take_snapshot(self, article_id: str, state: DocumentState) -> DocumentState:
        """Store a snapshot, unless there is a newer one; return the state with the new sizes."""
        encoded = await asyncio.to_thread(codec.encode_document, state.document)

        async def keep(connection: AsyncConnection) -> None:
            mine = insert_into(connection, snapshots).values(
                article_id=article_id,
                revision=state.revision,
                content=encoded.content,
                size_bytes=encoded.size_bytes,
                log_bytes=state.log_bytes,
            )
            await connection.execute(
                mine.on_conflict_do_update(
                    index_elements=[snapshots.c.article_id],
                    set_={
                        name: mine.excluded[name]
                        for name in ("revision", "content", "size_bytes", "log_bytes")
                    },
                    where=snapshots.c.revision < mine.excluded.revision,
                )
            )

        await write(self._engine, keep)
        return replace(state, snapshot_bytes=encoded.size_bytes, tail_operations=0, tail_bytes=0)


async def _after(
    connection: AsyncConnection, article_id: str, revision: int
) -> Sequence[Row[int, bytes, int]]:
    size = length_of(connection)
    rows = await connection.execute(
        select(operations.c.revision, operations.c.operation, size(operations.c.inverse))
        .where(operations.c.article_id == article_id, operations.c.revision > revision)
        .order_by(operations.c.revision)
    )
    return rows.all()


def _build(
    snapshot: Row[int, bytes, int, int] | None, tail: Sequence[Row[int, bytes, int]]
) -> DocumentState:
    if snapshot is None:
        start = DocumentState(Document(), 0)
    else:
        document = codec.decode_document(snapshot.content)
        start = DocumentState(
            document,
            snapshot.revision,
            snapshot.size_bytes,
            log_bytes=snapshot.log_bytes,
        )
    return _replayed(start, tail)


def _undone(document: Document, inverses: Sequence[bytes]) -> Document:
    """Return a document with operations undone by their inverses, the newest first."""
    for inverse in inverses:
        document = codec.replay(document, inverse)
    return document


def _replayed(state: DocumentState, tail: Sequence[Row[int, bytes, int]]) -> DocumentState:
    document, size, logged = state.document, state.tail_bytes, state.log_bytes
    for expected, (revision, operation, inverse) in enumerate(tail, state.revision + 1):
        if revision != expected:
            raise MissingRevisionError(f"revision {expected} is missing from the log")
        document = codec.replay(document, operation)
        size += len(operation)
        logged += len(operation) + inverse + OPERATION_BYTES
    return replace(
        state,
        document=document,
        revision=state.revision + len(tail),
        tail_operations=state.tail_operations + len(tail),
        tail_bytes=size,
        log_bytes=logged,
    )

"""Repository of files, and of the storage usage of each owner.

An owner is a team, or a user without one. The row of a file and its owner's usage change in
one transaction, so that the usage is always exact, and the statement that adds to it also
checks the quota. An expired file counts as deleted, whether or not its row still exists; one that a
document shows does not expire.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKey,
    Index,
    Row,
    Select,
    String,
    Table,
    bindparam,
    delete,
    func,
    insert,
    not_,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import File, ListFilesRequest, Purpose
from services.common.clock import Clock
from services.common.errors import GatewayError, conflict, invalid
from services.common.storage.database import (
    insert_if_absent,
    metadata,
    reading,
    reading_once,
    write,
)
from services.common.storage.removed_files import RemoveFiles, keep_nothing
from services.common.storage.shown_files import is_in_document, is_shown, shown_files
from services.files.blob_errors import storage_unavailable

PREFIX = "file-"
MAX_PAGE = 10_000
MAX_IDS = 100

# Documents that an error names.
_MOST_NAMED = 10
_ID = re.compile(r"file-[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
PURPOSE_NAMES: dict[int, str] = {
    number: name.removeprefix("PURPOSE_").lower() for name, number in Purpose.items() if number
}
PURPOSE_NUMBERS = {name: Purpose.ValueType(number) for number, name in PURPOSE_NAMES.items()}
PURPOSE_CHECK = f"purpose IN ({', '.join(map(repr, PURPOSE_NUMBERS))})"

usage = Table(
    "file_usage",
    metadata,
    Column("owner_id", String(64), primary_key=True),
    Column("files", BigInteger, CheckConstraint("files >= 0", name="files"), nullable=False),
    Column(
        "size_bytes",
        BigInteger,
        CheckConstraint("size_bytes >= 0", name="size_bytes"),
        nullable=False,
    ),
    # Uploads in parts that are pending; the bytes of their parts count.
    Column(
        "uploads",
        BigInteger,
        CheckConstraint("uploads >= 0", name="uploads"),
        nullable=False,
        server_default="0",
    ),
)

# Times are in whole seconds: files are listed by the same time that callers see, and files of one
# second by id.
files = Table(
    "files",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner_id", String(64), ForeignKey("file_usage.owner_id"), nullable=False),
    Column("filename", String(255), nullable=False),
    Column(
        "purpose",
        String(16),
        CheckConstraint(PURPOSE_CHECK, name="purpose"),
        nullable=False,
    ),
    Column("size_bytes", BigInteger, nullable=False),
    Column("mime_type", String(255), nullable=False),
    Column("created_at_s", BigInteger, nullable=False),
    Column("expires_at_s", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Index("ix_files_owner_id", "owner_id", "created_at_s", "id"),
    Index("ix_files_owner_id_purpose", "owner_id", "purpose", "created_at_s", "id"),
    Index("ix_files_expires_at_s", "expires_at_s"),
)

# The usage of an owner who stores nothing.
NOTHING: Final = {"files": 0, "size_bytes": 0, "uploads": 0}

# Built once: building a statement takes longer than executing it.
_ADD_WITHIN_QUOTA = (
    update(usage)
    .where(
        usage.c.owner_id == bindparam("its_owner_id"),
        usage.c.size_bytes + bindparam("added_bytes") <= bindparam("quota"),
    )
    .values(files=usage.c.files + 1, size_bytes=usage.c.size_bytes + bindparam("added_bytes"))
)
_INSERT_FILE = insert(files)
# The queries for a file by its id: of any owner, and of one.
_SHARED_FILE_BY_ID = select(files).where(
    or_(files.c.expires_at_s > bindparam("now_s"), is_shown(files.c.id)),
    files.c.id == bindparam("file_id"),
)
_FILE_BY_ID = _SHARED_FILE_BY_ID.where(files.c.owner_id == bindparam("owner"))


class FileTotals(NamedTuple):
    """The number of stored files, and their size in bytes."""

    files: int
    size_bytes: int


class FileRepository:
    """Files and usage in the database.

    Every method raises `storage_unavailable` when the database does not answer.

    Args:
        engine: the database.
        clock: the clock.
        on_removed: removes what other services have of removed files.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        on_removed: RemoveFiles = keep_nothing,
    ) -> None:
        self._on_removed = on_removed
        self._engine = engine
        self._clock = clock or Clock()

    async def add(self, owner_id: str, file: File, quota: int, in_time: Callable[[], bool]) -> None:
        """Insert a file whose bytes are in the store, if its owner's quota allows it.

        Args:
            owner_id: the team, or the user.
            file: the file.
            quota: bytes that the owner may store in all.
            in_time: returns whether the sweeper cannot have deleted the bytes yet. Called as
                late as possible, when nothing but the insert can delay the transaction.

        Raises:
            GatewayError: storage_quota_exceeded; storage_unavailable, when it is too late.
        """

        async def insert_within_quota(connection: AsyncConnection) -> None:
            await insert_if_absent(connection, usage, {"owner_id": owner_id, **NOTHING})
            added = {"its_owner_id": owner_id, "added_bytes": file.size_bytes, "quota": quota}
            if not (await connection.execute(_ADD_WITHIN_QUOTA, added)).rowcount:
                raise quota_exceeded(quota)
            if not in_time():
                raise storage_unavailable()
            await insert_file(connection, owner_id, file)

        with translate_errors():
            await write(self._engine, insert_within_quota)

    async def get(self, owner_id: str | None, file_id: str) -> File:
        """Return a file; without an owner, of any owner.

        Raises:
            GatewayError: not_found, when the owner has no such file.
        """
        file = await self.find(owner_id, file_id)
        if file is None:
            raise not_found(file_id)
        return file

    async def find(self, owner_id: str | None, file_id: str) -> File | None:
        """Return a file, or None if the owner has no such file; without an owner, of any owner."""
        row = None
        if _ID.fullmatch(file_id):
            async with self._reading_once() as connection:
                row = await self._row(connection, owner_id, file_id)
        return None if row is None else _to_file(row)

    async def page(self, owner_id: str, request: ListFilesRequest) -> tuple[list[File], bool]:
        """Return a page of files, and whether there are more in the direction of paging.

        Raises:
            GatewayError: invalid_request, when a cursor names none of the owner's files.
        """
        cursor_field = "before_id" if request.before_id else "after_id"
        cursor_id = request.before_id or request.after_id
        limit = request.limit if request.HasField("limit") else MAX_PAGE
        # A page before a file is read in the opposite direction, and then reversed.
        ascending = request.ascending != bool(request.before_id)
        query = self._theirs(owner_id)
        if request.purpose:
            query = query.where(files.c.purpose == PURPOSE_NAMES[request.purpose])
        if request.ids:
            query = query.where(files.c.id.in_([*filter(_ID.fullmatch, request.ids)]))
        async with self._reading() as connection:
            if cursor_id:
                cursor_position = await self._position(
                    connection, owner_id, cursor_id, cursor_field
                )
                position = tuple_(files.c.created_at_s, files.c.id)
                query = query.where(
                    position > cursor_position if ascending else position < cursor_position
                )
            order = (files.c.created_at_s, files.c.id)
            query = query.order_by(*(order if ascending else [key.desc() for key in order]))
            rows = (await connection.execute(query.limit(limit + 1))).all()
        page = [_to_file(row) for row in rows[:limit]]
        if request.before_id:
            page.reverse()
        return page, len(rows) > limit

    async def remove(self, owner_id: str, file_id: str, *, force: bool = True) -> None:
        """Delete the row of a file, and subtract the file from its owner's usage.

        Raises:
            GatewayError: not_found, when the owner has no such file; conflict, without `force`,
                when documents show it.
        """
        if not _ID.fullmatch(file_id):
            raise not_found(file_id)
        which = (
            files.c.id == file_id,
            files.c.owner_id == owner_id,
            self._is_stored(),
        )
        removable = which if force else (*which, not_(is_in_document(files.c.id)))
        with translate_errors():
            removed = await write(
                self._engine, lambda connection: self._remove(connection, removable)
            )
        if removed:
            return
        if not force and (article_ids := await self._showing(which)):
            raise conflict(
                "file_id",
                f"documents show this file: {', '.join(article_ids)}; remove it there first, or "
                "delete it with force=true",
            )
        raise not_found(file_id)

    async def _remove(
        self, connection: AsyncConnection, which: Iterable[ColumnElement[bool]]
    ) -> Sequence[str]:
        file_ids = await _remove(connection, which)
        if file_ids:
            await self._on_removed(connection, file_ids)
        return file_ids

    async def _showing(self, which: Sequence[ColumnElement[bool]]) -> Sequence[str]:
        """Return the ids of documents that show a file, a few of them."""
        # Another name: conditions of `which` have a subquery on the table.
        shown = shown_files.alias()
        query = (
            select(shown.c.article_id)
            .join(files, files.c.id == shown.c.file_id)
            .where(*which)
            .order_by(shown.c.article_id)
            .limit(_MOST_NAMED)
        )
        async with self._reading_once() as connection:
            return (await connection.scalars(query)).all()

    async def remove_expired(self, at_most: int) -> Sequence[str]:
        """Delete the rows of expired files, the first to expire first; return their ids."""

        async def remove_some(connection: AsyncConnection) -> Sequence[str]:
            expired = await connection.scalars(
                select(files.c.id)
                .where(files.c.expires_at_s <= self._now_s(), not_(is_shown(files.c.id)))
                .order_by(files.c.expires_at_s)
                .limit(at_most)
            )
            return await self._remove(connection, (files.c.id.in_(expired.all()),))

        with translate_errors():
            return await write(self._engine, remove_some)

    async def unknown(self, file_ids: Iterable[str]) -> set[str]:
        """Return the ids that no row has, expired or not."""
        requested_ids = set(file_ids)
        async with self._reading_once() as connection:
            stored_ids = await connection.scalars(
                select(files.c.id).where(files.c.id.in_(requested_ids))
            )
            return requested_ids.difference(stored_ids)

    async def usage(self, owner_id: str) -> FileTotals:
        """Return an owner's usage, including expired files that are not swept yet."""
        query = select(usage.c.files, usage.c.size_bytes).where(usage.c.owner_id == owner_id)
        async with self._reading_once() as connection:
            row = (await connection.execute(query)).one_or_none()
        return FileTotals(*row) if row else FileTotals(0, 0)

    async def total(self) -> FileTotals:
        """Return the usage of all owners together."""
        query = select(func.sum(usage.c.files), func.sum(usage.c.size_bytes))
        async with self._reading_once() as connection:
            count, size = (await connection.execute(query)).one()
        return FileTotals(int(count or 0), int(size or 0))

    async def _position(
        self, connection: AsyncConnection, owner_id: str, file_id: str, field: str
    ) -> tuple[int, str]:
        if _ID.fullmatch(file_id):
            row = await self._row(connection, owner_id, file_id)
            if row is not None:
                return row.created_at_s, row.id
        raise invalid(field, f"{field}: must be the id of one of your files")

    async def _row(
        self, connection: AsyncConnection, owner_id: str | None, file_id: str
    ) -> Row[Any] | None:
        values = {"now_s": self._now_s(), "file_id": file_id}
        if owner_id is None:
            return (await connection.execute(_SHARED_FILE_BY_ID, values)).one_or_none()
        rows = await connection.execute(_FILE_BY_ID, {**values, "owner": owner_id})
        return rows.one_or_none()

    def _theirs(self, owner_id: str) -> Select[Any]:
        return select(files).where(files.c.owner_id == owner_id, self._is_stored())

    def _is_stored(self) -> ColumnElement[bool]:
        return or_(files.c.expires_at_s > self._now_s(), is_shown(files.c.id))

    def _now_s(self) -> int:
        return int(self._clock.now())

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        with translate_errors():
            async with reading(self._engine) as connection:
                yield connection

    @asynccontextmanager
    async def _reading_once(self) -> AsyncIterator[AsyncConnection]:
        with translate_errors():
            async with reading_once(self._engine) as connection:
                yield connection


def not_found(file_id: str) -> GatewayError:
    """Return the 404 error for a file that the caller does not have, whatever the cause."""
    quoted_id = f" {file_id!r}" if _ID.fullmatch(file_id) else ""
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND, f"file_id: no such file{quoted_id}", param="file_id"
    )


def quota_exceeded(quota: int) -> GatewayError:
    """Return the 403 error for an owner whose quota has no room for a file."""
    return GatewayError(
        errors_pb2.REASON_STORAGE_QUOTA_EXCEEDED,
        f"file: your plan allows {quota} bytes of files, which this file would exceed; delete "
        "other files",
        param="file",
        limit="limits.storage",
    )


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate `unavailable`, when the database does not answer, to `storage_unavailable`."""
    try:
        yield
    except GatewayError as error:
        if error.reason != errors_pb2.REASON_UNAVAILABLE:
            raise
        raise storage_unavailable() from error


async def insert_file(connection: AsyncConnection, owner_id: str, file: File) -> None:
    """Insert the row of a file, which its owner's usage already includes."""
    await connection.execute(_INSERT_FILE, {"owner_id": owner_id, **_to_row(file)})


async def _remove(connection: AsyncConnection, which: Iterable[Any]) -> Sequence[str]:
    removed = await connection.execute(
        delete(files).where(*which).returning(files.c.id, files.c.owner_id, files.c.size_bytes)
    )
    ids: list[str] = []
    freed: dict[str, FileTotals] = {}
    for file_id, owner_id, size in removed:
        ids.append(file_id)
        count, total = freed.get(owner_id, (0, 0))
        freed[owner_id] = FileTotals(count + 1, total + size)
    # The same order everywhere, so that two transactions never deadlock.
    for owner_id, (count, total) in sorted(freed.items()):
        await connection.execute(
            update(usage)
            .where(usage.c.owner_id == owner_id)
            .values(files=usage.c.files - count, size_bytes=usage.c.size_bytes - total)
        )
    return ids


def _to_row(file: File) -> dict[str, Any]:
    return {
        "id": file.id,
        "filename": file.filename,
        "purpose": PURPOSE_NAMES[file.purpose],
        "size_bytes": file.size_bytes,
        "mime_type": file.mime_type,
        "created_at_s": file.created_at,
        "expires_at_s": file.expires_at,
        "sha256": file.sha256,
    }


def _to_file(row: Row[Any]) -> File:
    return File(
        id=row.id,
        filename=row.filename,
        purpose=PURPOSE_NUMBERS[row.purpose],
        size_bytes=row.size_bytes,
        mime_type=row.mime_type,
        created_at=row.created_at_s,
        expires_at=row.expires_at_s,
        sha256=row.sha256,
    )

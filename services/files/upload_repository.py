"""Repository of uploads in parts.

The bytes of a part count for the storage of its owner from its row on, and an upload counts as one
of the owner's while it is pending. All of it changes in the transaction that changes the rows. A
transaction locks the row of an upload before that of its owner's usage.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import File
from services.common.clock import Clock
from services.common.errors import GatewayError, conflict, invalid
from services.common.storage.database import insert_if_absent, reading_once, write
from services.files.blob_errors import storage_unavailable
from services.files.repository import (
    NOTHING,
    insert_file,
    quota_exceeded,
    translate_errors,
    usage,
)
from services.files.upload_rows import (
    CANCELLED,
    COMPLETED,
    PENDING,
    StoredPart,
    StoredUpload,
    upload_parts,
    uploads,
)

UPLOAD_PREFIX = "upload_"
PART_PREFIX = "part_"
# Pending uploads of an owner, and parts of an upload.
MAX_PENDING: Final = 100
MAX_PARTS: Final = 1_000

_ID = re.compile(r"upload_[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
_RETRY_AFTER_S = 5

# Built once: building a statement takes longer than executing it.
_UPLOAD_BY_ID = select(uploads).where(
    uploads.c.id == bindparam("upload_id"),
    uploads.c.owner_id == bindparam("owner"),
    uploads.c.expires_at_s > bindparam("now_s"),
)
_IS_PENDING = (
    uploads.c.id == bindparam("upload_id"),
    uploads.c.owner_id == bindparam("owner"),
    uploads.c.status == PENDING,
    uploads.c.expires_at_s > bindparam("now_s"),
)
_RECEIVE = (
    update(uploads)
    .where(*_IS_PENDING, uploads.c.parts < bindparam("most_parts"))
    .values(
        parts=uploads.c.parts + 1,
        received_bytes=uploads.c.received_bytes + bindparam("added_bytes"),
    )
    .returning(uploads.c.received_bytes)
)
_RECEIVE_AT = _RECEIVE.where(uploads.c.received_bytes == bindparam("offset"))
_SET_SIZE = (
    update(uploads)
    .where(
        *_IS_PENDING,
        uploads.c.size_bytes.is_(None),
        uploads.c.received_bytes <= bindparam("size"),
    )
    .values(size_bytes=bindparam("size"))
)
_ADD_PENDING = (
    update(usage)
    .where(usage.c.owner_id == bindparam("its_owner_id"), usage.c.uploads < bindparam("most"))
    .values(uploads=usage.c.uploads + 1)
)
_ADD_BYTES_WITHIN_QUOTA = (
    update(usage)
    .where(
        usage.c.owner_id == bindparam("its_owner_id"),
        usage.c.size_bytes + bindparam("added_bytes") <= bindparam("quota"),
    )
    .values(size_bytes=usage.c.size_bytes + bindparam("added_bytes"))
)
_CHANGE_USAGE = (
    update(usage)
    .where(usage.c.owner_id == bindparam("its_owner_id"))
    .values(
        files=usage.c.files + bindparam("more_files"),
        size_bytes=usage.c.size_bytes + bindparam("more_bytes"),
        uploads=usage.c.uploads - bindparam("ended_uploads"),
    )
)


class UploadRepository:
    """Uploads and their parts in the database.

    Every method raises `storage_unavailable` when the database does not answer.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock

    async def begin(self, upload: StoredUpload) -> None:
        """Insert an upload.

        Raises:
            GatewayError: rate_limited, when the owner has too many that are pending.
        """
        owner_id = upload.owner_id

        async def insert_pending(connection: AsyncConnection) -> None:
            await insert_if_absent(connection, usage, {"owner_id": owner_id, **NOTHING})
            pending = {"its_owner_id": owner_id, "most": MAX_PENDING}
            if not (await connection.execute(_ADD_PENDING, pending)).rowcount:
                raise _too_many_pending()
            await connection.execute(insert(uploads), upload._asdict())

        with translate_errors():
            await write(self._engine, insert_pending)

    async def get(self, owner_id: str, upload_id: str) -> StoredUpload:
        """Return an upload that has not expired.

        Raises:
            GatewayError: not_found, when the owner has no such upload.
        """
        row = None
        if _ID.fullmatch(upload_id):
            with translate_errors():
                async with reading_once(self._engine) as connection:
                    values = self._values(owner_id, upload_id)
                    row = (await connection.execute(_UPLOAD_BY_ID, values)).one_or_none()
        if row is None:
            raise upload_not_found()
        return StoredUpload.of(row)

    async def key_share(self, upload_id: str) -> bytes:
        """Return the share of the key of an upload that has not expired, of any owner.

        Raises:
            GatewayError: not_found.
        """
        query = select(uploads.c.key_share).where(
            uploads.c.id == upload_id, uploads.c.expires_at_s > self._now_s()
        )
        share = None
        if _ID.fullmatch(upload_id):
            with translate_errors():
                async with reading_once(self._engine) as connection:
                    share = await connection.scalar(query)
        if share is None:
            raise upload_not_found()
        return bytes(share)

    async def parts_of(self, upload_id: str) -> Sequence[StoredPart]:
        """Return the parts of an upload, in the order in which they were added."""
        query = (
            select(upload_parts.c.id, upload_parts.c.size_bytes)
            .where(upload_parts.c.upload_id == upload_id)
            .order_by(upload_parts.c.first_byte, upload_parts.c.id)
        )
        with translate_errors():
            async with reading_once(self._engine) as connection:
                return [StoredPart(*row) for row in await connection.execute(query)]

    async def add_part(
        self,
        owner_id: str,
        upload_id: str,
        part: StoredPart,
        offset: int | None,
        quota: int,
        in_time: Callable[[], bool],
    ) -> None:
        """Insert a part whose bytes are in the store, if its owner's quota allows it.

        Args:
            owner_id: the team, or the user.
            upload_id: the upload.
            part: the part.
            offset: the number of bytes that must have been received before it, if it matters.
            quota: bytes that the owner may store in all.
            in_time: as for `FileRepository.add`.

        Raises:
            GatewayError: not_found; invalid_request, when the upload takes no more parts; conflict,
                at another offset; storage_quota_exceeded; storage_unavailable, when it is too late.
        """
        values: dict[str, Any] = {
            **self._values(owner_id, upload_id),
            "added_bytes": part.size_bytes,
            "most_parts": MAX_PARTS,
        }
        if offset is not None:
            values["offset"] = offset

        async def insert_within_quota(connection: AsyncConnection) -> None:
            receive = _RECEIVE if offset is None else _RECEIVE_AT
            received = await connection.scalar(receive, values)
            if received is None:
                raise await self._refusal(connection, owner_id, upload_id, offset)
            added = {"its_owner_id": owner_id, "added_bytes": part.size_bytes, "quota": quota}
            if not (await connection.execute(_ADD_BYTES_WITHIN_QUOTA, added)).rowcount:
                raise quota_exceeded(quota)
            if not in_time():
                raise storage_unavailable()
            row = {
                **part._asdict(),
                "upload_id": upload_id,
                "first_byte": received - part.size_bytes,
            }
            await connection.execute(insert(upload_parts), row)

        with translate_errors():
            await write(self._engine, insert_within_quota)

    async def set_size(self, owner_id: str, upload_id: str, size_bytes: int) -> StoredUpload:
        """Set the size of an upload that has none; return the upload.

        Raises:
            GatewayError: not_found; invalid_request, when it has another size or more bytes.
        """
        values = {**self._values(owner_id, upload_id), "size": size_bytes}
        with translate_errors():
            await write(self._engine, lambda connection: connection.execute(_SET_SIZE, values))
        upload = await self.get(owner_id, upload_id)
        if upload.size_bytes != size_bytes:
            bound = upload.size_bytes or f"at least {upload.received_bytes}"
            raise invalid("size_bytes", f"size_bytes: must be {bound} for this upload")
        return upload

    async def complete(
        self,
        upload: StoredUpload,
        file: File,
        parts: Iterable[StoredPart],
        order: Sequence[str] | None,
        in_time: Callable[[], bool],
    ) -> Sequence[str] | None:
        """Insert the file that was made of an upload, and delete the rows of all of its parts.

        Args:
            upload: the upload, as it was before.
            file: the file.
            parts: the parts that it was made of.
            order: the ids that the caller has named, or None.
            in_time: as for `FileRepository.add`.

        Returns:
            The ids of the deleted parts; None if the upload is no longer pending.

        Raises:
            GatewayError: conflict, when a part was added that belongs to the file;
                storage_unavailable, when it is too late.
        """
        made_of = {part.id for part in parts}
        finished = (
            update(uploads)
            .where(*_IS_PENDING)
            .values(status=COMPLETED, file_id=file.id, order_sha256=order_digest(order))
        )

        async def complete_once(connection: AsyncConnection) -> Sequence[str] | None:
            values = self._values(upload.owner_id, upload.id)
            if not (await connection.execute(finished, values)).rowcount:
                return None
            removed = await _remove_parts(connection, [upload.id])
            part_ids = [part.id for part in removed]
            if order is None and made_of != set(part_ids):
                raise conflict("id", "id: a part was added while the upload was completed")
            change = {
                "its_owner_id": upload.owner_id,
                "more_files": 1,
                "more_bytes": file.size_bytes - sum(part.size_bytes for part in removed),
                "ended_uploads": 1,
            }
            await connection.execute(_CHANGE_USAGE, change)
            if not in_time():
                raise storage_unavailable()
            await insert_file(connection, upload.owner_id, file)
            return part_ids

        with translate_errors():
            return await write(self._engine, complete_once)

    async def cancel(self, owner_id: str, upload_id: str) -> Sequence[str]:
        """Cancel an upload; return the ids of its parts, whose rows are deleted.

        Raises:
            GatewayError: not_found; invalid_request, when it is completed.
        """
        cancelled = update(uploads).where(*_IS_PENDING).values(status=CANCELLED)

        async def cancel_once(connection: AsyncConnection) -> Sequence[str]:
            values = self._values(owner_id, upload_id)
            if not (await connection.execute(cancelled, values)).rowcount:
                row = (await connection.execute(_UPLOAD_BY_ID, values)).one_or_none()
                if row is None:
                    raise upload_not_found()
                if row.status == CANCELLED:
                    return []
                raise ended(row.status)
            removed = await _remove_parts(connection, [upload_id])
            await _free(connection, {owner_id: (1, sum(part.size_bytes for part in removed))})
            return [part.id for part in removed]

        with translate_errors():
            return await write(self._engine, cancel_once)

    async def remove_expired(self, at_most: int) -> tuple[int, Sequence[str]]:
        """Delete the rows of expired uploads; return their number, and the ids of their parts."""
        query = (
            select(uploads.c.id)
            .where(uploads.c.expires_at_s <= self._now_s())
            .order_by(uploads.c.expires_at_s)
            .limit(at_most)
        )

        async def remove_some(connection: AsyncConnection) -> tuple[int, Sequence[str]]:
            upload_ids = (await connection.scalars(query)).all()
            return len(upload_ids), await remove_uploads(connection, upload_ids)

        with translate_errors():
            return await write(self._engine, remove_some)

    async def unknown_parts(self, part_ids: Iterable[str]) -> set[str]:
        """Return the ids that no row has."""
        requested_ids = set(part_ids)
        if not requested_ids:
            return requested_ids
        query = select(upload_parts.c.id).where(upload_parts.c.id.in_(requested_ids))
        with translate_errors():
            async with reading_once(self._engine) as connection:
                return requested_ids.difference(await connection.scalars(query))

    async def _refusal(
        self, connection: AsyncConnection, owner_id: str, upload_id: str, offset: int | None
    ) -> GatewayError:
        """Return the reason for which an upload takes no part at an offset."""
        values = self._values(owner_id, upload_id)
        row = (await connection.execute(_UPLOAD_BY_ID, values)).one_or_none()
        if row is None:
            return upload_not_found()
        upload = StoredUpload.of(row)
        if upload.status != PENDING:
            return ended(upload.status)
        if offset is not None and offset != upload.received_bytes:
            return offset_conflict(upload.received_bytes)
        return invalid(
            "upload_id",
            f"upload_id: this upload has {MAX_PARTS:,} parts, the maximum; send larger ones",
        )

    def _values(self, owner_id: str, upload_id: str) -> dict[str, Any]:
        return {"upload_id": upload_id, "owner": owner_id, "now_s": self._now_s()}

    def _now_s(self) -> int:
        return int(self._clock.now())


def order_digest(order: Sequence[str] | None) -> str:
    """Return a digest of the ids of parts in their order; "" for None."""
    return "" if order is None else hashlib.sha256("\n".join(order).encode()).hexdigest()


def upload_not_found() -> GatewayError:
    """Return the 404 error for an upload that the caller does not have, whatever the cause."""
    return GatewayError(
        errors_pb2.REASON_NOT_FOUND,
        "upload_id: no such upload; it may have expired, begin again",
        param="upload_id",
    )


def ended(status: str) -> GatewayError:
    """Return the error for an upload that has ended: 400."""
    return invalid("upload_id", f"upload_id: this upload is {status}; begin another one")


def offset_conflict(received_bytes: int) -> GatewayError:
    """Return the error for a part that does not follow the bytes received: 409."""
    return conflict("offset", f"offset: must be {received_bytes}, the bytes received so far")


async def remove_uploads(connection: AsyncConnection, upload_ids: Sequence[str]) -> Sequence[str]:
    """Delete uploads and their parts; return the ids of the parts."""
    if not upload_ids:
        return []
    removed = await _remove_parts(connection, upload_ids)
    rows = await connection.execute(
        delete(uploads)
        .where(uploads.c.id.in_(upload_ids))
        .returning(uploads.c.id, uploads.c.owner_id, uploads.c.status)
    )
    owners: dict[str, str] = {}
    freed: dict[str, tuple[int, int]] = {}
    for upload_id, owner_id, status in rows:
        owners[upload_id] = owner_id
        count, size = freed.get(owner_id, (0, 0))
        freed[owner_id] = (count + (status == PENDING), size)
    for part in removed:
        count, size = freed[owners[part.upload_id]]
        freed[owners[part.upload_id]] = (count, size + part.size_bytes)
    await _free(connection, freed)
    return [part.id for part in removed]


async def _remove_parts(connection: AsyncConnection, upload_ids: Sequence[str]) -> Sequence[Any]:
    return (
        await connection.execute(
            delete(upload_parts)
            .where(upload_parts.c.upload_id.in_(upload_ids))
            .returning(upload_parts.c.id, upload_parts.c.upload_id, upload_parts.c.size_bytes)
        )
    ).all()


async def _free(connection: AsyncConnection, freed: dict[str, tuple[int, int]]) -> None:
    """Subtract pending uploads and bytes of owners, in the same order everywhere."""
    for owner_id, (count, size) in sorted(freed.items()):
        change = {
            "its_owner_id": owner_id,
            "more_files": 0,
            "more_bytes": -size,
            "ended_uploads": count,
        }
        await connection.execute(_CHANGE_USAGE, change)


def _too_many_pending() -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_RATE_LIMITED,
        f"{MAX_PENDING} of your uploads are pending, the maximum; complete or cancel one of them",
        retry_after_s=_RETRY_AFTER_S,
    )

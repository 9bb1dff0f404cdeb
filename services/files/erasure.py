"""Erasure of a user's files; those of the user's team belong to the team."""

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.storage.database import reading_once, write
from services.common.storage.erasing import CountErased
from services.common.storage.removed_files import RemoveFiles
from services.files.blob_store import Blobs, delete_blobs
from services.files.repository import files, usage
from services.files.upload_repository import remove_uploads
from services.files.upload_rows import upload_parts, uploads

_AT_ONCE = 100
_UPLOADS_AT_ONCE = 20


class FileErasure:
    """Removes batches of a user's files and uploads.

    Args:
        engine: the database.
        blobs: the bytes of files.
        on_removed: removes what other services have of removed files.
    """

    def __init__(self, engine: AsyncEngine, blobs: Blobs, on_removed: RemoveFiles) -> None:
        self._on_removed = on_removed
        self._engine = engine
        self._blobs = blobs

    async def __call__(self, user_id: str, count: CountErased) -> int:
        """Remove some files; return their number.

        The bytes are deleted first: as long as any are left, a row names them.

        Raises:
            GatewayError: unavailable; storage_unavailable.
        """
        query = select(files.c.id).where(files.c.owner_id == user_id).limit(_AT_ONCE)
        async with reading_once(self._engine) as connection:
            file_ids = (await connection.scalars(query)).all()
        if not file_ids:
            if removed := await self._remove_uploads(user_id):
                return removed
            await self._remove_usage(user_id)
            return 0
        await delete_blobs(self._blobs, file_ids)
        removal = delete(files).where(files.c.id.in_(file_ids)).returning(files.c.size_bytes)

        async def remove_rows(connection: AsyncConnection) -> None:
            sizes = (await connection.scalars(removal)).all()
            await self._on_removed(connection, file_ids)
            await connection.execute(
                update(usage)
                .where(usage.c.owner_id == user_id)
                .values(
                    files=usage.c.files - len(sizes), size_bytes=usage.c.size_bytes - sum(sizes)
                )
            )
            await count(connection, "files", len(sizes), sum(sizes))

        await write(self._engine, remove_rows)
        return len(file_ids)

    async def _remove_uploads(self, user_id: str) -> int:
        """Remove some uploads in parts, pending ones and those that have ended."""
        query = select(uploads.c.id).where(uploads.c.owner_id == user_id).limit(_UPLOADS_AT_ONCE)
        async with reading_once(self._engine) as connection:
            upload_ids = (await connection.scalars(query)).all()
        if not upload_ids:
            return 0
        parts = select(upload_parts.c.id).where(upload_parts.c.upload_id.in_(upload_ids))
        async with reading_once(self._engine) as connection:
            part_ids = (await connection.scalars(parts)).all()
        await delete_blobs(self._blobs, part_ids)
        await write(self._engine, lambda connection: remove_uploads(connection, upload_ids))
        return len(upload_ids)

    async def _remove_usage(self, user_id: str) -> None:
        empty = delete(usage).where(
            usage.c.owner_id == user_id, usage.c.files == 0, usage.c.uploads == 0
        )
        await write(self._engine, lambda connection: connection.execute(empty))

"""Reads and deletes stored files for their owners."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from gateway.files.v1.files_pb2 import File, ReadFileRequest
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller
from services.common.plans import limit_of, plan_name
from services.common.settings import StorageLimits
from services.files.blob_errors import BlobMissingError, storage_unavailable
from services.files.blob_store import Blobs
from services.files.ranges import Range, check_range, resolve_range
from services.files.repository import FileRepository

log = logging.getLogger(__name__)


class OpenedFile(NamedTuple):
    """An open file: its description, the range that is read, and its bytes in pieces."""

    file: File
    range: Range
    pieces: AsyncIterator[bytes]


class FileStore:
    """Stored files: their rows together with their bytes."""

    def __init__(self, repository: FileRepository, blobs: Blobs) -> None:
        self._repository = repository
        self._blobs = blobs

    async def delete(self, owner_id: str, file_id: str, *, force: bool) -> None:
        """Delete a file, with `force` also one that documents show.

        Raises:
            GatewayError: not_found; conflict; storage_unavailable.
        """
        await self._repository.remove(owner_id, file_id, force=force)
        try:
            await self._blobs.delete(file_id)
        except GatewayError:
            # The file is deleted; its bytes are an orphan that the sweeper finds.
            log.warning("the bytes of a deleted file could not be deleted", extra={"file": file_id})

    @asynccontextmanager
    async def reading(
        self, owner_id: str | None, request: ReadFileRequest
    ) -> AsyncIterator[OpenedFile]:
        """Open the requested range of a file for reading; without an owner, of any owner's.

        Raises:
            GatewayError: invalid_request, not_found, range_not_satisfiable,
                storage_unavailable.
        """
        check_range(request)
        file = await self._repository.get(owner_id, request.id)
        byte_range = resolve_range(request, file.size_bytes)
        try:
            async with self._blobs.reading(file.id, *byte_range) as pieces:
                yield OpenedFile(file, byte_range, pieces)
        except BlobMissingError as error:
            # Raises not_found if the file was deleted meanwhile; else a row has no bytes.
            await self._repository.get(owner_id, request.id)
            log.error("the bytes of a file are missing", extra={"file": file.id})
            raise storage_unavailable() from error


def owner_of(caller: Caller) -> str:
    """Return the owner's id of a caller's files: the team's if there is one, else the user's."""
    return caller.team_id or caller.user_id


def quota_of(caller: Caller, limits: StorageLimits) -> int:
    """Return the bytes that the owner of the caller's files may store."""
    return limit_of(limits, plan_name(caller.plan))

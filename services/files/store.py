"""Reading and deleting of stored files, for their owners alone."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from gateway.files.v1.files_pb2 import File, ReadFileRequest
from services.common.authentication import Caller
from services.common.errors import GatewayError
from services.common.plans import limit_of, plan_name
from services.common.settings import StorageLimits
from services.files.blob_errors import BlobMissingError, storage_unavailable
from services.files.blobs import Blobs
from services.files.ranges import Range, check_range, resolve_range
from services.files.repository import FileRepository

log = logging.getLogger(__name__)


class Opened(NamedTuple):
    """A file being read: what it is, which bytes come, and those bytes in pieces."""

    file: File
    range: Range
    pieces: AsyncIterator[bytes]


class FileStore:
    """Files as rows and bytes together."""

    def __init__(self, repository: FileRepository, blobs: Blobs) -> None:
        self._repository = repository
        self._blobs = blobs

    async def delete(self, owner_id: str, file_id: str) -> None:
        """Delete a file.

        Raises:
            GatewayError: not_found; storage_unavailable.
        """
        await self._repository.remove(owner_id, file_id)
        try:
            await self._blobs.delete(file_id)
        except GatewayError:
            # The file is gone; its bytes are an orphan that the sweeper finds.
            log.warning("bytes of a deleted file are left behind", extra={"file": file_id})

    @asynccontextmanager
    async def reading(self, owner_id: str, request: ReadFileRequest) -> AsyncIterator[Opened]:
        """Read the part of a file that was asked for.

        Raises:
            GatewayError: invalid_request, not_found, range_not_satisfiable,
                storage_unavailable.
        """
        check_range(request)
        file = await self._repository.get(owner_id, request.id)
        wanted = resolve_range(request, file.size_bytes)
        try:
            async with self._blobs.reading(file.id, *wanted) as pieces:
                yield Opened(file, wanted, pieces)
        except BlobMissingError as error:
            # Not there because it was deleted since, or there is a row without bytes.
            await self._repository.get(owner_id, request.id)
            log.error("a file has lost its bytes", extra={"file": file.id})
            raise storage_unavailable() from error


def owner_of(caller: Caller) -> str:
    """Return the id that files belong to: the team's where there is one, else the user's."""
    return caller.team_id or caller.user_id


def quota_of(caller: Caller, limits: StorageLimits) -> int:
    """Return the bytes that the owner of the caller's files may store."""
    return limit_of(limits, plan_name(caller.plan))

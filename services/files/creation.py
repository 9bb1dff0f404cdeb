"""Creation of files: stores a stream of messages as a blob and then a row, or nothing of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from gateway.files.v1.files_pb2 import CreateFileRequest, File
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller
from services.common.settings import Limits
from services.common.storage.disk import DiskReserve
from services.common.text.mime import detect_type
from services.files.blob_store import Blobs
from services.files.content import (
    Bound,
    FileWriter,
    MessageReader,
    commit,
    commit_deadline,
    too_large,
)
from services.files.metrics import FileMetrics
from services.files.names import clean_filename
from services.files.properties import check_purpose, lifetime_s_of
from services.files.repository import PREFIX, FileRepository, quota_exceeded
from services.files.store import owner_of, quota_of


class FileCreator:
    """Receives files in one call each, and stores them."""

    def __init__(
        self,
        repository: FileRepository,
        blobs: Blobs,
        limits: Limits,
        clock: Clock,
        metrics: FileMetrics,
        reserve: DiskReserve,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._repository = repository
        self._blobs = blobs
        self._limits = limits
        self._clock = clock
        self._new_id = new_id
        self._metrics = metrics
        self._reserve = reserve

    async def receive(self, caller: Caller, messages: AsyncIterator[CreateFileRequest]) -> File:
        """Store the file that `messages` contain; it is durable when this returns.

        Raises:
            GatewayError: as documented for `CreateFile` in files.proto; nothing is stored.
        """
        limits = self._limits
        reader = MessageReader(messages, limits.body_idle_s)
        header = (await reader.read_header()).header
        filename = clean_filename(header.filename)
        self._reserve.check()
        owner_id, quota = owner_of(caller), quota_of(caller, limits.storage)
        room = quota - (await self._repository.usage(owner_id)).size_bytes
        bounds = (
            Bound(limits.max_file_bytes, too_large(limits.max_file_bytes)),
            Bound(room, lambda: quota_exceeded(quota)),
        )
        file_id = self._new_id(PREFIX)
        async with self._blobs.writing(file_id) as writing:
            writer = FileWriter(writing, self._reserve, bounds)
            trailer = (await reader.copy_content(writer)).trailer
            check_purpose(trailer.purpose)
            lifetime_s = lifetime_s_of(trailer, limits.default_file_lifetime_s)
            await writing.finish()
        now_s = int(self._clock.now())
        file = File(
            id=file_id,
            filename=filename,
            purpose=trailer.purpose,
            size_bytes=writer.size,
            mime_type=detect_type(bytes(writer.head), header.mime_type, filename),
            created_at=now_s,
            expires_at=now_s + lifetime_s,
            sha256=writer.hash.hexdigest(),
        )
        await self._keep(owner_id, file, quota)
        self._metrics.uploads.inc()
        self._metrics.uploaded_bytes.inc(file.size_bytes)
        return file

    async def _keep(self, owner_id: str, file: File, quota: int) -> None:
        in_time = commit_deadline(self._clock, self._limits.orphan_grace_s)
        adding = asyncio.ensure_future(self._repository.add(owner_id, file, quota, in_time))
        try:
            await commit(self._blobs, file.id, adding)
        except BaseException:
            if adding.exception() is None:
                # The caller has left, and does not know the id of the file.
                with suppress(GatewayError):
                    await self._repository.remove(owner_id, file.id)
                    await self._blobs.delete(file.id)
            raise

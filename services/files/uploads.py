"""Uploads: stores a stream of messages as a blob and then a row, or nothing of it."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress

from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import (
    CreateFileRequest,
    File,
    FileHeader,
    FileTrailer,
    Purpose,
)
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.grpc.authentication import Caller
from services.common.settings import MAX_FILE_LIFETIME_S, Limits
from services.common.storage.disk import DiskReserve
from services.common.text.mime import HEAD_SIZE, detect_type
from services.files.blob_store import PIECE, Blobs, Writing
from services.files.metrics import FileMetrics
from services.files.names import clean_filename
from services.files.repository import PREFIX, FileRepository, quota_exceeded
from services.files.store import owner_of, quota_of


class Uploads:
    """Receives uploads and stores them as files."""

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
        header = await self._header(messages)
        filename = clean_filename(header.filename)
        self._reserve.check()
        owner_id, quota = owner_of(caller), quota_of(caller, self._limits.storage)
        room = quota - (await self._repository.usage(owner_id)).size_bytes
        file_id = self._new_id(PREFIX)
        async with self._blobs.writing(file_id) as writing:
            upload = _UploadState(writing, self._limits.max_file_bytes, room, quota, self._reserve)
            trailer = await self._copy(messages, upload)
            lifetime_s = self._lifetime_s(trailer)
            await writing.finish()
        now_s = int(self._clock.now())
        file = File(
            id=file_id,
            filename=filename,
            purpose=trailer.purpose,
            size_bytes=upload.size,
            mime_type=detect_type(bytes(upload.head), header.mime_type, filename),
            created_at=now_s,
            expires_at=now_s + lifetime_s,
            sha256=upload.hash.hexdigest(),
        )
        await self._keep(owner_id, file, quota)
        self._metrics.uploads.inc()
        self._metrics.uploaded_bytes.inc(file.size_bytes)
        return file

    async def _header(self, messages: AsyncIterator[CreateFileRequest]) -> FileHeader:
        first = await self._next(messages)
        if first is None or first.WhichOneof("part") != "header":
            raise invalid("header", "header: must be the first message of an upload")
        return first.header

    async def _copy(
        self, messages: AsyncIterator[CreateFileRequest], upload: "_UploadState"
    ) -> FileTrailer:
        while (message := await self._next(messages)) is not None:
            match message.WhichOneof("part"):
                case "chunk":
                    await upload.add_chunk(message.chunk)
                case "trailer":
                    return message.trailer
                case _:
                    raise invalid(
                        "chunk", "chunk: only chunks are allowed between header and trailer"
                    )
        raise invalid("file", "file: the upload ended before it was complete")

    async def _next(self, messages: AsyncIterator[CreateFileRequest]) -> CreateFileRequest | None:
        try:
            async with asyncio.timeout(self._limits.body_idle_s):
                return await anext(messages, None)
        except TimeoutError as error:
            raise GatewayError(
                errors_pb2.REASON_TIMEOUT,
                f"file: no data received for {self._limits.body_idle_s:g} seconds",
                param="file",
            ) from error

    def _lifetime_s(self, trailer: FileTrailer) -> int:
        if (
            trailer.purpose == Purpose.PURPOSE_UNSPECIFIED
            or trailer.purpose not in Purpose.values()
        ):
            raise invalid("purpose", "purpose: must be a value of gateway.files.v1.Purpose")
        if not trailer.HasField("expires_after_s"):
            return self._limits.default_file_lifetime_s
        if not 1 <= trailer.expires_after_s <= MAX_FILE_LIFETIME_S:
            raise invalid(
                "expires_after.seconds",
                f"expires_after.seconds: must be 1 to {MAX_FILE_LIFETIME_S}",
            )
        return trailer.expires_after_s

    async def _keep(self, owner_id: str, file: File, quota: int) -> None:
        written_at = self._clock.monotonic()

        def in_time() -> bool:
            # Half of the sweeper's grace period; the other half is left for the commit.
            return self._clock.monotonic() - written_at < self._limits.orphan_grace_s / 2

        adding = asyncio.ensure_future(self._repository.add(owner_id, file, quota, in_time))
        try:
            # Shielded: after a cancelled commit it would be unknown whether there is a row.
            await asyncio.shield(adding)
        except BaseException:
            await self._undo(adding, owner_id, file.id)
            raise

    async def _undo(self, adding: "asyncio.Future[None]", owner_id: str, file_id: str) -> None:
        await asyncio.wait([adding])
        error = adding.exception()
        with suppress(GatewayError):
            if error is None:
                await self._repository.remove(owner_id, file_id)
            elif not _is_refusal(error):
                # The row may exist, so the bytes stay; the sweeper decides later.
                return
            await self._blobs.delete(file_id)


class _UploadState:
    """The state of an upload: the received part of a file, and its limits.

    Attributes:
        size: number of bytes received.
        hash: SHA-256 of those bytes.
        head: the first `HEAD_SIZE` of those bytes.
    """

    def __init__(
        self, writing: Writing, max_size: int, room: int, quota: int, reserve: DiskReserve
    ) -> None:
        self._reserve = reserve
        self._writing = writing
        self._max_size = max_size
        self._room = room
        self._quota = quota
        self.size = 0
        self.hash = hashlib.sha256()
        self.head = bytearray()

    async def add_chunk(self, chunk: bytes) -> None:
        if not 1 <= len(chunk) <= PIECE:
            raise invalid("chunk", f"chunk: must have 1 to {PIECE} bytes")
        self._reserve.check()
        self.size += len(chunk)
        if self.size > self._max_size:
            raise GatewayError(
                errors_pb2.REASON_TOO_LARGE,
                f"file: must have at most {self._max_size} bytes",
                param="file",
                limit="limits.max_file_bytes",
            )
        if self.size > self._room:
            raise quota_exceeded(self._quota)
        self.hash.update(chunk)
        if len(self.head) < HEAD_SIZE:
            self.head += chunk[: HEAD_SIZE - len(self.head)]
        await self._writing.write(chunk)


def _is_refusal(error: BaseException) -> bool:
    return (
        isinstance(error, GatewayError) and error.reason == errors_pb2.REASON_STORAGE_QUOTA_EXCEEDED
    )

"""Uploads of files in parts.

Each part is a blob and then a row, like a file, so that any process takes any part, and a part that
was acknowledged survives a crash. Completing an upload copies its parts to the blob of a file, and
commits the file and the end of the upload together: of several completions at the same time one
makes the file, and the others return it.
"""

import asyncio
import hashlib
import hmac
import logging
import re
from collections.abc import AsyncIterator, Sequence

from gateway.files.v1.files_pb2 import (
    UPLOAD_STATUS_CANCELLED,
    UPLOAD_STATUS_COMPLETED,
    UPLOAD_STATUS_PENDING,
    AddUploadPartRequest,
    CompleteUploadRequest,
    CreateUploadRequest,
    File,
    Upload,
    UploadPart,
)
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.grpc.authentication import Caller
from services.common.settings import Limits
from services.common.storage.disk import DiskReserve
from services.common.text.mime import detect_type
from services.files.blob_errors import BlobMissingError, storage_unavailable
from services.files.blob_store import Blobs, delete_blobs
from services.files.content import (
    Bound,
    ContentWriter,
    FileWriter,
    MessageReader,
    commit,
    commit_deadline,
    too_large,
)
from services.files.metrics import FileMetrics
from services.files.names import clean_filename
from services.files.properties import check_purpose, lifetime_s_of
from services.files.repository import (
    PREFIX,
    PURPOSE_NAMES,
    PURPOSE_NUMBERS,
    FileRepository,
    quota_exceeded,
)
from services.files.store import owner_of, quota_of
from services.files.upload_repository import (
    MAX_PARTS,
    PART_PREFIX,
    UPLOAD_PREFIX,
    UploadRepository,
    ended,
    offset_conflict,
    order_digest,
)
from services.files.upload_rows import CANCELLED, COMPLETED, PENDING, StoredPart, StoredUpload

_STATUSES = {
    PENDING: UPLOAD_STATUS_PENDING,
    COMPLETED: UPLOAD_STATUS_COMPLETED,
    CANCELLED: UPLOAD_STATUS_CANCELLED,
}
_MD5 = re.compile("[0-9a-fA-F]{32}", re.ASCII)
_MAX_KEY_SHARE = 64
_MAX_METADATA = 4_096
_MAX_MIME_TYPE = 255

log = logging.getLogger(__name__)


class Uploads:
    """The uploads in parts of all callers."""

    def __init__(
        self,
        repository: UploadRepository,
        files: FileRepository,
        blobs: Blobs,
        limits: Limits,
        clock: Clock,
        metrics: FileMetrics,
        reserve: DiskReserve,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._repository = repository
        self._files = files
        self._blobs = blobs
        self._limits = limits
        self._clock = clock
        self._metrics = metrics
        self._reserve = reserve
        self._new_id = new_id

    async def create(self, caller: Caller, request: CreateUploadRequest) -> Upload:
        """Begin an upload.

        Raises:
            GatewayError: as documented for `CreateUpload` in files.proto.
        """
        limits = self._limits
        upload = self._requested(owner_of(caller), request)
        size = upload.size_bytes or 0
        if size > limits.max_file_bytes:
            raise too_large(limits.max_file_bytes)()
        self._reserve.check()
        quota = quota_of(caller, limits.storage)
        if size + (await self._files.usage(upload.owner_id)).size_bytes > quota:
            raise quota_exceeded(quota)
        await self._repository.begin(upload)
        return _to_message(upload)

    async def get(self, caller: Caller, upload_id: str) -> Upload:
        """Return the description of an upload.

        Raises:
            GatewayError: not_found; storage_unavailable.
        """
        return await self._described(await self._repository.get(owner_of(caller), upload_id))

    async def key_share(self, upload_id: str) -> bytes:
        """Return the share of the key of an upload, of any owner.

        Raises:
            GatewayError: not_found; storage_unavailable.
        """
        return await self._repository.key_share(upload_id)

    async def add_part(
        self, caller: Caller, messages: AsyncIterator[AddUploadPartRequest]
    ) -> UploadPart:
        """Add the part that `messages` contain; it is durable when this returns.

        Raises:
            GatewayError: as documented for `AddUploadPart` in files.proto; nothing is stored.
        """
        limits = self._limits
        reader = MessageReader(messages, limits.body_idle_s)
        header = (await reader.read_header()).header
        offset = header.offset if header.HasField("offset") else None
        self._reserve.check()
        owner_id, quota = owner_of(caller), quota_of(caller, limits.storage)
        upload = await self._repository.get(owner_id, header.upload_id)
        if upload.status != PENDING:
            raise ended(upload.status)
        if offset is not None and offset != upload.received_bytes:
            raise offset_conflict(upload.received_bytes)
        room = quota - (await self._files.usage(owner_id)).size_bytes
        bounds = [
            Bound(limits.max_file_bytes - (offset or 0), too_large(limits.max_file_bytes)),
            Bound(room, lambda: quota_exceeded(quota)),
        ]
        if upload.size_bytes is not None:
            bounds.insert(0, Bound(upload.size_bytes - (offset or 0), lambda: _too_long(upload)))
        part_id = self._new_id(PART_PREFIX)
        async with self._blobs.writing(part_id) as writing:
            writer = ContentWriter(writing, self._reserve, bounds)
            await reader.copy_content(writer)
            if not writer.size:
                raise invalid("chunk", "chunk: a part must not be empty")
            await writing.finish()
        part = StoredPart(part_id, writer.size)
        in_time = commit_deadline(self._clock, limits.orphan_grace_s)
        adding = self._repository.add_part(owner_id, upload.id, part, offset, quota, in_time)
        await commit(self._blobs, part_id, asyncio.ensure_future(adding))
        self._metrics.upload_parts.inc()
        return UploadPart(
            id=part_id,
            upload_id=upload.id,
            created_at=int(self._clock.now()),
            size_bytes=part.size_bytes,
        )

    async def set_size(self, caller: Caller, upload_id: str, size_bytes: int) -> Upload:
        """Set the size of an upload that was begun without one.

        Raises:
            GatewayError: as documented for `SetUploadSize` in files.proto.
        """
        max_size = self._limits.max_file_bytes
        if size_bytes > max_size:
            raise too_large(max_size)()
        upload = await self._repository.set_size(owner_of(caller), upload_id, size_bytes)
        return await self._described(upload)

    async def complete(self, caller: Caller, request: CompleteUploadRequest) -> Upload:
        """Make a file of the parts of an upload, or return the file that was made of them.

        Raises:
            GatewayError: as documented for `CompleteUpload` in files.proto; nothing is changed.
        """
        order = [*request.order.part_ids] if request.HasField("order") else None
        if request.md5 and not _MD5.fullmatch(request.md5):
            raise invalid("md5", "md5: must be 32 hex digits")
        upload = await self._repository.get(owner_of(caller), request.id)
        if upload.status == PENDING:
            self._reserve.check()
            stored = await self._repository.parts_of(upload.id)
            parts = stored if order is None else _ordered(stored, order)
            _check_size(upload, parts)
            try:
                file = await self._assemble(upload, parts, request.md5)
            except BlobMissingError as error:
                # They were deleted meanwhile, if the upload has ended.
                upload = await self._repository.get(upload.owner_id, upload.id)
                if upload.status == PENDING:
                    log.error("the bytes of a part are missing", extra={"upload": upload.id})
                    raise storage_unavailable() from error
            else:
                if await self._keep(upload, file, parts, order):
                    done = upload._replace(status=COMPLETED, file_id=file.id)
                    return _to_message(done, file)
                upload = await self._repository.get(upload.owner_id, upload.id)
        if upload.status == CANCELLED:
            raise ended(upload.status)
        if upload.order_sha256 != order_digest(order):
            raise invalid(
                "order", "order: this upload was completed with other parts, or in another order"
            )
        return await self._described(upload)

    async def cancel(self, caller: Caller, upload_id: str) -> Upload:
        """Cancel an upload.

        Raises:
            GatewayError: as documented for `CancelUpload` in files.proto.
        """
        owner_id = owner_of(caller)
        part_ids = await self._repository.cancel(owner_id, upload_id)
        await self._delete(part_ids)
        return _to_message(await self._repository.get(owner_id, upload_id))

    def _requested(self, owner_id: str, request: CreateUploadRequest) -> StoredUpload:
        """Return the upload that a request describes."""
        trailer, header = request.trailer, request.header
        check_purpose(trailer.purpose)
        if len(header.mime_type) > _MAX_MIME_TYPE:
            raise invalid("mime_type", f"mime_type: must have at most {_MAX_MIME_TYPE} characters")
        if len(request.key_share) > _MAX_KEY_SHARE:
            raise invalid("key_share", f"key_share: must have at most {_MAX_KEY_SHARE} bytes")
        if len(request.metadata) > _MAX_METADATA:
            raise invalid("metadata", f"metadata: must have at most {_MAX_METADATA:,} characters")
        now_s = int(self._clock.now())
        return StoredUpload(
            id=self._new_id(UPLOAD_PREFIX),
            owner_id=owner_id,
            status=PENDING,
            filename=clean_filename(header.filename, "filename"),
            purpose=PURPOSE_NAMES[trailer.purpose],
            mime_type=header.mime_type,
            size_bytes=request.size_bytes if request.HasField("size_bytes") else None,
            lifetime_s=lifetime_s_of(trailer, self._limits.default_file_lifetime_s),
            received_bytes=0,
            parts=0,
            created_at_s=now_s,
            expires_at_s=now_s + self._limits.upload_lifetime_s,
            key_share=request.key_share or None,
            metadata=request.metadata or None,
        )

    async def _assemble(self, upload: StoredUpload, parts: Sequence[StoredPart], md5: str) -> File:
        """Copy parts to the blob of a file; return the file, which has no row yet.

        Raises:
            BlobMissingError: the bytes of a part were deleted.
            GatewayError: invalid_request, when the digest differs; storage_full;
                storage_unavailable.
        """
        max_size = self._limits.max_file_bytes
        file_id = self._new_id(PREFIX)
        digest = hashlib.md5(usedforsecurity=False)
        async with self._blobs.writing(file_id) as writing:
            writer = FileWriter(writing, self._reserve, [Bound(max_size, too_large(max_size))])
            for part in parts:
                async with self._blobs.reading(part.id, 0, part.size_bytes) as pieces:
                    async for piece in pieces:
                        await writer.add_chunk(piece)
                        if md5:
                            digest.update(piece)
            if md5 and not hmac.compare_digest(digest.hexdigest(), md5.lower()):
                raise invalid("md5", f"md5: the parts have the digest {digest.hexdigest()}")
            await writing.finish()
        now_s = int(self._clock.now())
        return File(
            id=file_id,
            filename=upload.filename,
            purpose=PURPOSE_NUMBERS[upload.purpose],
            size_bytes=writer.size,
            mime_type=detect_type(bytes(writer.head), upload.mime_type, upload.filename),
            created_at=now_s,
            expires_at=now_s + upload.lifetime_s,
            sha256=writer.hash.hexdigest(),
        )

    async def _keep(
        self,
        upload: StoredUpload,
        file: File,
        parts: Sequence[StoredPart],
        order: Sequence[str] | None,
    ) -> bool:
        """Commit a file and the end of its upload; return False if the upload has ended before."""
        in_time = commit_deadline(self._clock, self._limits.orphan_grace_s)
        completing = self._repository.complete(upload, file, parts, order, in_time)
        part_ids = await commit(self._blobs, file.id, asyncio.ensure_future(completing))
        if part_ids is None:
            await self._delete([file.id])
            return False
        await self._delete(part_ids)
        self._metrics.uploads.inc()
        self._metrics.uploaded_bytes.inc(file.size_bytes)
        return True

    async def _delete(self, keys: Sequence[str]) -> None:
        """Delete blobs that have no row any more; the sweeper finds those that it cannot delete."""
        try:
            await delete_blobs(self._blobs, keys)
        except GatewayError:
            log.warning("the bytes of an upload could not be deleted", extra={"keys": len(keys)})

    async def _described(self, upload: StoredUpload) -> Upload:
        """Return an upload with its file, if the file still exists."""
        if upload.file_id is None:
            return _to_message(upload)
        file = await self._files.find(upload.owner_id, upload.file_id)
        return _to_message(upload, file)


def _ordered(stored: Sequence[StoredPart], order: Sequence[str]) -> Sequence[StoredPart]:
    """Return the parts with some ids, in their order."""
    if len(order) > MAX_PARTS:
        raise invalid("order.part_ids", f"order.part_ids: must be at most {MAX_PARTS:,} ids")
    left = {part.id: part for part in stored}
    parts = []
    for index, part_id in enumerate(order):
        part = left.pop(part_id, None)
        if part is None:
            path = f"order.part_ids[{index}]"
            problem = (
                "is named twice" if part_id in order[:index] else "is not a part of this upload"
            )
            raise invalid(path, f"{path}: {problem}")
        parts.append(part)
    return parts


def _check_size(upload: StoredUpload, parts: Sequence[StoredPart]) -> None:
    size = sum(part.size_bytes for part in parts)
    if upload.size_bytes is not None and size != upload.size_bytes:
        raise invalid(
            "size_bytes",
            f"size_bytes: the parts have {size:,} bytes together, but the upload was begun for "
            f"{upload.size_bytes:,}",
        )


def _too_long(upload: StoredUpload) -> GatewayError:
    return invalid("chunk", f"chunk: the upload was begun for {upload.size_bytes:,} bytes")


def _to_message(upload: StoredUpload, file: File | None = None) -> Upload:
    return Upload(
        id=upload.id,
        filename=upload.filename,
        purpose=PURPOSE_NUMBERS[upload.purpose],
        size_bytes=upload.size_bytes,
        received_bytes=upload.received_bytes,
        created_at=upload.created_at_s,
        expires_at=upload.expires_at_s,
        status=_STATUSES[upload.status],
        file=file,
        metadata=upload.metadata or "",
    )

"""The gRPC servicer of the file service."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from gateway.files.v1.files_pb2 import (
    AddUploadPartRequest,
    AddUploadPartResponse,
    CancelUploadRequest,
    CancelUploadResponse,
    CompleteUploadRequest,
    CompleteUploadResponse,
    CreateFileRequest,
    CreateFileResponse,
    CreateUploadRequest,
    CreateUploadResponse,
    DeleteFileRequest,
    DeleteFileResponse,
    GetFilePageRequest,
    GetFilePageResponse,
    GetFileRequest,
    GetFileResponse,
    GetStorageRequest,
    GetStorageResponse,
    GetUploadKeyShareRequest,
    GetUploadKeyShareResponse,
    GetUploadRequest,
    GetUploadResponse,
    ListFilesRequest,
    ListFilesResponse,
    Purpose,
    ReadFileOpening,
    ReadFileRequest,
    ReadFileResponse,
    ReadSharedFileRequest,
    ReadSharedFileResponse,
    SetUploadSizeRequest,
    SetUploadSizeResponse,
)
from gateway.files.v1.files_pb2_grpc import FileStoreServiceServicer
from services.common.errors import invalid
from services.common.grpc.authentication import caller
from services.common.settings import StorageLimits
from services.files.creation import FileCreator
from services.files.file_pages import FilePages
from services.files.metrics import FileMetrics
from services.files.repository import MAX_IDS, MAX_PAGE, FileRepository
from services.files.store import FileStore, OpenedFile, owner_of, quota_of
from services.files.uploads import Uploads

SERVICE_NAME = "gateway.files.v1.FileStoreService"

Context = grpc.aio.ServicerContext


class FileStoreServicer(FileStoreServiceServicer):
    """The gRPC servicer of FileStoreService, for the files of the caller's owner."""

    def __init__(
        self,
        repository: FileRepository,
        store: FileStore,
        creator: FileCreator,
        uploads: Uploads,
        pages: FilePages,
        quotas: StorageLimits,
        metrics: FileMetrics,
    ) -> None:
        self._repository = repository
        self._store = store
        self._creator = creator
        self._uploads = uploads
        self._pages = pages
        self._quotas = quotas
        self._metrics = metrics

    async def CreateFile(
        self, request_iterator: AsyncIterator[CreateFileRequest], context: "Context[Any, Any]"
    ) -> CreateFileResponse:
        """Store a file."""
        file = await self._creator.receive(caller.get(), aiter(request_iterator))
        return CreateFileResponse(file=file)

    async def GetFile(
        self, request: GetFileRequest, context: "Context[Any, Any]"
    ) -> GetFileResponse:
        """Return the description of a file."""
        return GetFileResponse(file=await self._repository.get(owner_of(caller.get()), request.id))

    async def ListFiles(
        self, request: ListFilesRequest, context: "Context[Any, Any]"
    ) -> ListFilesResponse:
        """Return a page of files."""
        _check_page(request)
        files, has_more = await self._repository.page(owner_of(caller.get()), request)
        return ListFilesResponse(files=files, has_more=has_more)

    async def DeleteFile(
        self, request: DeleteFileRequest, context: "Context[Any, Any]"
    ) -> DeleteFileResponse:
        """Delete a file."""
        await self._store.delete(owner_of(caller.get()), request.id, force=request.force)
        return DeleteFileResponse()

    async def ReadFile(
        self, request: ReadFileRequest, context: "Context[Any, Any]"
    ) -> AsyncIterator[ReadFileResponse]:
        """Read a file or a range of it."""
        async with self._store.reading(owner_of(caller.get()), request) as reading:
            yield ReadFileResponse(opening=_opening(reading))
            async for piece in reading.pieces:
                yield ReadFileResponse(chunk=piece)
                self._metrics.downloaded_bytes.inc(len(piece))

    async def GetFilePage(
        self, request: GetFilePageRequest, context: "Context[Any, Any]"
    ) -> GetFilePageResponse:
        """Return a page of a document."""
        return await self._pages.get(caller.get(), request)

    async def ReadSharedFile(
        self, request: ReadSharedFileRequest, context: "Context[Any, Any]"
    ) -> AsyncIterator[ReadSharedFileResponse]:
        """Read a file of any owner; the interceptor permits it to the gateway alone."""
        async with self._store.reading(None, ReadFileRequest(id=request.id)) as reading:
            yield ReadSharedFileResponse(opening=_opening(reading))
            async for piece in reading.pieces:
                yield ReadSharedFileResponse(chunk=piece)
                self._metrics.downloaded_bytes.inc(len(piece))

    async def GetStorage(
        self, request: GetStorageRequest, context: "Context[Any, Any]"
    ) -> GetStorageResponse:
        """Return the storage usage and the quota of the caller's owner."""
        usage = await self._repository.usage(owner_of(caller.get()))
        return GetStorageResponse(
            files=usage.files,
            used_bytes=usage.size_bytes,
            quota_bytes=quota_of(caller.get(), self._quotas),
        )

    async def CreateUpload(
        self, request: CreateUploadRequest, context: "Context[Any, Any]"
    ) -> CreateUploadResponse:
        """Begin an upload in parts."""
        return CreateUploadResponse(upload=await self._uploads.create(caller.get(), request))

    async def GetUpload(
        self, request: GetUploadRequest, context: "Context[Any, Any]"
    ) -> GetUploadResponse:
        """Return the description of an upload."""
        return GetUploadResponse(upload=await self._uploads.get(caller.get(), request.id))

    async def AddUploadPart(
        self, request_iterator: AsyncIterator[AddUploadPartRequest], context: "Context[Any, Any]"
    ) -> AddUploadPartResponse:
        """Add a part to an upload."""
        part = await self._uploads.add_part(caller.get(), aiter(request_iterator))
        return AddUploadPartResponse(part=part)

    async def SetUploadSize(
        self, request: SetUploadSizeRequest, context: "Context[Any, Any]"
    ) -> SetUploadSizeResponse:
        """Set the size of an upload."""
        upload = await self._uploads.set_size(caller.get(), request.id, request.size_bytes)
        return SetUploadSizeResponse(upload=upload)

    async def CompleteUpload(
        self, request: CompleteUploadRequest, context: "Context[Any, Any]"
    ) -> CompleteUploadResponse:
        """Make a file of the parts of an upload."""
        return CompleteUploadResponse(upload=await self._uploads.complete(caller.get(), request))

    async def CancelUpload(
        self, request: CancelUploadRequest, context: "Context[Any, Any]"
    ) -> CancelUploadResponse:
        """Cancel an upload."""
        return CancelUploadResponse(upload=await self._uploads.cancel(caller.get(), request.id))

    async def GetUploadKeyShare(
        self, request: GetUploadKeyShareRequest, context: "Context[Any, Any]"
    ) -> GetUploadKeyShareResponse:
        """Return the share of the key of an upload; nobody is authenticated for it."""
        return GetUploadKeyShareResponse(key_share=await self._uploads.key_share(request.id))


def _opening(reading: OpenedFile) -> ReadFileOpening:
    first, length = reading.range
    return ReadFileOpening(file=reading.file, first=first, length=length)


def _check_page(request: ListFilesRequest) -> None:
    if request.HasField("limit") and not 1 <= request.limit <= MAX_PAGE:
        raise invalid("limit", f"limit: must be 1 to {MAX_PAGE}")
    if request.after_id and request.before_id:
        raise invalid("before_id", "before_id: cannot be combined with after_id")
    if len(request.ids) > MAX_IDS:
        raise invalid("ids", f"ids: must be at most {MAX_IDS} ids of files")
    if request.purpose not in Purpose.values():
        raise invalid("purpose", "purpose: must be a value of gateway.files.v1.Purpose")

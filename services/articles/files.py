"""The file store: whether the files of images belong to the caller, and their content."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Protocol

import grpc

from gateway.errors.v1 import errors_pb2
from gateway.files.v1 import files_pb2, files_pb2_grpc
from services.articles.errors import FILE, IMAGE, SCHEMA, failure
from services.articles.tree.nodes import shown_files
from services.articles.tree.operations import (
    ApplyEdits,
    DocumentEdit,
    ImportDocument,
    InsertBlocks,
    ReplaceText,
    WriteMarkdown,
)
from services.common.errors import GatewayError, from_rpc_error, unavailable
from services.common.grpc.authentication import (
    call_metadata,
    caller_key,
    service_authorization,
)
from services.common.grpc.channels import REQUEST_ID_KEY, Metadata
from services.common.process import logs

_AT_ONCE = 4
_CHUNK = 1 << 20


class FileAccess(Protocol):
    """Access to the stored files."""

    async def has(self, file_id: str) -> bool:
        """Return whether the current task's caller has a file with that id.

        Raises:
            GatewayError: storage_unavailable, unavailable.
        """
        ...

    def read(self, file_id: str) -> AsyncIterator[files_pb2.ReadSharedFileResponse]:
        """Yield the description and then the bytes of a file, whoever it belongs to.

        Raises:
            GatewayError: 40407, there is no such file; storage_unavailable, unavailable.
        """
        ...

    async def load(self, file_id: str, max_bytes: int, pointer: str) -> bytes:
        """Return the bytes of a file of the current task's caller.

        Raises:
            GatewayError: 40409, the caller has no such file; 40003, it is larger; both name
                `pointer`. storage_unavailable, unavailable.
        """
        ...

    async def create(self, filename: str, mime_type: str, content: bytes) -> str:
        """Store a file of the current task's caller; return its id.

        Raises:
            GatewayError: as FileStoreService.CreateFile.
        """
        ...


class FileStoreClient:
    """Calls of FileStoreService: look-ups with the caller's key, reads with the gateway's own.

    Args:
        channel: channel to the service.
        credential: the gateway's service credential.
    """

    def __init__(self, channel: grpc.aio.Channel, credential: bytes) -> None:
        self._stub = files_pb2_grpc.FileStoreServiceStub(channel)
        self._authorization = service_authorization(credential)

    async def has(self, file_id: str) -> bool:
        """Return whether the caller has a file with that id; see `FileAccess`."""
        try:
            await self._stub.GetFile(
                files_pb2.GetFileRequest(id=file_id),
                metadata=_of_caller(),
            )
        except grpc.aio.AioRpcError as error:
            failed = from_rpc_error(error)
            if failed.reason == errors_pb2.REASON_NOT_FOUND:
                return False
            raise failed from None
        return True

    async def read(self, file_id: str) -> AsyncIterator[files_pb2.ReadSharedFileResponse]:
        """Yield the description and then the bytes of a file; see `FileAccess`."""
        call = self._stub.ReadSharedFile(
            files_pb2.ReadSharedFileRequest(id=file_id),
            metadata=(
                ("authorization", self._authorization),
                (REQUEST_ID_KEY, logs.request_id.get()),
            ),
        )
        try:
            async for part in call:
                yield part
        except grpc.aio.AioRpcError as error:
            failed = from_rpc_error(error)
            if failed.reason != errors_pb2.REASON_NOT_FOUND:
                raise failed from None
            problem = "the file of this picture was deleted or has expired"
            raise failure(IMAGE, "/index", problem) from None
        finally:
            call.cancel()

    async def load(self, file_id: str, max_bytes: int, pointer: str) -> bytes:
        """Return the bytes of a file of the caller; see `FileAccess`."""
        call = self._stub.ReadFile(files_pb2.ReadFileRequest(id=file_id), metadata=_of_caller())
        chunks = []
        try:
            async for part in call:
                if part.HasField("chunk"):
                    chunks.append(part.chunk)
                elif part.opening.file.size_bytes > max_bytes:
                    raise failure(SCHEMA, pointer, f"must be a file of at most {max_bytes} bytes")
        except grpc.aio.AioRpcError as error:
            failed = from_rpc_error(error)
            if failed.reason != errors_pb2.REASON_NOT_FOUND:
                raise failed from None
            raise failure(FILE, pointer, "you have no file with this id") from None
        finally:
            call.cancel()
        return b"".join(chunks)

    async def create(self, filename: str, mime_type: str, content: bytes) -> str:
        """Store a file of the caller; see `FileAccess`."""
        call = self._stub.CreateFile(metadata=_of_caller())
        try:
            for message in _upload(filename, mime_type, content):
                await call.write(message)
            await call.done_writing()
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
            pass  # the call has ended, and its status says why
        try:
            response = await call
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        except asyncio.InvalidStateError:
            problem = "the connection to the file store was lost; try again"
            raise unavailable(problem) from None
        finally:
            call.cancel()
        file_id: str = response.file.id
        return file_id


def _of_caller() -> Metadata:
    return call_metadata(caller_key.get(), logs.request_id.get())


def _upload(filename: str, mime_type: str, content: bytes) -> Iterator[files_pb2.CreateFileRequest]:
    header = files_pb2.FileHeader(filename=filename, mime_type=mime_type)
    yield files_pb2.CreateFileRequest(header=header)
    for start in range(0, len(content), _CHUNK):
        yield files_pb2.CreateFileRequest(chunk=content[start : start + _CHUNK])
    trailer = files_pb2.FileTrailer(purpose=files_pb2.PURPOSE_USER_DATA)
    yield files_pb2.CreateFileRequest(trailer=trailer)


# The edits that may name files.
_NAMING_FILES = (InsertBlocks, ImportDocument, WriteMarkdown, ReplaceText)


def referenced_files(edit: DocumentEdit) -> dict[str, str]:
    """Return the ids of the files that an edit names, each with its first JSON pointer."""
    file_ids: dict[str, str] = {}
    if isinstance(edit, InsertBlocks):
        for index, block in enumerate(edit.blocks):
            _collect(block.content.get("image"), f"/blocks/{index}/image", file_ids)
    elif isinstance(edit, ApplyEdits):
        for index, one in enumerate(edit.edits):
            if not isinstance(one, _NAMING_FILES):
                continue
            for file_id, pointer in referenced_files(one).items():
                file_ids.setdefault(file_id, f"/edits/{index}{pointer}")
    elif isinstance(edit, ImportDocument):
        named = edit.blocks.pointers
        file_ids = {one: named.get(one, edit.pointer) for one in referenced_files(edit.blocks)}
    elif isinstance(edit, WriteMarkdown):
        for block in edit.blocks:
            for file_id in shown_files(block):
                file_ids.setdefault(file_id, edit.pointers.get(file_id, "/markdown"))
    elif isinstance(edit, ReplaceText):
        _collect(edit.content.get("image"), "/image", file_ids)
    return file_ids


def _collect(images: Any, pointer: str, file_ids: dict[str, str]) -> None:
    for index, image in enumerate(images or ()):
        if "fileId" in image:
            file_ids.setdefault(image["fileId"], f"{pointer}/{index}/fileId")


async def check_ownership(files: FileAccess, pointers: Mapping[str, str]) -> None:
    """Check that files belong to the caller.

    Args:
        files: the look-up.
        pointers: ids of files, each with its JSON pointer.

    Raises:
        GatewayError: 40003 at the first file in order that is not the caller's;
            storage_unavailable, unavailable.
    """
    if not pointers:
        return
    turns = asyncio.Semaphore(_AT_ONCE)

    async def has(file_id: str) -> bool:
        async with turns:
            return await files.has(file_id)

    try:
        async with asyncio.TaskGroup() as group:
            lookups = [group.create_task(has(file_id)) for file_id in pointers]
    except* GatewayError as failures:
        first = failures.exceptions[0]
        assert isinstance(first, GatewayError)
        failed = first
    else:
        for pointer, lookup in zip(pointers.values(), lookups, strict=True):
            if not lookup.result():
                raise failure(SCHEMA, pointer, "must be the id of one of your files")
        return
    raise failed

"""Calls of the file store for the owner of a batch."""

from asyncio import InvalidStateError as _InvalidState
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from gateway.files.v1 import files_pb2, files_pb2_grpc
from gateway.files.v1.files_pb2 import (
    CreateFileRequest,
    DeleteFileRequest,
    File,
    FileHeader,
    FileTrailer,
    GetFileRequest,
    ListFilesRequest,
    ReadFileRequest,
)
from services.common.errors import GatewayError, from_rpc_error, unavailable
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import Metadata

# Bytes of a message of an upload.
_CHUNK = 256 << 10
# The newest files among which one is looked for that a worker has written before it died.
_NEWEST = 1_000

# Returns the key of calls about a batch that a user's key has created; the argument is its id.
KeyOf = Callable[[str], str]


class BatchFiles:
    """The files of a user, read and written with a key that stands for the user's key.

    Args:
        channel: leads to the file store.
        key_of: returns that key; it is valid even if the user's key has been revoked meanwhile.
    """

    def __init__(self, channel: grpc.aio.Channel, key_of: KeyOf) -> None:
        self._stub = files_pb2_grpc.FileStoreServiceStub(channel)
        self._key_of = key_of

    async def find(self, file_id: str, metadata: Metadata) -> File:
        """Return the description of a file of the caller.

        Raises:
            GatewayError: not_found; storage_unavailable.
        """
        try:
            response = await self._stub.GetFile(GetFileRequest(id=file_id), metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        return response.file

    async def pieces(self, key_id: str, file_id: str) -> AsyncIterator[bytes]:
        """Yield the content of a file.

        Raises:
            GatewayError: not_found; storage_unavailable.
        """
        call = self._stub.ReadFile(ReadFileRequest(id=file_id), metadata=self._metadata(key_id))
        try:
            async for part in call:
                if part.chunk:
                    yield part.chunk
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        finally:
            call.cancel()

    async def write(
        self, key_id: str, name: str, lines: AsyncIterator[bytes], ttl_s: int | None
    ) -> str:
        """Store lines as a file for the results of batches; return its id, "" without lines.

        Raises:
            GatewayError: storage_quota_exceeded; too_large; storage_unavailable.
        """
        buffered = b""
        call: Any = None
        try:
            async for line in lines:
                if call is None:
                    call = self._stub.CreateFile(metadata=self._metadata(key_id))
                    await call.write(CreateFileRequest(header=FileHeader(filename=name)))
                buffered += line
                while len(buffered) >= _CHUNK:
                    await call.write(CreateFileRequest(chunk=buffered[:_CHUNK]))
                    buffered = buffered[_CHUNK:]
            if call is None:
                return ""
            if buffered:
                await call.write(CreateFileRequest(chunk=buffered))
            trailer = FileTrailer(purpose=files_pb2.PURPOSE_BATCH_OUTPUT)
            if ttl_s is not None:
                trailer.expires_after_s = ttl_s
            await call.write(CreateFileRequest(trailer=trailer))
            await call.done_writing()
            created = await call
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        except _InvalidState:
            raise await _end_of(call) from None
        finally:
            if call is not None:
                call.cancel()
        file_id: str = created.file.id
        return file_id

    async def delete_named(self, key_id: str, name: str, created_at_s: int) -> None:
        """Delete the files of results with a name, which a worker has written before it died."""
        listing = ListFilesRequest(limit=_NEWEST, purpose=files_pb2.PURPOSE_BATCH_OUTPUT)
        metadata = self._metadata(key_id)
        try:
            while True:
                page = await self._stub.ListFiles(listing, metadata=metadata)
                for file in page.files:
                    if file.filename == name:
                        await self._stub.DeleteFile(
                            DeleteFileRequest(id=file.id), metadata=metadata
                        )
                if not page.has_more or page.files[-1].created_at < created_at_s:
                    return
                listing.after_id = page.files[-1].id
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None

    def _metadata(self, key_id: str) -> Metadata:
        return call_metadata(self._key_of(key_id), "")


async def _end_of(call: Any) -> GatewayError:
    """Return the error that has ended a call while it was written to."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return from_rpc_error(error)
    except _InvalidState:
        pass
    return unavailable("the connection to the file store was lost; try again")

"""Client-streaming calls that upload a file, or a part of one."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import grpc

from gateway.files.v1.files_pb2 import (
    AddUploadPartRequest,
    AddUploadPartResponse,
    CreateFileRequest,
    CreateFileResponse,
    File,
    FileHeader,
    FileTrailer,
    UploadPart,
    UploadPartHeader,
    UploadPartTrailer,
)
from services.common.errors import unavailable
from services.common.grpc.terminal_status import TerminalStatus

# Bytes per message, as each message has a constant cost.
CHUNK = 256 << 10


class _UploadCall(ABC):
    """A client-streaming upload: a header, the content in chunks, a trailer.

    A context manager: it cancels an unfinished call, which then stores nothing.
    """

    def __init__(self, start: Callable[[], Any]) -> None:
        """Create an upload; `start` starts the call with the first message."""
        self._start = start
        self._call: Any = None
        self._buffered: list[bytes] = []
        self._size = 0
        self._ending: TerminalStatus | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._call is not None:
            self._call.cancel()

    @abstractmethod
    def _chunk(self, content: bytes) -> Any:
        """Return the message with a chunk."""

    async def _begin(self, header: Any) -> None:
        """Start the call with the message of its header."""
        self._call = self._start()
        self._ending = TerminalStatus(self._call)
        await self._write(header)

    async def _add(self, piece: bytes) -> None:
        """Add a piece of the content, of at most `CHUNK` bytes."""
        self._buffered.append(piece)
        self._size += len(piece)
        if self._size >= CHUNK:
            await self._flush()

    async def _end(self, trailer: Any) -> Any:
        """Send buffered data and the message of the trailer; return the response."""
        if self._size:
            await self._flush()
        await self._write(trailer)
        try:
            await self._call.done_writing()
            return await self._call
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError) as error:
            raise await self._failure(error) from None

    async def _flush(self) -> None:
        chunk = self._buffered[0] if len(self._buffered) == 1 else b"".join(self._buffered)
        self._buffered.clear()
        self._size = 0
        await self._write(self._chunk(chunk))

    async def _write(self, message: Any) -> None:
        try:
            await self._call.write(message)
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError) as error:
            raise await self._failure(error) from None

    async def _failure(self, error: Exception) -> Exception:
        """Return the service's error that ended the call, or unavailable."""
        try:
            await self._call  # its status may be on the way
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError) as ended:
            error = ended
        if self._ending is not None and self._ending.refusal is not None:
            return self._ending.refusal
        if isinstance(error, grpc.aio.AioRpcError) and (
            error.trailing_metadata() or error.code() != grpc.StatusCode.INTERNAL
        ):
            return error
        # gRPC's own error: the connection broke while sending.
        return unavailable("the connection to the file store was lost during the upload; try again")


class FileUpload(_UploadCall):
    """A CreateFile call."""

    async def add(self, piece: FileHeader | bytes) -> None:
        """Add the file's header, then its content in pieces of at most `CHUNK` bytes.

        Raises:
            grpc.aio.AioRpcError: the service rejects the file; also from `finish`.
            GatewayError: unavailable, the connection to the service is lost; also from `finish`.
        """
        if isinstance(piece, FileHeader):
            await self._begin(CreateFileRequest(header=piece))
        else:
            await self._add(piece)

    async def finish(self, trailer: FileTrailer) -> File:
        """Send buffered data and return the stored file."""
        created: CreateFileResponse = await self._end(CreateFileRequest(trailer=trailer))
        return created.file

    def _chunk(self, content: bytes) -> CreateFileRequest:
        return CreateFileRequest(chunk=content)


class PartUpload(_UploadCall):
    """An AddUploadPart call."""

    async def add(self, piece: UploadPartHeader | bytes) -> None:
        """Add the part's header, then its content in pieces of at most `CHUNK` bytes.

        Raises:
            grpc.aio.AioRpcError: the service rejects the part; also from `finish`.
            GatewayError: unavailable, the connection to the service is lost; also from `finish`.
        """
        if isinstance(piece, UploadPartHeader):
            await self._begin(AddUploadPartRequest(header=piece))
        else:
            await self._add(piece)

    async def finish(self) -> UploadPart:
        """Send buffered data and return the stored part."""
        added: AddUploadPartResponse = await self._end(
            AddUploadPartRequest(trailer=UploadPartTrailer())
        )
        return added.part

    def _chunk(self, content: bytes) -> AddUploadPartRequest:
        return AddUploadPartRequest(chunk=content)

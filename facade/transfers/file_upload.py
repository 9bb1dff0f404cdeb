"""A client-streaming CreateFile call."""

import asyncio
from collections.abc import Callable
from typing import Any, Self

import grpc

from gateway.files.v1.files_pb2 import (
    CreateFileRequest,
    CreateFileResponse,
    File,
    FileHeader,
    FileTrailer,
)
from services.common.errors import unavailable
from services.common.grpc.terminal_status import TerminalStatus

# Bytes per message, as each message has a constant cost.
CHUNK = 256 << 10


class FileUpload:
    """A client-streaming upload: the file's header, its content in chunks, its trailer.

    A context manager: it cancels an unfinished call, which then stores nothing.
    """

    def __init__(self, create_file: Callable[[], Any]) -> None:
        """Create an upload; `create_file` starts the call with the first message."""
        self._create_file = create_file
        self._call: Any = None
        self._buffered: list[bytes] = []
        self._size = 0
        self._ending: TerminalStatus | None = None

    async def add(self, piece: FileHeader | bytes) -> None:
        """Add the file's header, then its content in pieces of at most `CHUNK` bytes.

        Raises:
            grpc.aio.AioRpcError: the service rejects the file; also from `finish`.
            GatewayError: unavailable, the connection to the service is lost; also from `finish`.
        """
        if isinstance(piece, FileHeader):
            self._call = self._create_file()
            self._ending = TerminalStatus(self._call)
            await self._write(CreateFileRequest(header=piece))
            return
        self._buffered.append(piece)
        self._size += len(piece)
        if self._size >= CHUNK:
            await self._flush()

    async def finish(self, trailer: FileTrailer) -> File:
        """Send buffered data and return the stored file."""
        if self._size:
            await self._flush()
        await self._write(CreateFileRequest(trailer=trailer))
        try:
            await self._call.done_writing()
            created: CreateFileResponse = await self._call
        except (asyncio.InvalidStateError, grpc.aio.AioRpcError) as error:
            raise await self._failure(error) from None
        return created.file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._call is not None:
            self._call.cancel()

    async def _flush(self) -> None:
        chunk = self._buffered[0] if len(self._buffered) == 1 else b"".join(self._buffered)
        self._buffered.clear()
        self._size = 0
        await self._write(CreateFileRequest(chunk=chunk))

    async def _write(self, message: CreateFileRequest) -> None:
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

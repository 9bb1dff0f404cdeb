"""The content of a file, or of a part of one: received in messages, and written as a blob."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import AddUploadPartRequest, CreateFileRequest
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.storage.disk import DiskReserve
from services.common.text.mime import HEAD_SIZE
from services.files.blob_store import PIECE, Blobs, Writing

_Message = TypeVar("_Message", CreateFileRequest, AddUploadPartRequest)
_T = TypeVar("_T")


class Bound(NamedTuple):
    """A maximum number of bytes, and a function that returns the error for more."""

    size: int
    error: Callable[[], GatewayError]


class ContentWriter:
    """Writes content in chunks, within bounds.

    Attributes:
        size: number of bytes written.
    """

    def __init__(self, writing: Writing, reserve: DiskReserve, bounds: Sequence[Bound]) -> None:
        self._writing = writing
        self._reserve = reserve
        self._bounds = bounds
        self.size = 0

    async def add_chunk(self, chunk: bytes) -> None:
        """Write the next bytes.

        Raises:
            GatewayError: invalid_request; that of a bound; storage_full; storage_unavailable.
        """
        if not 1 <= len(chunk) <= PIECE:
            raise invalid("chunk", f"chunk: must have 1 to {PIECE} bytes")
        self._reserve.check()
        self.size += len(chunk)
        for bound in self._bounds:
            if self.size > bound.size:
                raise bound.error()
        await self._writing.write(chunk)


class FileWriter(ContentWriter):
    """Writes the content of a whole file.

    Attributes:
        hash: SHA-256 of the bytes written.
        head: the first `HEAD_SIZE` of those bytes.
    """

    def __init__(self, writing: Writing, reserve: DiskReserve, bounds: Sequence[Bound]) -> None:
        super().__init__(writing, reserve, bounds)
        self.hash = hashlib.sha256()
        self.head = bytearray()

    async def add_chunk(self, chunk: bytes) -> None:
        """Write the next bytes; raises as `ContentWriter.add_chunk`."""
        await super().add_chunk(chunk)
        self.hash.update(chunk)
        if len(self.head) < HEAD_SIZE:
            self.head += chunk[: HEAD_SIZE - len(self.head)]


class MessageReader(Generic[_Message]):
    """Reads the messages of a file or of a part in their order.

    Args:
        messages: a header, chunks, and a trailer.
        idle_s: seconds to wait for a message.
    """

    def __init__(self, messages: AsyncIterator[_Message], idle_s: float) -> None:
        self._messages: AsyncIterator[_Message] = messages
        self._idle_s = idle_s

    async def read_header(self) -> _Message:
        """Return the first message, which has the header.

        Raises:
            GatewayError: invalid_request; timeout.
        """
        first = await self._next()
        if first is None or first.WhichOneof("part") != "header":
            raise invalid("header", "header: must be the first message of an upload")
        return first

    async def copy_content(self, writer: ContentWriter) -> _Message:
        """Write the chunks; return the last message, which has the trailer.

        Raises:
            GatewayError: invalid_request; timeout; as `ContentWriter.add_chunk`.
        """
        while (message := await self._next()) is not None:
            match message.WhichOneof("part"):
                case "chunk":
                    await writer.add_chunk(message.chunk)
                case "trailer":
                    return message
                case _:
                    raise invalid(
                        "chunk", "chunk: only chunks are allowed between header and trailer"
                    )
        raise invalid("file", "file: the upload ended before it was complete")

    async def _next(self) -> _Message | None:
        try:
            async with asyncio.timeout(self._idle_s):
                return await anext(self._messages, None)
        except TimeoutError as error:
            raise GatewayError(
                errors_pb2.REASON_TIMEOUT,
                f"file: no data received for {self._idle_s:g} seconds",
                param="file",
            ) from error


def too_large(max_size: int) -> Callable[[], GatewayError]:
    """Return a function that returns the error for a file of more than `max_size` bytes."""
    return lambda: GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"file: must have at most {max_size} bytes",
        param="file",
        limit="limits.max_file_bytes",
    )


def commit_deadline(clock: Clock, orphan_grace_s: float) -> Callable[[], bool]:
    """Return a function that returns whether a row may still be committed for bytes written now.

    It may for half of the sweeper's grace period; the other half is left for the commit.
    """
    written_at = clock.monotonic()
    return lambda: clock.monotonic() - written_at < orphan_grace_s / 2


async def commit(blobs: Blobs, key: str, adding: "asyncio.Future[_T]") -> _T:
    """Return the result of a transaction that adds the row of a blob.

    The blob is deleted if the transaction refuses it. It stays if the row may exist; then the
    sweeper decides later.

    Raises:
        GatewayError: raised by the transaction.
    """
    try:
        # Shielded: after a cancelled commit it would be unknown whether there is a row.
        return await asyncio.shield(adding)
    except BaseException:
        await asyncio.wait([adding])
        error = adding.exception()
        if isinstance(error, GatewayError) and (
            error.reason != errors_pb2.REASON_STORAGE_UNAVAILABLE
        ):
            with suppress(GatewayError):
                await blobs.delete(key)
        raise

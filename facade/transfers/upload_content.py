"""Content of uploads that arrives in the order of the file, in any number of requests.

It is added in parts of a few megabytes, so that a request that is cut off, or a process that is
killed, loses at most the last of them: the client continues from the bytes received.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from facade.bodies import PieceReader
from facade.http_errors import HttpExchangeError
from facade.transfers.file_upload import CHUNK, PartUpload
from gateway.files.v1.files_pb2 import UploadPartHeader

# Bytes of a part; each is a transaction.
_PART: Final = 4 << 20


class Checksum(Protocol):
    """The digest of content that is added as a whole, or not at all."""

    def update(self, data: bytes) -> None:
        """Add the next bytes."""

    def matches(self) -> bool:
        """Return whether the content has the digest."""


async def add_content(
    reader: PieceReader,
    add_part: Callable[[], Any],
    upload_id: str,
    offset: int,
    checksum: Checksum | None = None,
) -> int:
    """Add the body of a request to an upload from a byte on; return the number of bytes after it.

    Args:
        reader: reads the body.
        add_part: starts an AddUploadPart call.
        upload_id: the upload.
        offset: the number of bytes received before.
        checksum: checks the body, which is then a single part.

    Raises:
        grpc.aio.AioRpcError: the service rejects a part.
        GatewayError: 460, the digest differs; as `PieceReader.next` and `PartUpload.add`.
    """
    while data := await reader.next(CHUNK):
        size = 0
        with PartUpload(add_part) as call:
            await call.add(UploadPartHeader(upload_id=upload_id, offset=offset))
            while data:
                if checksum is not None:
                    checksum.update(data)
                await call.add(data)
                size += len(data)
                if size >= _PART and checksum is None:
                    break
                data = await reader.next(CHUNK)
            if checksum is not None and not checksum.matches():
                raise HttpExchangeError(
                    460, "checksum_mismatch", "Upload-Checksum: the content has another digest"
                )
            await call.finish()
        offset += size
    return offset

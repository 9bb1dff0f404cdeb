"""Reads the text of files of the file store, for the user who added them to a vector store."""

from collections.abc import Callable
from io import BytesIO
from typing import Any, Final

import grpc
from sqlalchemy import Row

from gateway.errors.v1 import errors_pb2
from gateway.files.v1 import files_pb2_grpc
from gateway.files.v1.files_pb2 import File, GetFileRequest, ReadFileRequest
from services.common.errors import GatewayError, from_rpc_error, invalid, unsupported
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import Metadata
from services.common.process.byte_budget import ByteBudget, Charge
from services.media.conversion.limits import MAX_TEXT
from services.media.conversion.parts import Ocr, Source
from services.media.conversion.pool import ConversionPool, PooledConverter

# Bytes charged for each byte of a file: the content, and its copy for the process that converts it.
_COST: Final = 3
# Beginnings of documents that are not plain text, whatever their type says.
_DOCUMENTS: Final = (b"%PDF-", b"PK\x03\x04")
_HTML: Final = "text/html"
_TEXT: Final = "text/"
_NO_TEXT: Final = ("image", "audio", "video")


class FileTexts:
    """Reads the text of files.

    Args:
        channel: leads to the file store.
        key_of: returns the key of calls for a user, by the id of the user's key.
        pool: converts documents in processes of their own.
        budget: limits the bytes that the process holds.
        max_bytes: maximum size of a file.
        max_pages: maximum number of pages that are read.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        key_of: Callable[[str], str],
        pool: ConversionPool,
        budget: ByteBudget,
        max_bytes: int,
        max_pages: int,
    ) -> None:
        self._stub = files_pb2_grpc.FileStoreServiceStub(channel)
        self._key_of = key_of
        self._pool = pool
        self._budget = budget
        self._max_bytes = max_bytes
        self._max_pages = max_pages

    async def describe(self, file_id: str, metadata: Metadata) -> File:
        """Return the description of a file of the caller.

        Raises:
            GatewayError: not_found; storage_unavailable.
        """
        try:
            answer = await self._stub.GetFile(GetFileRequest(id=file_id), metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        return answer.file

    async def text(self, added: Row[Any]) -> str:
        """Return the text of a file that was added to a vector store.

        Raises:
            GatewayError: not_found; invalid, the file is too large, or cannot be converted;
                unsupported, it has no text; those of the file store, and of the budget.
        """
        metadata = call_metadata(self._key_of(added.key_id), "")
        file = await self.describe(added.file_id, metadata)
        if file.size_bytes > self._max_bytes:
            raise invalid(
                "", f"the file has more than {self._max_bytes:,} bytes, the maximum of a file"
            )
        if file.mime_type.partition("/")[0] in _NO_TEXT:
            raise unsupported("", f"files of the type {file.mime_type} have no text to index")
        with Charge(self._budget, added.user_id) as charge:
            await charge.acquire(_COST * file.size_bytes)
            content = await self._read(file, metadata)
            return await self._text(added.user_id, file, content)

    async def _read(self, file: File, metadata: Metadata) -> bytes:
        content = BytesIO()
        call = self._stub.ReadFile(ReadFileRequest(id=file.id), metadata=metadata)
        try:
            async for part in call:
                content.write(part.chunk)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        finally:
            call.cancel()
        return content.getvalue()

    async def _text(self, user_id: str, file: File, content: bytes) -> str:
        is_plain = file.mime_type.startswith(_TEXT) and file.mime_type != _HTML
        if is_plain and not content.startswith(_DOCUMENTS) and len(content) <= MAX_TEXT:
            try:
                return content.decode("utf-8-sig")
            except UnicodeDecodeError:
                pass  # in another encoding, which the conversion detects
        converter = PooledConverter(self._pool, lambda: user_id)
        source = Source(content, file.mime_type, file.filename)
        if file.mime_type == _HTML:
            page = await converter.web_page(source, url="")
            return "\n\n".join(filter(None, (page.title, page.text)))
        pages = await converter.pages_as_text(source, max_pages=self._max_pages, ocr=Ocr.AUTO)
        return "\n\n".join(page.text for page in pages)


def failure_of(error: GatewayError) -> str:
    """Return OpenAI's code for a file whose text cannot be read; "" if a retry may succeed."""
    match error.reason:
        case errors_pb2.REASON_UNSUPPORTED:
            return "unsupported_file"
        case (
            errors_pb2.REASON_INVALID_REQUEST
            | errors_pb2.REASON_NOT_FOUND
            | errors_pb2.REASON_TOO_LARGE
            | errors_pb2.REASON_STORAGE_QUOTA_EXCEEDED
        ):
            return "invalid_file"
    return ""

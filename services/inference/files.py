"""Replace the ids of stored files in a request by their content.

Files are sent to providers by value: the ids belong to the gateway. The kind of a file (image,
document, recording) follows from its own type. A text file is a document, or a text block for
targets that do not read documents.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable
from typing import TypeVar

import grpc

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, MediaKind
from gateway.errors.v1 import errors_pb2
from gateway.files.v1 import files_pb2, files_pb2_grpc
from gateway.files.v1.files_pb2 import File
from gateway.inference.v1.inference_pb2 import Multimodal
from services.common.errors import GatewayError, from_rpc_error
from services.common.grpc.authentication import call_metadata, caller_key
from services.common.grpc.channels import Metadata
from services.common.process import logs
from services.common.process.byte_budget import Charge
from services.inference.adaptation.media_types import utf8
from services.inference.adaptation.rules import adapts
from services.inference.media import MediaRef
from services.inference.providers.base import Target
from services.inference.stored_files import (
    CONTENT_COST,
    Files,
    StoredFiles,
    is_file_id,
    read_whole,
)

T = TypeVar("T")
_AT_ONCE = 4
_KINDS: dict[str, MediaKind.ValueType] = {
    "image": conversation_pb2.MEDIA_KIND_IMAGE,
    "audio": conversation_pb2.MEDIA_KIND_AUDIO,
    "video": conversation_pb2.MEDIA_KIND_VIDEO,
}


class FileStoreReader:
    """Reads files from the FileStoreService, with the caller's own key; see `Files`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = files_pb2_grpc.FileStoreServiceStub(channel)

    async def find(self, file_id: str) -> File:
        """Return the description of a file."""
        try:
            response = await self._stub.GetFile(
                files_pb2.GetFileRequest(id=file_id), metadata=_metadata()
            )
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        return response.file

    async def pieces(self, file_id: str) -> AsyncGenerator[bytes, None]:
        """Yield the content of a file."""
        call = self._stub.ReadFile(files_pb2.ReadFileRequest(id=file_id), metadata=_metadata())
        try:
            async for part in call:
                if part.chunk:
                    yield part.chunk
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        finally:
            call.cancel()


async def place_files(
    media_refs: Iterable[MediaRef],
    files: Files,
    charge: Charge,
    *,
    at_most: int,
    keep_foreign: bool,
    stored: StoredFiles | None = None,
) -> None:
    """Replace the file ids in a request by the files' content, or describe the files.

    Args:
        media_refs: the request's media.
        files: the file store.
        charge: the bytes that the request holds; those of loaded files are added.
        at_most: maximum total size in bytes.
        keep_foreign: whether to keep ids that are not the gateway's.
        stored: receives the files that are loaded when they are needed, which is all but text
            files; their media keep the ids. All files are loaded if None.

    Raises:
        GatewayError: not_found, too_large or storage_unavailable, with the path of the part; as
            `Charge.acquire`.
    """
    named: dict[str, list[MediaRef]] = {}
    for one in media_refs:
        file_id = one.block.media.file_id
        if file_id and (not keep_foreign or is_file_id(file_id)):
            named.setdefault(file_id, []).append(one)
    if not named:
        return
    turns = asyncio.Semaphore(_AT_ONCE)
    left = at_most

    async def place(file_id: str, places: list[MediaRef]) -> None:
        nonlocal left
        path = places[0].path
        async with turns:
            file = await _at(path, files.find(file_id))
            left -= file.size_bytes * len(places)
            if left < 0:
                raise _too_much(at_most, path)
            for one in places:
                _describe(one.block, file)
            if stored is not None and file.size_bytes and not file.mime_type.startswith("text/"):
                stored.add(file)
                return
            await charge.acquire(CONTENT_COST * file.size_bytes * len(places))
            content = await _at(path, read_whole(files, file))
            for one in places:
                one.block.media.data = content

    try:
        async with asyncio.TaskGroup() as group:
            for file_id, places in named.items():
                group.create_task(place(file_id, places))
    except* GatewayError as failures:
        first = failures.exceptions[0]
        assert isinstance(first, GatewayError)
        failure = first
    else:
        return
    raise failure


def texts_as_blocks(
    media_refs: Iterable[MediaRef], target: Target, multimodal: Multimodal
) -> tuple[list[MediaRef], list[str]]:
    """Turn text files into text blocks, unless the target is known to read documents.

    Args:
        media_refs: the media.
        target: the model.
        multimodal: decides whether texts that are not UTF-8 are converted later; otherwise they are
            decoded as Windows-1252, which never fails.

    Returns:
        The remaining media, and the paths of the converted ones.
    """
    if conversation_pb2.MEDIA_KIND_DOCUMENT in (target.inputs or ()):
        return list(media_refs), []
    others: list[MediaRef] = []
    paths: list[str] = []
    for one in media_refs:
        media = one.block.media
        text: str | None = None
        if media.mime_type.startswith("text/") and media.HasField("data"):
            text = utf8(media.data)
            if text is None and not adapts(multimodal, media.kind):
                text = media.data.decode("cp1252", "replace")
        if text is None:
            others.append(one)
            continue
        one.block.text = f"[{media.name}]\n{text}" if media.name else text
        paths.append(one.path)
    return others, paths


def _describe(block: Block, file: File) -> None:
    media = block.media
    media.kind = _KINDS.get(file.mime_type.partition("/")[0], conversation_pb2.MEDIA_KIND_DOCUMENT)
    media.mime_type = file.mime_type
    media.name = media.name or file.filename


async def _at(path: str, reading: Awaitable[T]) -> T:
    """Return what is read of a file; an error gets the path of the part."""
    try:
        return await reading
    except GatewayError as error:
        raise GatewayError(
            error.reason,
            f"{path}: {error.message}",
            param=path,
            retry_after_s=error.retry_after_s,
            limit=error.limit,
        ) from None


def _too_much(at_most: int, path: str) -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"{path}: the files of one request can have at most {at_most:,} bytes in total",
        param=path,
    )


def _metadata() -> Metadata:
    return call_metadata(caller_key.get(), logs.request_id.get())

"""Replace the ids of stored files in a request by their content.

Files are sent to providers by value: the ids belong to the gateway. The kind of a file (image,
document, recording) follows from its own type. A text file is a document, or a text block for
targets that do not read documents.
"""

import asyncio
import re
from collections.abc import Iterable
from typing import Protocol

import grpc

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, MediaKind
from gateway.errors.v1 import errors_pb2
from gateway.files.v1 import files_pb2, files_pb2_grpc
from gateway.files.v1.files_pb2 import File
from gateway.inference.v1.inference_pb2 import Multimodal
from services.common import logs
from services.common.authentication import caller_key
from services.common.channels import call_metadata
from services.common.errors import GatewayError, from_rpc_error
from services.inference.adaptation.media_types import utf8
from services.inference.adaptation.rules import adapts
from services.inference.media import MediaRef
from services.inference.providers.base import Target

_FILE_ID = re.compile(r"file-[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
_AT_ONCE = 4
_KINDS: dict[str, MediaKind.ValueType] = {
    "image": conversation_pb2.MEDIA_KIND_IMAGE,
    "audio": conversation_pb2.MEDIA_KIND_AUDIO,
    "video": conversation_pb2.MEDIA_KIND_VIDEO,
}


class Files(Protocol):
    """Reads files of the current task's caller."""

    async def read(self, file_id: str, at_most: int) -> tuple[File, bytes]:
        """Return a file and its content.

        Raises:
            GatewayError: not_found; too_large, if it has more than `at_most` bytes.
        """
        ...


class FileStore:
    """Reads files from the FileStoreService, with the caller's own key."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = files_pb2_grpc.FileStoreServiceStub(channel)

    async def read(self, file_id: str, at_most: int) -> tuple[File, bytes]:
        """Return a file and its content; see `Files`."""
        call = self._stub.ReadFile(
            files_pb2.ReadFileRequest(id=file_id),
            metadata=call_metadata(caller_key.get(), logs.request_id.get()),
        )
        content = bytearray()
        file = File()
        try:
            async for part in call:
                if part.HasField("opening"):
                    file = part.opening.file
                    if file.size_bytes > at_most:
                        raise _too_much(at_most)
                content += part.chunk
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None
        finally:
            call.cancel()
        return file, bytes(content)


async def place_files(
    found: Iterable[MediaRef], files: Files, *, at_most: int, keep_foreign: bool
) -> None:
    """Replace the file ids in a request by the files' content.

    Args:
        found: the request's media.
        files: the file store.
        at_most: maximum total size in bytes.
        keep_foreign: whether to keep ids that are not the gateway's.

    Raises:
        GatewayError: not_found, too_large or storage_unavailable, with the path of the part.
    """
    named: dict[str, list[MediaRef]] = {}
    for one in found:
        file_id = one.block.media.file_id
        if file_id and (not keep_foreign or _FILE_ID.fullmatch(file_id)):
            named.setdefault(file_id, []).append(one)
    if not named:
        return
    turns = asyncio.Semaphore(_AT_ONCE)
    left = at_most

    async def place(file_id: str, places: list[MediaRef]) -> None:
        nonlocal left
        async with turns:
            try:
                file, content = await files.read(file_id, left)
                left -= len(content) * len(places)
                if left < 0:
                    raise _too_much(at_most)
            except GatewayError as error:
                raise _at(places[0].path, error) from None
        for one in places:
            _put(one.block, file, content)

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
    found: Iterable[MediaRef], target: Target, multimodal: Multimodal
) -> tuple[list[MediaRef], list[str]]:
    """Turn text files into text blocks, unless the target is known to read documents.

    Args:
        found: the media.
        target: the model.
        multimodal: decides whether texts that are not UTF-8 are converted later; otherwise they are
            decoded as Windows-1252, which never fails.

    Returns:
        The remaining media, and the paths of the converted ones.
    """
    if conversation_pb2.MEDIA_KIND_DOCUMENT in (target.inputs or ()):
        return list(found), []
    rest: list[MediaRef] = []
    paths: list[str] = []
    for one in found:
        media = one.block.media
        text: str | None = None
        if media.mime_type.startswith("text/") and media.HasField("data"):
            text = utf8(media.data)
            if text is None and not adapts(multimodal, media.kind):
                text = media.data.decode("cp1252", "replace")
        if text is None:
            rest.append(one)
            continue
        one.block.text = f"[{media.name}]\n{text}" if media.name else text
        paths.append(one.path)
    return rest, paths


def _put(block: Block, file: File, content: bytes) -> None:
    media = block.media
    media.kind = _KINDS.get(file.mime_type.partition("/")[0], conversation_pb2.MEDIA_KIND_DOCUMENT)
    media.data = content
    media.mime_type = file.mime_type
    media.name = media.name or file.filename


def _at(path: str, error: GatewayError) -> GatewayError:
    return GatewayError(
        error.reason,
        f"{path}: {error.message}",
        param=path,
        retry_after_s=error.retry_after_s,
    )


def _too_much(at_most: int) -> GatewayError:
    return GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"the files of one request can have at most {at_most:,} bytes in total",
    )

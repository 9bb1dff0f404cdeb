"""Files of the file store that a request names, read only when their content is needed.

A file that is sent to a provider unchanged is read while it is sent. The provider's adapter writes
the body of the request with a token in place of the content, as base64 text; the token is replaced
by the content, piece by piece. Whatever else needs the content loads all of it.
"""

import binascii
import re
import secrets
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing, closing
from io import BytesIO
from typing import Any, Final, Protocol, TypeVar

from gateway.conversation.v1.conversation_pb2 import Block, Media
from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import File
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError
from services.common.process.byte_budget import Charge

# Bytes charged for each byte of content that is loaded: the content, its copy in the request, and
# its base64 text in the body that is sent.
CONTENT_COST: Final = 4
# Bytes charged while a request is sent with files that are read meanwhile: pieces that the store
# has read, that are on their way, and that the connection has not sent yet.
WINDOW: Final = 4 << 20
_FILE_ID = re.compile(r"file-[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
# A token is a secret that no caller can send, and the index of a file. Multiples of three bytes,
# so that the base64 text of one begins with that of the other.
_SECRET: Final = 18
_INDEX: Final = 3
_INDEX_TEXT: Final = _INDEX // 3 * 4
# Bytes of a piece that is sent; a multiple of three.
_PIECE: Final = 192 << 10


Answer = TypeVar("Answer")


class Files(Protocol):
    """Reads files of the current task's caller."""

    async def find(self, file_id: str) -> File:
        """Return the description of a file.

        Raises:
            GatewayError: not_found; storage_unavailable.
        """
        ...

    def pieces(self, file_id: str) -> AsyncGenerator[bytes, None]:
        """Yield the content of a file.

        Raises:
            GatewayError: not_found; storage_unavailable.
        """
        ...


def is_file_id(text: str) -> bool:
    """Return whether a text has the form of the ids of the file store."""
    return _FILE_ID.fullmatch(text) is not None


def is_stored(media: Media) -> bool:
    """Return whether the content of a medium is in the file store."""
    return media.HasField("file_id") and is_file_id(media.file_id)


async def read_whole(files: Files, file: File) -> bytes:
    """Return the content of a file.

    Raises:
        GatewayError: as `Files.pieces`.
    """
    # Joining pieces would need twice the memory.
    content = BytesIO()
    async with aclosing(files.pieces(file.id)) as pieces:
        async for piece in pieces:
            content.write(piece)
    return content.getvalue()


class StoredFiles:
    """The files of one request whose content stays in the store until it is needed.

    Args:
        files: reads the files.
        charge: the bytes that the request holds.
    """

    def __init__(self, files: Files, charge: Charge) -> None:
        self._files = files
        self._charge = charge
        self._secret = b""
        self._by_id: dict[str, File] = {}
        self._indexes: dict[str, int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no file has been added."""
        return not self._by_id

    def add(self, file: File) -> None:
        """Add a file."""
        if not self._secret:
            self._secret = secrets.token_bytes(_SECRET)
        self._indexes.setdefault(file.id, len(self._indexes))
        self._by_id[file.id] = file

    async def load(self, file_id: str) -> bytes:
        """Return the content of a file that has been added.

        Raises:
            GatewayError: as `Charge.acquire` and `Files.pieces`.
        """
        file = self._by_id[file_id]
        await self._charge.acquire(CONTENT_COST * file.size_bytes)
        return await read_whole(self._files, file)

    def with_tokens(self, request: GenerateRequest) -> GenerateRequest:
        """Return a request for a provider's adapter, with tokens in place of stored content.

        A request without any is returned unchanged, else a copy.
        """
        if not any(is_stored(media) for media in _media(request)):
            return request
        copy = GenerateRequest()
        copy.CopyFrom(request)
        for media in _media(copy):
            if is_stored(media):
                index = self._indexes[media.file_id]
                media.data = self._secret + index.to_bytes(_INDEX, "big")
        return copy

    def body(self, written: bytes) -> "bytes | StoredFilesBody":
        """Return the body to send for one that an adapter has written with tokens."""
        first, *others = written.split(_base64(self._secret))
        if not others:
            return written
        files = list(self._by_id.values())
        by_index = [files[_index_of(other)] for other in others]
        texts = [first, *(other[_INDEX_TEXT:] for other in others)]
        return StoredFilesBody(texts, by_index, self._files.pieces, self._charge)


class StoredFilesBody:
    """The body of a request to a provider, with files that are read while it is sent.

    Attributes:
        size: its bytes.
    """

    def __init__(
        self,
        texts: list[bytes],
        files: list[File],
        pieces: Callable[[str], AsyncGenerator[bytes, None]],
        charge: Charge,
    ) -> None:
        """Create a body.

        Args:
            texts: the text before, between and after the files.
            files: the files.
            pieces: yields the content of a file by its id.
            charge: the bytes that the request holds.
        """
        self.size = sum(map(len, texts)) + sum(-(-file.size_bytes // 3) * 4 for file in files)
        self._texts = texts
        self._files = files
        self._pieces = pieces
        self._charge = charge
        self._held = 0

    async def admitted(self, sending: Coroutine[Any, Any, Answer]) -> Answer:
        """Wait for room for the pieces, which are held until the last is sent; send the request.

        Return what `sending` returns.

        Raises:
            GatewayError: as `Charge.acquire`.
        """
        with closing(sending):
            await self._charge.acquire(WINDOW)
            self._held = WINDOW
            try:
                return await sending
            finally:
                self._release()

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in pieces, each read when it is asked for.

        Raises:
            GatewayError: not_found, a file was deleted meanwhile; storage_unavailable.
        """
        for text, file in zip(self._texts, self._files, strict=False):
            for start in range(0, len(text), _PIECE):
                yield text[start : start + _PIECE]
            async with aclosing(self._base64_of(file)) as pieces:
                async for piece in pieces:
                    yield piece
        yield self._texts[-1]
        self._release()

    def _release(self) -> None:
        self._charge.release(self._held)
        self._held = 0

    async def _base64_of(self, file: File) -> AsyncGenerator[bytes, None]:
        """Yield the content of a file as base64 text."""
        left = b""
        size = 0
        async with aclosing(self._pieces(file.id)) as pieces:
            async for piece in pieces:
                size += len(piece)
                content = left + piece if left else piece
                end = len(content) // 3 * 3
                for start in range(0, end, _PIECE):
                    yield _base64(content[start : min(start + _PIECE, end)])
                left = content[end:]
        if size != file.size_bytes:
            raise GatewayError(
                errors_pb2.REASON_STORAGE_UNAVAILABLE, f"the file {file.id} is incomplete"
            )
        yield _base64(left)


def _base64(content: bytes) -> bytes:
    return binascii.b2a_base64(content, newline=False)


def _index_of(text: bytes) -> int:
    """Return the index of the file whose token's text continues with `text`."""
    return int.from_bytes(binascii.a2b_base64(text[:_INDEX_TEXT]), "big")


def _media(request: GenerateRequest) -> Iterator[Media]:
    """Yield the media of a request, including those in tool results."""
    for message in request.messages:
        for block in message.blocks:
            yield from _media_of(block)


def _media_of(block: Block) -> Iterator[Media]:
    if block.HasField("media"):
        yield block.media
    elif block.HasField("tool_result"):
        for part in block.tool_result.blocks:
            if part.HasField("media"):
                yield part.media

"""Pictures of image blocks, and their bytes."""

import base64
import binascii
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from gateway.articles.v1.articles_pb2 import ImageOpening, ReadImageResponse
from services.articles.errors import BLOCK, IMAGE, SCHEMA, failure
from services.articles.files import FileAccess
from services.articles.tree.document import Document
from services.articles.tree.nodes import Element

Picture = Mapping[str, Any]

_DATA = "data:"
# The type of a data URL without one (RFC 2397).
_DEFAULT_TYPE = "text/plain"


def picture_at(document: Document, block_id: str, index: int) -> Picture:
    """Return a picture of an image block.

    Raises:
        GatewayError: 40403, no such block; 40003, it is no image; 40407, no such picture.
    """
    block = document.element(block_id)
    if block is None:
        raise failure(BLOCK, "/blockId", "no block with this id in the document")
    if block.type != "image":
        raise failure(SCHEMA, "/blockId", f"must be a block of type image, not {block.type}")
    pictures = _pictures(block)
    if index >= len(pictures):
        raise failure(IMAGE, "/index", f"the block has {len(pictures)} pictures, from index 0")
    return pictures[index]


async def read_picture(picture: Picture, files: FileAccess) -> AsyncIterator[ReadImageResponse]:
    """Yield the description of a picture, then its bytes.

    Raises:
        GatewayError: 40003, it is at a URL; 40407, its file no longer exists;
            storage_unavailable, unavailable.
    """
    if "fileId" not in picture:
        for message in _inline(picture["url"]):
            yield message
        return
    async for part in files.read(picture["fileId"]):
        if part.HasField("opening"):
            file = part.opening.file
            yield ReadImageResponse(
                opening=ImageOpening(
                    mime_type=file.mime_type, size_bytes=file.size_bytes, filename=file.filename
                )
            )
        else:
            yield ReadImageResponse(chunk=part.chunk)


def _inline(url: str) -> Iterator[ReadImageResponse]:
    if not url[: len(_DATA)].lower() == _DATA:
        raise failure(SCHEMA, "/index", f"this picture is not stored here; it is at {url}")
    described, _, content = url[len(_DATA) :].partition(",")
    mime_type, *parameters = described.split(";")
    data = unquote_to_bytes(content)
    if "base64" in parameters:
        try:
            data = base64.b64decode(data)
        except binascii.Error:
            raise failure(IMAGE, "/index", "the data URL of this picture is damaged") from None
    yield ReadImageResponse(
        opening=ImageOpening(mime_type=mime_type or _DEFAULT_TYPE, size_bytes=len(data))
    )
    if data:
        yield ReadImageResponse(chunk=data)


def _pictures(block: Element) -> Sequence[Picture]:
    pictures: Any = block.content["image"]
    return pictures or ()

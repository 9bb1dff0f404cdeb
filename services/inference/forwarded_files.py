"""Replace the ids of stored files in the JSON of an edit of images by their content."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from gateway.conversation.v1.conversation_pb2 import MEDIA_KIND_IMAGE, Block, Media
from gateway.inference.v1.inference_pb2 import ForwardRequest
from services.common.errors import invalid
from services.common.process.byte_budget import Charge
from services.inference.files import place_files
from services.inference.media import MediaRef
from services.inference.offload import offload
from services.inference.stored_files import Files, is_file_id

# In every id of the file store.
_MARK: Final = b'"file-'


async def place_images(
    request: ForwardRequest, files: Files, charge: Charge, max_bytes: int
) -> ForwardRequest:
    """Return a request with the stored images that it names by `file_id` as data URLs.

    Ids of other forms stay: they name files at the provider.

    Args:
        request: the request, which is not changed.
        files: reads the files of the caller.
        charge: the bytes that the request holds.
        max_bytes: maximum bytes of all images together.

    Raises:
        GatewayError: invalid, a file is no image; as `place_files`.
    """
    if request.operation != ForwardRequest.OPERATION_IMAGE_EDIT or _MARK not in request.json:
        return request
    try:
        body = orjson.loads(request.json)
    except orjson.JSONDecodeError:
        return request
    images = list(_stored_images(body))
    if not images:
        return request
    media_refs = [
        MediaRef(f"{path}.file_id", Block(media=Media(file_id=image["file_id"])))
        for path, image in images
    ]
    await place_files(media_refs, files, charge, at_most=max_bytes, keep_foreign=True)
    for one in media_refs:
        if one.block.media.kind != MEDIA_KIND_IMAGE:
            raise invalid(one.path, f"{one.path}: must be the id of an image")
    placed = ForwardRequest()
    placed.CopyFrom(request)
    placed.json = await offload(_with_images, body, images, media_refs)
    return placed


def _stored_images(body: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path and the object of each image that is a file of the file store."""
    if not isinstance(body, dict):
        return
    images = body.get("images")
    named = [("mask", body.get("mask"))]
    if isinstance(images, list):
        named += [(f"images[{index}]", image) for index, image in enumerate(images)]
    for path, image in named:
        if isinstance(image, dict):
            file_id = image.get("file_id")
            if isinstance(file_id, str) and is_file_id(file_id):
                yield path, image


def _with_images(
    body: Any, images: Sequence[tuple[str, dict[str, Any]]], media_refs: Sequence[MediaRef]
) -> bytes:
    for (_, image), one in zip(images, media_refs, strict=True):
        media = one.block.media
        del image["file_id"]
        content = base64.b64encode(media.data).decode()
        image["image_url"] = f"data:{media.mime_type};base64,{content}"
    return orjson.dumps(body)

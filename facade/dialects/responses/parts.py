"""Translate content parts of items into canonical blocks."""

from collections.abc import Iterable
from typing import Any

from facade.dialects.cache_marks import BREAKPOINT, mark_of
from facade.dialects.openai.media import file_in, image_at, is_address, read_audio
from facade.dialects.responses.item_types import ContentPart
from facade.dialects.responses.unknown_fields import keep_unknown_fields
from facade.dialects.validation import to_opaque
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media
from services.common.errors import invalid

# Some clients write `text` for both.
_TEXTS = frozenset({"input_text", "output_text", "text"})
_MEDIA = frozenset({"input_image", "input_file", "input_audio"})
_KNOWN = {
    **dict.fromkeys(_TEXTS, frozenset({"type", "text"})),
    "refusal": frozenset({"type", "refusal"}),
    "input_image": frozenset({"type", "image_url", "file_id", "detail"}),
    "input_file": frozenset({"type", "file_id", "file_data", "file_url", "filename"}),
    "input_audio": frozenset({"type", "input_audio"}),
}
# Fields of answers, which are dropped if they are sent back empty.
_OF_ANSWERS = ("annotations", "logprobs")


def blocks_of(
    content: Iterable[ContentPart], path: str, *, assistant: bool
) -> list[tuple[int, Block]]:
    """Return the blocks of content parts, each with the index of its part.

    Empty texts are dropped.

    Args:
        content: the parts.
        path: path of their array.
        assistant: whether they are the assistant's, which may have refusals, and no media.

    Raises:
        GatewayError: invalid, naming the field.
    """
    blocks = []
    for index, part in enumerate(content):
        block = _block(part, f"{path}[{index}]", assistant=assistant)
        if block is not None:
            blocks.append((index, block))
    return blocks


def _block(part: ContentPart, path: str, *, assistant: bool) -> Block | None:
    kind = part["type"]
    known_fields = _KNOWN.get(kind)
    if known_fields is None:
        return Block(opaque=to_opaque(conversation.DIALECT_RESPONSES, part, path))
    if (kind in _MEDIA) if assistant else kind == "refusal":
        who = (
            "not allowed in assistant messages"
            if assistant
            else "allowed only in assistant messages"
        )
        raise invalid(f"{path}.type", f"{path}.type: {kind} is {who}")
    if kind in _TEXTS:
        text = _required(part, "text", path)
        if not text:
            return None
        block = Block(text=text)
    elif kind == "refusal":
        refusal = _required(part, "refusal", path)
        if not refusal:
            return None
        block = Block(refusal=refusal)
    else:
        block = Block(media=_medium(part, path))
    if not part.keys() <= known_fields:
        unknown_fields = {
            name: value
            for name, value in part.items()
            if value is not None and not (name in _OF_ANSWERS and not value)
        }
        keep_unknown_fields(block, unknown_fields, known_fields, path, (BREAKPOINT,))
        block.cache_control = mark_of(part.get(BREAKPOINT))
    return block


def _required(part: ContentPart, field: str, path: str) -> Any:
    value = part.get(field)
    if value is None:
        where = f"{path}.{field}"
        raise invalid(where, f"{where}: is required if type is {part['type']}")
    return value


def _medium(part: ContentPart, path: str) -> Media:
    match part["type"]:
        case "input_image":
            return _image(part, path)
        case "input_file":
            return _file(part, path)
    return read_audio(_required(part, "input_audio", path), f"{path}.input_audio")


def _image(part: ContentPart, path: str) -> Media:
    url, file_id = part.get("image_url"), part.get("file_id")
    if url and not file_id:
        return image_at(url, part.get("detail"), f"{path}.image_url")
    if file_id and not url:
        return Media(
            kind=conversation.MEDIA_KIND_IMAGE, file_id=file_id, detail=part.get("detail") or ""
        )
    raise invalid(path, f"{path}: must have either image_url or file_id")


def _file(part: ContentPart, path: str) -> Media:
    file_id, content, url = part.get("file_id"), part.get("file_data"), part.get("file_url")
    name = part.get("filename") or ""
    if sum(map(bool, (file_id, content, url))) != 1:
        raise invalid(path, f"{path}: must have exactly one of file_id, file_data and file_url")
    if content:
        return file_in(content, name, f"{path}.file_data")
    kind = conversation.MEDIA_KIND_DOCUMENT
    if file_id:
        return Media(kind=kind, file_id=file_id, name=name)
    if url is None or not is_address(url):
        raise invalid(f"{path}.file_url", f"{path}.file_url: must be an http(s) URL")
    return Media(kind=kind, url=url, name=name)

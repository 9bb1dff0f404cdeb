"""JSON of the messages of a turn.

The format is the same for all dialects in which messages were sent: a role, and a list of parts.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Media, MediaKind, Message, Role

_ROLES: Mapping[Role.ValueType, str] = {
    conversation_pb2.ROLE_USER: "user",
    conversation_pb2.ROLE_ASSISTANT: "assistant",
}
_MEDIA: Mapping[MediaKind.ValueType, str] = {
    conversation_pb2.MEDIA_KIND_IMAGE: "image",
    conversation_pb2.MEDIA_KIND_DOCUMENT: "document",
    conversation_pb2.MEDIA_KIND_AUDIO: "audio",
    conversation_pb2.MEDIA_KIND_VIDEO: "video",
}


def message_object(message: Message) -> dict[str, Any]:
    """Return the JSON object of a message: `role`, `content` and, if there is one, `name`."""
    written: dict[str, Any] = {"role": _ROLES[message.role], "content": _parts(message.blocks)}
    if message.name:
        written["name"] = message.name
    return written


def _parts(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    return [_part(block) for block in blocks]


def _part(block: Block) -> dict[str, Any]:
    match block.WhichOneof("kind"):
        case "text":
            return {"type": "text", "text": block.text}
        case "refusal":
            return {"type": "refusal", "refusal": block.refusal}
        case "media":
            return _medium(block.media)
        case "tool_use":
            call = block.tool_use
            return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
        case "tool_result":
            result = block.tool_result
            return {
                "type": "tool_result",
                "tool_use_id": result.tool_use_id,
                "content": _parts(result.blocks),
                "is_error": result.is_error,
            }
    return {"type": "other", "value": orjson.Fragment(block.opaque.json or b"null")}


def _medium(media: Media) -> dict[str, Any]:
    """Return the JSON object of a medium: its type, and its `sha256`, `url` or `file_id`."""
    written: dict[str, Any] = {"type": _MEDIA[media.kind]}
    if media.sha256:
        written["sha256"] = media.sha256.hex()
    for name in ("url", "file_id", "mime_type", "name", "description"):
        if value := getattr(media, name):
            written[name] = value
    return written

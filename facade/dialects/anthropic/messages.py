"""Translate conversations: Anthropic's messages and blocks to canonical ones.

Consecutive messages of one role are merged. Empty text is dropped, and so are messages that become
empty. Blocks and fields without a canonical name are kept as JSON.
"""

import binascii
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from facade.dialects.anthropic import block_types
from facade.dialects.anthropic.compaction import after_summary, summary_place
from facade.dialects.anthropic.web_results import set_result, without_own_citations
from facade.dialects.google_code import from_block
from facade.dialects.paths import SYSTEM, SourceMap
from facade.dialects.validation import to_json, to_opaque
from gateway.conversation.v1 import conversation_pb2 as pb
from services.common.errors import invalid
from services.common.ids import SERVER_CALL

# Start of the billing line that Claude Code puts first in its system prompt.
_BILLING = "x-anthropic-billing-header"

# Protobuf's types of repeated messages and blocks.
MessageList = RepeatedCompositeFieldContainer[pb.Message]
BlockList = RepeatedCompositeFieldContainer[pb.Block]

_ROLES = {
    "user": pb.ROLE_USER,
    "assistant": pb.ROLE_ASSISTANT,
    "system": pb.ROLE_SYSTEM,
}
_MESSAGE = frozenset({"role", "content"})
# Types of the blocks of system messages: texts, and changes of the tools.
_IN_SYSTEM = ("text", "tool_addition", "tool_removal")
# The only role that may contain each type of block.
_BELONGS_TO = {
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_use": "assistant",
    "tool_result": "user",
}
_SOURCES = {
    "image": ("base64", "url", "file"),
    "document": ("base64", "url", "file", "text"),
}
_KINDS: dict[str, pb.MediaKind.ValueType] = {
    "image": pb.MEDIA_KIND_IMAGE,
    "audio": pb.MEDIA_KIND_AUDIO,
    "video": pb.MEDIA_KIND_VIDEO,
}


class _Place(NamedTuple):
    """The position of a message in the caller's body and in the canonical request."""

    path: str  # of the messages, or of the system prompt
    given: int  # index among the caller's messages
    number: int  # index in the canonical request
    role: str
    source_map: SourceMap

    def of_block(self, position: int) -> str:
        """Return the path of a block."""
        if self.given == SYSTEM:
            return f"{self.path}[{position}]"
        return f"{self.path}[{self.given}].content[{position}]"

    def add_mapping(self, block: int, position: int) -> None:
        """Store the position of a block and of those after it; see `SourceMap.add_mapping`."""
        self.source_map.add_mapping(self.number, block, self.given, position)


def add_system(
    target: MessageList, system: str | list[block_types.TextBlock], path: str, source_map: SourceMap
) -> None:
    """Add the system prompt at `path`, unless it is empty.

    Raises:
        GatewayError: invalid.
    """
    message = target.add(role=pb.ROLE_SYSTEM)
    source_map.add_mapping(0, 0, SYSTEM, 0)
    _add_content(message.blocks, system, _Place(path, SYSTEM, 0, "system", source_map))
    _mark_billing(message)
    if not message.blocks:
        del target[-1]
        source_map.add_mapping(0, 0, 0, 0)


def add_messages(
    target: MessageList, messages: list[block_types.Message], path: str, source_map: SourceMap
) -> None:
    """Add the conversation at `path`.

    Raises:
        GatewayError: invalid, naming the invalid block; also if no message has content.
    """
    before = len(target)
    number = before - 1  # of the current message
    left_out = -before  # the caller's messages that were merged or dropped
    current: pb.Message | None = None
    replaced, position, summary = summary_place(messages) or (-1, 0, "")
    for index, message in enumerate(messages):
        role = _ROLES[message["role"]]
        if index < replaced and role != pb.ROLE_SYSTEM:
            continue
        if "content" not in message and role != pb.ROLE_SYSTEM:
            raise invalid(f"{path}[{index}].content", f"{path}[{index}].content: is required")
        content = message.get("content", "")
        if index == replaced:
            # The summary is said by the user, in a message of its own.
            target.add(role=pb.ROLE_USER).blocks.add(text=summary)
            number += 1
            source_map.add_mapping(number, 0, index, position)
            current, left_out = None, len(messages) + 1
            content = after_summary(cast("list[Any]", content), position)
        own_fields = message.keys() - _MESSAGE
        if current is None or current.role != role or own_fields or current.HasField("extra"):
            current = target.add(role=role)
            number += 1
            if index - number != left_out:
                left_out = index - number
                source_map.add_mapping(number, 0, index, 0)
        else:
            source_map.add_mapping(number, len(current.blocks), index, 0)
        place = _Place(path, index, number, message["role"], source_map)
        _add_content(current.blocks, content, place)
        if role == pb.ROLE_SYSTEM:
            _mark_billing(current)
        keeps_settings = role == pb.ROLE_SYSTEM and any(map(message.get, own_fields))
        if not (current.blocks or keeps_settings):
            del target[-1]
            number -= 1
            current = target[-1] if len(target) > before else None
        elif own_fields:
            unknown_fields = _without(message, ("role", "content"))
            where = f"{path}[{index}]"
            current.extra.CopyFrom(to_opaque(pb.DIALECT_ANTHROPIC, unknown_fields, where))
    if len(target) == before:
        raise invalid(path, f"{path}: at least one message must contain more than empty text")


def assistant_message(blocks: list[Any]) -> pb.Message:
    """Return the message of an assistant's blocks, which are valid, without thinking."""
    message = pb.Message(role=pb.ROLE_ASSISTANT)
    spoken = [block for block in blocks if block["type"] != "thinking"]
    _add_content(message.blocks, spoken, _Place("messages", 0, 0, "assistant", SourceMap()))
    return message


def starts_with_billing(text: str) -> bool:
    """Return whether a system prompt starts with a billing line."""
    return text.startswith(_BILLING)


def _mark_billing(message: pb.Message) -> None:
    if message.blocks and starts_with_billing(message.blocks[0].text):
        message.has_billing_line = True


def _add_content(target: BlockList, content: str | list[Any], place: _Place) -> None:
    """Add the blocks of a message, or of the system prompt."""
    if isinstance(content, str):
        if content:
            target.add(text=content)
        return
    role = place.role
    for position, block in enumerate(content):
        kind = block["type"]
        if kind == "text" and not block["text"]:
            place.add_mapping(len(target), position + 1)
            continue
        if kind == "text" and len(block) == 2:
            target.add(text=block["text"])
            continue
        where = place.of_block(position)
        _check_role(kind, role, where)
        _add_block(target, block, where, is_assistant=role == "assistant")


def _check_role(kind: str, role: str, path: str) -> None:
    if role == "system" and kind not in _IN_SYSTEM:
        raise invalid(
            f"{path}.type", f"{path}.type: must be one of {_IN_SYSTEM} in a system message"
        )
    owner = _BELONGS_TO.get(kind, role)
    if owner != role:
        raise invalid(
            f"{path}.type",
            f"{path}.type: {kind} blocks are allowed only in messages with role {owner!r}",
        )


def _add_block(
    target: BlockList, block: Mapping[str, Any], path: str, *, is_assistant: bool = False
) -> None:
    """Add one block of any type; `is_assistant` is true in an assistant message."""
    kind = block["type"]
    if kind == "text" and not block["text"]:
        return
    added = target.add()
    match kind:
        case "text":
            added.text = block["text"]
            block = without_own_citations(block)
            known_fields: tuple[str, ...] = ("text",)
        case "image" | "document" if block["source"]["type"] in _SOURCES[kind]:
            _set_media(added.media, block, path)
            known_fields = ("source", "title") if kind == "document" else ("source",)
        case "thinking":
            added.thinking.text = block["thinking"]
            added.thinking.signature = block.get("signature") or ""
            known_fields = ("thinking", "signature")
        case "redacted_thinking":
            added.redacted_thinking = block["data"]
            known_fields = ("data",)
        case "tool_use":
            _set_tool_use(added.tool_use, cast(block_types.ToolUseBlock, block), path)
            known_fields = ("id", "name", "input")
        case "tool_result":
            _set_tool_result(added.tool_result, cast(block_types.ToolResultBlock, block), path)
            known_fields = ("tool_use_id", "content", "is_error")
        case "server_tool_use" if is_assistant and _is_of_gateway(block, "id"):
            _set_tool_use(added.server_tool_use, _server_call(block, path), path)
            known_fields = ("id", "name", "input", "caller")
        case "web_search_tool_result" | "web_fetch_tool_result" if is_assistant and _is_of_gateway(
            block, "tool_use_id"
        ):
            set_result(added.server_tool_result, block, path)
            known_fields = ("tool_use_id", "content", "caller")
        case _:
            part = from_block(block) if is_assistant else None
            added.opaque.CopyFrom(part or to_opaque(pb.DIALECT_ANTHROPIC, block, path))
            return
    _set_rest(added, block, known_fields, path)


def _is_of_gateway(block: Mapping[str, Any], field: str) -> bool:
    """Return whether a block belongs to a gateway tool, by the id of the call."""
    call_id = block.get(field)
    return isinstance(call_id, str) and call_id.startswith(SERVER_CALL)


def _server_call(block: Mapping[str, Any], path: str) -> block_types.ToolUseBlock:
    for field, kind in (("name", str), ("input", dict)):
        if not isinstance(block.get(field), kind):
            raise invalid(
                f"{path}.{field}",
                f"{path}.{field}: must be sent back unchanged, as the gateway returned it",
            )
    return cast(block_types.ToolUseBlock, block)


def _set_rest(
    target: pb.Block, block: Mapping[str, Any], known_fields: Iterable[str], path: str
) -> None:
    """Keep the unknown fields of a block."""
    unknown_fields = _without(block, ("type", "cache_control", *known_fields))
    if cache_control := block.get("cache_control"):
        target.cache_control = to_json(cache_control, f"{path}.cache_control")
    if unknown_fields:
        target.extra.CopyFrom(to_opaque(pb.DIALECT_ANTHROPIC, unknown_fields, path))


def _without(fields: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _set_media(target: pb.Media, block: Mapping[str, Any], path: str) -> None:
    is_image = block["type"] == "image"
    target.kind = pb.MEDIA_KIND_IMAGE if is_image else pb.MEDIA_KIND_DOCUMENT
    target.name = block.get("title") or ""
    source = block["source"]
    match source["type"]:
        case "base64":
            target.mime_type = source["media_type"]
            if is_image and not target.mime_type.lower().startswith("image/"):
                where = f"{path}.source.media_type"
                raise invalid(where, f"{where}: must be an image type, such as image/png")
            if not is_image:
                # The dialect has no blocks for other media.
                major = target.mime_type.lower().partition("/")[0]
                target.kind = _KINDS.get(major, target.kind)
            target.data = _decoded(source["data"], f"{path}.source.data")
        case "text":
            target.mime_type = source["media_type"]
            target.data = source["data"].encode()
        case "url":
            target.url = source["url"]
        case "file":
            target.file_id = source["file_id"]


def _decoded(text: str, path: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise invalid(path, f"{path}: must be base64, padded and without line breaks") from None


def _set_tool_use(target: pb.ToolUse, block: block_types.ToolUseBlock, path: str) -> None:
    target.id = block["id"]
    target.name = block["name"]
    target.input = to_json(block["input"], f"{path}.input").decode()


def _set_tool_result(target: pb.ToolResult, block: block_types.ToolResultBlock, path: str) -> None:
    target.tool_use_id = block["tool_use_id"]
    target.is_error = bool(block.get("is_error"))
    content = block.get("content")
    if isinstance(content, str):
        if content:
            target.blocks.add(text=content)
    elif content:
        for position, inner in enumerate(content):
            where = f"{path}.content[{position}]"
            if inner["type"] in _BELONGS_TO:
                raise invalid(
                    f"{where}.type",
                    f"{where}.type: tool results may contain text, images and documents, "
                    f"not {inner['type']} blocks",
                )
            _add_block(target.blocks, inner, where)

"""Translate chat messages into canonical messages."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from facade.dialects.openai.media import read_audio, read_file, read_image
from facade.dialects.openai.paths import (
    CONTENT,
    FUNCTION_CALL,
    REASONING,
    REFUSAL,
    TOOL_CALLS,
    WHOLE,
)
from facade.dialects.openai.signed_thinking import (
    DETAILS,
    ReceivedThinking,
    received_thinking,
    without_own,
)
from facade.dialects.openai.types import ContentPart, Message, ToolCall
from facade.dialects.openai.unknown_fields import keep_message_fields, keep_part_fields
from facade.dialects.paths import SourceMap
from facade.dialects.validation import to_opaque
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Media, Role, Thinking
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import invalid

_ROLES: dict[str, Role.ValueType] = {
    "system": conversation.ROLE_SYSTEM,
    "developer": conversation.ROLE_DEVELOPER,
    "user": conversation.ROLE_USER,
    "assistant": conversation.ROLE_ASSISTANT,
    # Tool results are tool_result blocks of the user role.
    "tool": conversation.ROLE_USER,
    "function": conversation.ROLE_USER,
}
_RESULTS = frozenset({"tool", "function"})
_MEDIA: dict[str, Callable[[Any, str], Media]] = {
    "image_url": read_image,
    "input_audio": read_audio,
    "file": read_file,
}
_KNOWN_PARTS = frozenset({"text", "refusal", *_MEDIA})
# Allowed part types by role; unknown types are not checked.
_PARTS_OF_ROLE: dict[str, frozenset[str]] = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "user": frozenset({"text", *_MEDIA}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text", *_MEDIA}),
    "function": frozenset({"text"}),
}
# Fields that are only allowed for one role.
_FIELDS_OF_ROLE = {
    "tool_call_id": "tool",
    "tool_calls": "assistant",
    "function_call": "assistant",
    "refusal": "assistant",
    "reasoning_content": "assistant",
}
_PLAIN = {"role", "content"}
_PLAIN_PART = {"type", "text"}
_PLAIN_CALL = {"name", "arguments", "input"}
_NAMED = frozenset({"role", "content", "name", *_FIELDS_OF_ROLE})
_REASONING = "reasoning"


class _Place(NamedTuple):
    """The position of a message in the caller's body and in the canonical request."""

    path: str
    given: int  # index among the caller's messages
    number: int  # index in the canonical request
    source_map: SourceMap

    def add_mapping(self, block: int, place: int, name: int = CONTENT) -> None:
        """Store the position of a block and those after it; see `SourceMap.add_mapping`."""
        self.source_map.add_mapping(self.number, block, self.given, place, name)


def add_messages(
    request: GenerateRequest, messages: Sequence[Message], path: str, source_map: SourceMap
) -> None:
    """Add chat messages to the request, in order.

    Empty texts are dropped, and so are messages that become empty.

    Args:
        request: a request without messages.
        messages: the messages.
        path: path of the array.
        source_map: the positions of the messages are added.

    Raises:
        GatewayError: invalid, naming the invalid field.
    """
    add = request.messages.add
    number = skipped = 0
    for index, message in enumerate(messages):
        texts = _plain_texts(message)
        if texts or texts is None:
            if index - number != skipped:
                skipped = index - number
                source_map.add_mapping(number, 0, index, 0)
            if texts is None:
                place = _Place(f"{path}[{index}]", index, number, source_map)
                number += _add_message(request, message, place)
                continue
            blocks = add(role=_ROLES[message["role"]]).blocks
            for text in texts:
                blocks.add(text=text)
            number += 1
    if not request.messages:
        raise invalid(path, f"{path}: must contain at least one message that is not empty")


def _plain_texts(message: Message) -> list[str] | None:
    """Return the texts of a message that has only text, or None.

    Fast path: nearly all messages are like this, and there may be 100,000 of them.
    """
    if message["role"] in _RESULTS or message.keys() != _PLAIN:
        return None
    content = message["content"]
    if content is None:
        return None
    if isinstance(content, str):
        return [content] if content else []
    texts: list[str] = []
    for part in content:
        if part.keys() != _PLAIN_PART or part["type"] != "text":
            return None
        if text := part["text"]:
            texts.append(text)
        elif text is None:
            return None
    return texts


def _add_message(request: GenerateRequest, message: Message, place: _Place) -> bool:
    """Add a message; return False if it is empty."""
    role, path = message["role"], place.path
    for field, owner in _FIELDS_OF_ROLE.items():
        if role != owner and message.get(field) is not None:
            raise invalid(f"{path}.{field}", f"{path}.{field}: allowed only if role is {owner}")
    is_signed_elsewhere = False
    if role == "assistant":
        thinking = received_thinking(message)
        is_signed_elsewhere = thinking.is_from_details
        blocks = _assistant_blocks(message, thinking, place)
    else:
        blocks = _content_blocks(message, place)
    name = message.get("name") or ""
    if role in _RESULTS:
        place.add_mapping(0, 0, WHOLE)
        result = Block()
        if role == "function":
            # `name` is the name of the function, not of a participant.
            name, result.tool_result.tool_use_id = "", _last_call_id(request, path)
        else:
            result.tool_result.tool_use_id = _tool_call_id(message, path)
        result.tool_result.blocks.extend(blocks)
        blocks = [result]
    added = request.messages.add(role=_ROLES[role], name=name)
    added.blocks.extend(blocks)
    named = _NAMED
    if any(block.thinking.field for block in blocks):
        named = _NAMED | {_REASONING}
    if extra := without_own(_unnamed(message, named)):
        keep_message_fields(added, extra, path)
        if is_signed_elsewhere:
            added.extra.covered_paths.append(DETAILS)
    if blocks or (role == "assistant" and _has_unknown_fields(message)):
        return True
    del request.messages[-1]
    return False


def _tool_call_id(message: Message, path: str) -> str:
    tool_call_id = message.get("tool_call_id")
    if tool_call_id is None:
        path = f"{path}.tool_call_id"
        raise invalid(
            path, f"{path}: is required: the id of the tool call that the message answers"
        )
    return tool_call_id


def _last_call_id(request: GenerateRequest, path: str) -> str:
    """Return the id of the call that a message of the role `function` answers."""
    before = request.messages[-1].blocks if request.messages else ()
    if not before or not before[-1].HasField("tool_use"):
        path = f"{path}.role"
        raise invalid(
            path,
            f"{path}: function is allowed only after an assistant message with the function call",
        )
    return before[-1].tool_use.id


def _assistant_blocks(message: Message, signed: ReceivedThinking, place: _Place) -> list[Block]:
    blocks = _thinking_blocks(message, signed.leading)
    for number in range(len(blocks)):
        place.add_mapping(number, 0, REASONING)
    if blocks:
        place.add_mapping(len(blocks), 0)
    refusal, calls = message.get("refusal"), message.get("tool_calls")
    # Some servers write a call both ways.
    function = None if calls else message.get("function_call")
    says_otherwise = blocks or refusal or calls or function or _has_unknown_fields(message)
    if message.get("content") is not None or not says_otherwise:
        blocks += _content_blocks(message, place, len(blocks))
    if refusal:
        place.add_mapping(len(blocks), 0, REFUSAL)
        blocks.append(Block(refusal=refusal))
    if calls:
        place.add_mapping(len(blocks), 0, TOOL_CALLS)
        for index, call in enumerate(calls):
            for thinking in signed.of_calls.get(index, ()):
                place.add_mapping(len(blocks), 0, REASONING)
                blocks.append(thinking)
                place.add_mapping(len(blocks), index, TOOL_CALLS)
            blocks.append(_call(call, f"{place.path}.tool_calls[{index}]"))
    elif function:
        place.add_mapping(len(blocks), 0, FUNCTION_CALL)
        # A function call has no id; a tool call needs one, which only has to be unique.
        call = {"id": f"call_{place.given}", "type": "function", "function": function}
        blocks.append(_call(call, f"{place.path}.function_call"))
    return blocks


def _thinking_blocks(message: Message, signed: list[Block]) -> list[Block]:
    """Return the thinking of a message: the signed one, or else its text."""
    reasoning = message.get("reasoning_content")
    other: Any = message.get(_REASONING)
    # The name used by OpenRouter, Groq and others.
    has_other_name = isinstance(other, str) and reasoning in (None, "", other)
    blocks = list(signed)
    if not blocks and (text := reasoning or (other if has_other_name else "")):
        blocks.append(Block(thinking=Thinking(text=text)))
    if has_other_name:
        for block in blocks:
            if block.HasField("thinking"):
                block.thinking.field = _REASONING
    return blocks


def _has_unknown_fields(message: Message) -> bool:
    """Return whether a message has unknown fields, such as a recording's id."""
    return any(value and name not in _NAMED for name, value in message.items())


def _content_blocks(message: Message, place: _Place, before: int = 0) -> list[Block]:
    """Return the blocks of a message's content; the message has `before` other blocks."""
    content, role, path = message.get("content"), message["role"], f"{place.path}.content"
    if content is None:
        instead = " unless there are tool_calls or a refusal" if role == "assistant" else ""
        raise invalid(path, f"{path}: must be a string or an array of parts{instead}")
    if isinstance(content, str):
        return [Block(text=content)] if content else []
    blocks: list[Block] = []
    for index, part in enumerate(content):
        if block := _part(part, role, f"{path}[{index}]"):
            blocks.append(block)
        else:
            place.add_mapping(before + len(blocks), index + 1)
    return blocks


def _part(part: ContentPart, role: str, path: str) -> Block | None:
    """Return the block of a content part, or None if its text is empty."""
    kind = part["type"]
    if kind not in _KNOWN_PARTS:
        if role == "assistant" and (thinking := _hidden_thinking(part)):
            return thinking
        return Block(opaque=to_opaque(conversation.DIALECT_OPENAI, part, path))
    allowed = _PARTS_OF_ROLE[role]
    if kind not in allowed:
        takes = ", ".join(sorted(allowed))
        raise invalid(
            f"{path}.type",
            f"{path}.type: {kind} is not allowed for role {role}; allowed types: {takes}",
        )
    value: Any = part.get(kind)
    if value is None:
        raise invalid(f"{path}.{kind}", f"{path}.{kind}: is required if type is {kind}")
    if read := _MEDIA.get(kind):
        block = Block(media=read(value, f"{path}.{kind}"))
    elif not value:
        return None
    else:
        block = Block(text=value) if kind == "text" else Block(refusal=value)
    if extra := _unnamed(part, ("type", kind)):
        keep_part_fields(block, extra, path)
    return block


def _hidden_thinking(part: Mapping[str, object]) -> Block | None:
    """Return the thinking block that this gateway signed for a caller of the messages endpoint.

    LangChain sends it as a content part when it continues such an answer in a chat. Other parts of
    this type are kept for providers of this dialect.
    """
    data = part.get("data")
    if part["type"] == "redacted_thinking" and isinstance(data, str) and data.startswith("gw1."):
        return Block(redacted_thinking=data)
    return None


def _call(call: ToolCall, path: str) -> Block:
    kind = call["type"]
    block = Block()
    use = block.tool_use
    use.id = call["id"]
    if kind == "function" and (function := call.get("function")):
        # Some models write no arguments for a tool without parameters.
        use.name, use.input = function["name"], function["arguments"] or "{}"
    elif kind == "custom" and (custom := call.get("custom")):
        use.name, use.input, use.freeform = custom["name"], custom["input"], True
    else:
        raise invalid(f"{path}.{kind}", f"{path}.{kind}: is required if type is {kind}")
    unknown_fields: dict[str, object] = {**call}
    inner = unknown_fields.pop(kind)
    if isinstance(inner, dict) and inner.keys() - _PLAIN_CALL:
        unknown_fields[kind] = {
            name: value for name, value in inner.items() if name not in _PLAIN_CALL
        }
    if extra := without_own(_unnamed(unknown_fields, ("id", "type"))):
        keep_part_fields(block, extra, path)
    return block


def _unnamed(wire: Mapping[str, object], named: Collection[str]) -> dict[str, object]:
    """Return the unknown fields that are not null."""
    return {key: value for key, value in wire.items() if key not in named and value is not None}

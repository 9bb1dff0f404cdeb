"""Translate input items into canonical messages."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import TypeAdapter

from facade.dialects.google_code import from_item
from facade.dialects.paths import ONLY, SYSTEM, SourceMap
from facade.dialects.responses import item_types
from facade.dialects.responses.parts import blocks_of
from facade.dialects.responses.paths import CONTENT, WHOLE
from facade.dialects.responses.unknown_fields import keep_unknown_fields
from facade.dialects.validation import read, to_opaque
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Message, Role
from services.common.errors import invalid
from services.common.messages.sealed_summary import REPLACING

# Prefix of encrypted thinking in `encrypted_content`, which may also have a signature of thinking.
REDACTED = "redacted."
# Prefix of the ids of searches by the gateway.
OWN_SEARCH = "ws_gw"
OWN_FILE_SEARCH = "fs_gw"

_ROLES: Mapping[str, Role.ValueType] = {
    "system": conversation.ROLE_SYSTEM,
    "developer": conversation.ROLE_DEVELOPER,
    "user": conversation.ROLE_USER,
    "assistant": conversation.ROLE_ASSISTANT,
}
_MESSAGE = frozenset({"type", "role", "content"})
_CALL = frozenset({"type", "call_id", "name", "arguments", "input"})
_OUTPUT = frozenset({"type", "call_id", "output"})
# Fields of an answer's items, which are of no use to another provider when they are sent back.
_OF_ANSWERS = ("id", "status")
_REASONING = ("type", *_OF_ANSWERS, "summary", "content", "encrypted_content")
# Prefixes of the ids of the gateway's own searches, by type.
_SEARCH_CALLS = {"web_search_call": OWN_SEARCH, "file_search_call": OWN_FILE_SEARCH}
_NOTHING: frozenset[str] = frozenset()
_OF_USERS = "_output"
_APPROVAL = "mcp_approval_response"
_ADDITIONAL_TOOLS = "additional_tools"
_COMPACTION = "compaction"
# The last item of an input that is to be compacted.
TRIGGER = "compaction_trigger"
_INSTRUCTING = ("system", "developer")

_ITEMS: TypeAdapter[Sequence[item_types.Item]] = TypeAdapter(item_types.Items)


def messages_of_items(items: Sequence[bytes]) -> list[Message]:
    """Return the canonical messages of items, which are given as JSON.

    Raises:
        GatewayError: invalid, naming the field below `input`.
    """
    messages: list[Message] = []
    parsed = read(_ITEMS, b"[%b]" % b",".join(items))
    # The trigger of an earlier request is no part of its conversation.
    others = [item for item in parsed[:-1] if item.get("type") != TRIGGER]
    add_items(messages, [*others, *parsed[-1:]], "input", SourceMap())
    return messages


def add_instructions(messages: list[Message], instructions: str, source_map: SourceMap) -> None:
    """Add a system prompt as the first message."""
    source_map.add_mapping(0, 0, SYSTEM, 0, WHOLE)
    messages.append(Message(role=conversation.ROLE_SYSTEM, blocks=[Block(text=instructions)]))


def add_input(
    messages: list[Message],
    given: str | Sequence[item_types.Item],
    path: str,
    source_map: SourceMap,
) -> None:
    """Add an input, which is a text of the user or a list of items; see `add_items`."""
    if not isinstance(given, str):
        add_items(messages, given, path, source_map)
    elif given:
        source_map.add_mapping(len(messages), 0, ONLY, 0, WHOLE)
        messages.append(Message(role=conversation.ROLE_USER, blocks=[Block(text=given)]))


def add_items(
    messages: list[Message], items: Sequence[item_types.Item], path: str, source_map: SourceMap
) -> None:
    """Add the messages of items, in order; references to stored items add none.

    Consecutive thinking, texts and calls of the assistant become one message, as the results of
    calls come directly after the message with the calls.

    Args:
        messages: the preceding messages; modified in place.
        items: the items.
        path: path of the array.
        source_map: the positions of the items are added.

    Raises:
        GatewayError: invalid, naming the field.
    """
    conversation_ = _Conversation(messages, source_map)
    replaced = _replaced(items)
    for index, item in enumerate(items):
        if index < replaced and item.get("role") not in _INSTRUCTING:
            continue
        if item.get("type") == TRIGGER and index != len(items) - 1:
            raise invalid(f"{path}[{index}]", f"{path}[{index}]: a {TRIGGER} must be the last item")
        conversation_.add(cast("dict[str, Any]", item), index, f"{path}[{index}]")


def _replaced(items: Sequence[item_types.Item]) -> int:
    """Return the number of items before the last summary that stands in their place."""
    for index in range(len(items) - 1, -1, -1):
        match items[index]:
            case {"type": "compaction", "encrypted_content": str(sealed)}:
                if sealed.startswith(REPLACING):
                    return index
    return 0


class _Conversation:
    """The messages of an input during its translation."""

    def __init__(self, messages: list[Message], source_map: SourceMap) -> None:
        self._messages = messages
        self._source_map = source_map
        self._assistant: Message | None = None  # the last message, if it is the assistant's
        self._kinds: set[str | None] = set()  # of its blocks
        self._skipped = -len(messages)  # items without a message of their own so far

    def add(self, item: dict[str, Any], index: int, path: str) -> None:
        """Translate an item; `index` is its index in the array, and `path` its path."""
        match item.get("type"):
            case None if "role" not in item:
                pass  # a reference
            case None | "message":
                self._add_message(item, index, path)
            case "function_call" | "custom_tool_call":
                self._add_call(item, index, path)
            case "function_call_output" | "custom_tool_call_output" if "call_id" in item:
                self._add_output(item, index, path)
            case "reasoning":
                self._add_reasoning(item, index, path)
            case "item_reference":
                pass
            case _:
                self._add_other(item, index, path)

    def _add_message(self, item: dict[str, Any], index: int, path: str) -> None:
        role, content = _ROLES[item["role"]], item["content"]
        is_assistant = role == conversation.ROLE_ASSISTANT
        if isinstance(content, str):
            blocks = [(0, Block(text=content))] if content else []
        else:
            blocks = blocks_of(content, f"{path}.content", assistant=is_assistant)
        if not blocks:
            return
        if is_assistant and (before := self._joined(blocks[0][1])) is not None:
            message = before
        else:
            self._assistant = message = Message(role=role)
            self._messages.append(message)
            self._kinds = set()
            if not is_assistant:
                self._assistant = None
        self._place(message, blocks, index)
        self._kinds.update(block.WhichOneof("kind") for _, block in blocks)
        message.blocks.extend(block for _, block in blocks)
        if not message.HasField("extra"):
            keep_unknown_fields(message, item, _MESSAGE, path, _OF_ANSWERS)

    def _joined(self, block: Block) -> Message | None:
        """Return the assistant's message that a block is added to, or None for a new one.

        Texts of two items are two messages, unless calls precede the second one.
        """
        last = self._assistant
        if last is None or block.WhichOneof("kind") in ("thinking", "redacted_thinking"):
            return last
        kinds, is_call = self._kinds, block.HasField("tool_use")
        return last if is_call or "tool_use" in kinds or not kinds & {"text", "refusal"} else None

    def _place(self, message: Message, blocks: Sequence[tuple[int, Block]], index: int) -> None:
        """Store the positions of the blocks of a message in the content of its item."""
        number, first = len(self._messages) - 1, len(message.blocks)
        expected = 0
        if first == 0 and index - number == self._skipped:
            is_next = True
        else:
            self._skipped = index - number
            is_next = False
        for offset, (place, _) in enumerate(blocks):
            if not is_next or place != expected:
                self._source_map.add_mapping(number, first + offset, index, place, CONTENT)
                is_next = True
            expected = place + 1

    def _add_whole(self, message: Message, block: Block, index: int) -> None:
        """Add a block that is an item by itself."""
        number = len(self._messages) - 1
        self._skipped = index - number
        self._source_map.add_mapping(number, len(message.blocks), index, 0, WHOLE)
        message.blocks.append(block)

    def _of_assistant(self, block: Block, index: int) -> None:
        message = self._joined(block)
        if message is None:
            message = self._assistant = Message(role=conversation.ROLE_ASSISTANT)
            self._messages.append(message)
            self._kinds = set()
        self._kinds.add(block.WhichOneof("kind"))
        self._add_whole(message, block, index)

    def _add_call(self, item: dict[str, Any], index: int, path: str) -> None:
        block = Block()
        use = block.tool_use
        use.id, use.name = item["call_id"], item["name"]
        if item["type"] == "custom_tool_call":
            use.input, use.freeform = item["input"], True
        else:
            # Some models write no arguments for a tool without parameters.
            use.input = item["arguments"] or "{}"
        keep_unknown_fields(block, item, _CALL, path, _OF_ANSWERS)
        self._of_assistant(block, index)

    def _add_output(self, item: dict[str, Any], index: int, path: str) -> None:
        block = Block()
        block.tool_result.tool_use_id = item["call_id"]
        output = item["output"]
        if not isinstance(output, str):
            output_blocks = blocks_of(output, f"{path}.output", assistant=False)
            block.tool_result.blocks.extend(one for _, one in output_blocks)
        elif output:
            block.tool_result.blocks.add(text=output)
        keep_unknown_fields(block, item, _OUTPUT, path, _OF_ANSWERS)
        self._add_alone(conversation.ROLE_USER, block, index)

    def _add_alone(self, role: Role.ValueType, block: Block, index: int) -> None:
        """Add a block as a message of its own."""
        self._assistant = None
        message = Message(role=role)
        self._messages.append(message)
        self._add_whole(message, block, index)

    def _add_reasoning(self, item: dict[str, Any], index: int, path: str) -> None:
        block = Block()
        text = "\n\n".join(
            one.get("text", "") for one in item.get("content") or item.get("summary") or ()
        )
        proof = item.get("encrypted_content") or ""
        if proof.startswith(REDACTED):
            block.redacted_thinking = proof.removeprefix(REDACTED)
        else:
            block.thinking.text, block.thinking.signature = text, proof
        keep_unknown_fields(block, item, _NOTHING, path, _REASONING)
        self._of_assistant(block, index)

    def _add_other(self, item: dict[str, Any], index: int, path: str) -> None:
        kind = item["type"]
        own = _SEARCH_CALLS.get(kind)
        if own is not None and str(item.get("id", "")).startswith(own):
            return  # no provider knows the gateway's own searches
        if parts := from_item(item):
            for part in parts:
                self._of_assistant(Block(opaque=part), index)
            return
        block = Block(opaque=to_opaque(conversation.DIALECT_RESPONSES, item, path))
        if kind.endswith(_OF_USERS) or kind in (_APPROVAL, _COMPACTION):
            self._add_alone(conversation.ROLE_USER, block, index)
        elif kind in (_ADDITIONAL_TOOLS, TRIGGER):
            self._add_alone(conversation.ROLE_DEVELOPER, block, index)
        else:
            self._of_assistant(block, index)


def check_not_empty(messages: Sequence[Message], path: str) -> None:
    """Check that an input has something to answer.

    Raises:
        GatewayError: invalid.
    """
    if not any(
        message.role not in (conversation.ROLE_SYSTEM, conversation.ROLE_DEVELOPER)
        or message.HasField("extra")
        for message in messages
    ):
        raise invalid(
            path, f"{path}: must be a text or contain at least one item that is not empty"
        )

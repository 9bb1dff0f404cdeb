"""Signed thinking in chats, whose official format has no field for it.

A provider that signs its thinking needs it back with the calls that it led to. An answer therefore
has each thinking block in `reasoning_details`, in OpenRouter's format, and once more in
`extra_content.anthropic.thinking_blocks` of the call that follows, or else of the message, for
callers that keep nothing but calls. Sent back, either is restored.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gateway.conversation.v1.conversation_pb2 import Block

DETAILS = "reasoning_details"
EXTRA = "extra_content"
_VENDOR, _BLOCKS = "anthropic", "thinking_blocks"
_FORMAT = "anthropic-claude-v1"
_TEXT, _ENCRYPTED = "reasoning.text", "reasoning.encrypted"
# Prefix of the ids of details that the gateway has made of a provider's thinking blocks.
_OWN_ID = "gw_thinking_"

Json = dict[str, Any]


def is_signed(block: Block) -> bool:
    """Return whether the thinking of an answer has to come back, redacted thinking included."""
    return block.thinking.field == DETAILS or block.HasField("redacted_thinking")


class SentThinking:
    """The signed thinking of one answer, whole or in deltas."""

    __slots__ = ("_blocks", "_is_open", "_number")

    def __init__(self) -> None:
        self._number = -1  # index of the last detail
        self._blocks: list[tuple[Json, list[str]]] = []  # since the last call, with their texts
        self._is_open = False

    def begin(self, block: Block) -> Json:
        """Return the fields for the start of a signed block."""
        self._number += 1
        head = {"id": f"{_OWN_ID}{self._number}", "format": _FORMAT, "index": self._number}
        if block.HasField("redacted_thinking"):
            data = block.redacted_thinking
            self._blocks.append(({"type": "redacted_thinking", "data": data}, []))
            return {DETAILS: [{"type": _ENCRYPTED, **head, "data": data}]}
        thought = block.thinking
        self._is_open = True
        signature = thought.signature
        self._blocks.append(({"type": "thinking", "signature": signature}, [thought.text]))
        detail = {"type": _TEXT, **head, "text": thought.text}
        return {DETAILS: [{**detail, "signature": signature} if signature else detail]}

    def text(self, text: str) -> Json:
        """Return the fields for more text of the open block; none if it is not signed."""
        return (
            {DETAILS: [{"type": _TEXT, "text": text, "index": self._number}]}
            if self._is_open
            else {}
        )

    def keep(self, text: str) -> None:
        """Keep a text of the open block for the call that follows."""
        if self._is_open:
            self._blocks[-1][1].append(text)

    def signature(self, signature: str) -> Json:
        """Return the fields for the signature of the open block; none if it is not signed."""
        if not self._is_open:
            return {}
        self._blocks[-1][0]["signature"] += signature
        return {DETAILS: [{"type": _TEXT, "signature": signature, "index": self._number}]}

    def end(self) -> None:
        """End the open block."""
        self._is_open = False

    def take(self, extra: Json | None = None) -> Json:
        """Return the fields of a call, or of the end, for the blocks since the last call.

        Args:
            extra: other content of the field.
        """
        if not self._blocks:
            return {}
        taken, self._blocks = self._blocks, []
        blocks = [
            {**block, "thinking": "".join(texts)} if block["type"] == "thinking" else block
            for block, texts in taken
        ]
        return {EXTRA: {**(extra or {}), _VENDOR: {_BLOCKS: blocks}}}


class ReceivedThinking(NamedTuple):
    """The signed thinking of a message that a caller sends back.

    Attributes:
        leading: the blocks before the message's content.
        of_calls: the blocks before calls other than the first, by the index of the call.
        is_from_details: whether blocks come from details that the gateway has not made.
    """

    leading: list[Block]
    of_calls: Mapping[int, list[Block]]
    is_from_details: bool


_NOTHING = ReceivedThinking([], {}, False)


def received_thinking(message: Mapping[str, Any]) -> ReceivedThinking:
    """Return the signed thinking in a caller's message."""
    calls = message.get("tool_calls") or ()
    if not (DETAILS in message or EXTRA in message or any(EXTRA in call for call in calls)):
        return _NOTHING
    of_calls = {
        index: blocks
        for index, call in enumerate(calls)
        if (blocks := [*_blocks_in(call.get(EXTRA))])
    }
    first = of_calls.pop(0, [])
    details = message.get(DETAILS)
    leading = [*_details_in(details)]
    if leading:
        later = {_key(block) for blocks in of_calls.values() for block in blocks}
        leading = [block for block in leading if _key(block) not in later]
    else:
        leading = [*first, *_blocks_in(message.get(EXTRA))]
    is_foreign = bool(leading) and isinstance(details, list) and not all(map(_is_own, details))
    return ReceivedThinking(leading, of_calls, is_foreign)


def without_own(fields: Json) -> Json:
    """Return unknown fields of a message or call without what the gateway itself has added."""
    if isinstance(details := fields.get(DETAILS), list):
        others = [detail for detail in details if not _is_own(detail)]
        fields = {**fields, DETAILS: others} if others else _without(fields, DETAILS)
    extra = fields.get(EXTRA)
    if isinstance(extra, dict) and isinstance(vendor := extra.get(_VENDOR), dict):
        kept = _without(vendor, _BLOCKS)
        left = {**extra, _VENDOR: kept} if kept else _without(extra, _VENDOR)
        fields = {**fields, EXTRA: left} if left else _without(fields, EXTRA)
    return fields


def _without(fields: Mapping[str, Any], name: str) -> Json:
    return {other: value for other, value in fields.items() if other != name}


def _is_own(detail: object) -> bool:
    match detail:
        case {"id": str(id)}:
            return id.startswith(_OWN_ID)
    return False


def _key(block: Block) -> tuple[str, str]:
    thought = block.thinking
    return thought.text, thought.signature or block.redacted_thinking


def _details_in(details: object) -> list[Block]:
    """Return details as blocks; none if no block is signed in Anthropic's format."""
    blocks: list[Block] = []
    for detail in details if isinstance(details, list) else ():
        match detail:
            case {"format": str(form)} if not form.startswith("anthropic") and form != "unknown":
                pass
            case {"type": "reasoning.text", "text": str(text), "signature": str(signature)}:
                blocks.append(_thinking(text, signature))
            case {"type": "reasoning.text", "text": str(text)}:
                blocks.append(_thinking(text, ""))
            case {"type": "reasoning.encrypted", "format": str(), "data": str(data)} if data:
                blocks.append(Block(redacted_thinking=data))
    return blocks if any(_key(block)[1] for block in blocks) else []


def _blocks_in(extra: object) -> Iterator[Block]:
    match extra:
        case {"anthropic": {"thinking_blocks": list(blocks)}}:
            pass
        case _:
            return
    for block in blocks:
        match block:
            case {"type": "thinking", "thinking": str(text), "signature": str(signature)}:
                if signature:
                    yield _thinking(text, signature)
            case {"type": "redacted_thinking", "data": str(data)} if data:
                yield Block(redacted_thinking=data)


def _thinking(text: str, signature: str) -> Block:
    block = Block()
    block.thinking.text, block.thinking.signature = text, signature
    return block

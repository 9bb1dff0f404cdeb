"""The deltas of one choice of a streamed chat completion."""

from typing import Any

from facade.dialects.openai.response import annotation, native_fields, reasoning_fields, tool_call
from gateway.conversation.v1.conversation_pb2 import Block, Thinking, ToolUse
from gateway.inference.v1.inference_pb2 import Event


def head_of(head: bytes, number: int) -> bytes:
    """Return the beginning of a chunk, up to the delta of a choice."""
    return head + b'[{"index":%d,"delta":' % number


class Choice:
    """The state of one choice.

    Attributes:
        head: JSON before a delta.
        text: JSON before the string of a text delta.
        has_answered: whether the message has content other than thinking.
        has_ended: whether its finish reason has been sent.
        length: characters of its texts so far.
        annotations: its citations, which are sent at its end.
    """

    __slots__ = (
        *("_before", "_calls", "_has_text", "_number_of_calls", "_thinking", "annotations"),
        *("has_answered", "has_ended", "head", "length", "text"),
    )

    def __init__(self, head: bytes) -> None:
        self.begin_with(head)
        self.has_answered = self.has_ended = False
        self.length = self._before = 0
        self.annotations: list[dict[str, Any]] = []
        self._thinking = Thinking()
        self._has_text = False
        # Open tool calls by block.
        self._calls: dict[int, _Call] = {}
        self._number_of_calls = 0

    def begin_with(self, head: bytes) -> None:
        """Set the JSON before deltas."""
        self.head = head
        self.text = head + b'{"content":'

    def start_block(self, number: int, block: Block) -> dict[str, Any]:
        """Return the first delta of a block, possibly empty."""
        match block.WhichOneof("kind"):
            case "text":
                self._before = self.length
                self.length += len(block.text)
                delta = native_fields(block.extra)
                # Before the first text, content is null rather than empty.
                if block.text or not self._has_text:
                    delta["content"] = block.text
                self._has_text = self.has_answered = True
                return delta
            case "tool_use":
                self.has_answered = True
                call = _Call(self._number_of_calls, block.tool_use)
                self._calls[number] = call
                self._number_of_calls += 1
                return {"tool_calls": [call.opening(block)]}
            case "refusal":
                self.has_answered = True
                return {"refusal": block.refusal} if block.refusal else {}
            case "thinking":
                self._thinking = block.thinking
                text = block.thinking.text
                return reasoning_fields(self._thinking, text) if text else {}
            case "opaque" if part := native_fields(block.opaque):
                self.has_answered = True
                return {"content": [part]}
            case _:
                # Encrypted thinking.
                return {}

    def delta(self, kind: str, event: Event) -> dict[str, Any]:
        """Return the delta for more of a block or its end, possibly empty."""
        match kind:
            case "text":
                self.length += len(event.text)
                return {"content": event.text}
            case "citation":
                self.annotations.append(annotation(event.citation, self._before))
                return {}
            case "thinking":
                return reasoning_fields(self._thinking, event.thinking)
            case "refusal":
                return {"refusal": event.refusal}
            case "input" if call := self._calls.get(event.block):
                return {"tool_calls": [call.more(event.input)]}
            case "block_stop" if call := self._calls.pop(event.block, None):
                return {"tool_calls": [call.more("{}")]} if call.lacks_arguments else {}
            case "opaque" if fields := native_fields(event.opaque):
                if call := self._calls.get(event.block):
                    return {"tool_calls": [call.further(fields)]}
                return fields
            case _:
                # Signatures, and arguments of blocks of another dialect.
                return {}


class _Call:
    """One tool call of a choice; `index` counts the calls, not the blocks."""

    __slots__ = ("_index", "_is_freeform", "lacks_arguments")

    def __init__(self, index: int, use: ToolUse) -> None:
        self._index = index
        self._is_freeform = use.freeform
        # Clients parse the arguments at the end, so they must be at least an object.
        self.lacks_arguments = not use.input and not use.freeform

    def opening(self, block: Block) -> dict[str, Any]:
        """Return the first delta of the call, which alone has id, type and name."""
        return {"index": self._index, **tool_call(block, block.tool_use.input)}

    def further(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a delta with unknown fields."""
        return {**fields, "index": self._index}

    def more(self, text: str) -> dict[str, Any]:
        """Return a delta with more of the arguments."""
        self.lacks_arguments = False
        if self._is_freeform:
            return {"index": self._index, "custom": {"input": text}}
        return {"index": self._index, "function": {"arguments": text}}

"""Parse the events of one response's output items. Pure.

A server may omit events: content that only the end of an item contains is added then.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.conversation.v1.conversation_pb2 import Block, Thinking
from gateway.inference.v1.inference_pb2 import Event
from services.inference.providers.bounds import Bounds, dump
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai_responses import output
from services.inference.providers.openai_responses.blocks import Blocks, DeltaKind, Group, OpenBlock
from services.inference.providers.openai_responses.output import CALLS, opaque, text_of


class _Item:
    """An item, as far as it has been received.

    Attributes:
        given: the item's JSON at its start.
        group: its blocks.
        block: its block; None for a message.
        parts: of a message, the blocks of its parts by index.
        is_over: whether it has ended.
    """

    __slots__ = ("block", "given", "group", "is_over", "parts")

    def __init__(self, given: Json, group: Group) -> None:
        self.given = given
        self.group = group
        self.block: OpenBlock | None = None
        self.parts: dict[int, OpenBlock] = {}
        self.is_over = False


class OutputItems:
    """Parses events of output items, and whole items.

    Args:
        bounds: the bounds of the answer.

    Attributes:
        message: unknown fields of the latest message.
        kinds: kinds of the blocks so far.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._blocks = Blocks(bounds)
        self._bounds = bounds
        self._items: dict[int, _Item] = {}
        self._last = 0
        self.message: Json = {}
        self.kinds = self._blocks.kinds

    def end(self, items: object, out: list[Event]) -> None:
        """Handle the end of the response.

        Args:
            items: the response's output; content that the events omitted is added from it.
            out: events are appended.
        """
        for index, item in enumerate(items if isinstance(items, list) else ()):
            self.read(index, item, out)
        for item in list(self._items.values()):
            if not item.is_over and item.block is not None and item.block.block is None:
                self._blocks.fill(item.block, Block(opaque=opaque(item.given)), out)
        self._blocks.end_all(out)

    def read(self, index: int, fields: Json, out: list[Event]) -> None:
        """Parse a whole item; add the content that its events have omitted."""
        item = self._items.get(index) or self._begin(index, fields, out)
        if item.is_over:
            return
        item.is_over = True
        kind = fields["type"]
        if item.block is None:
            self._end_message(item, fields, out)
        elif kind == "reasoning":
            self._end_reasoning(item.block, fields, out)
        elif kind in CALLS:
            self._end_call(item.block, fields, out)
        elif item.block.block is None:
            self._blocks.fill(item.block, Block(opaque=opaque(fields)), out)
        self._blocks.end_group(item.group, out)

    def _added(self, event: Json, out: list[Event]) -> None:
        index = self._index(event)
        if index not in self._items:
            self._begin(index, event["item"], out)

    def _done(self, event: Json, out: list[Event]) -> None:
        self.read(self._index(event), event["item"], out)

    def _begin(self, index: int, fields: Json, out: list[Event]) -> _Item:
        item = self._items[index] = _Item(fields, self._blocks.begin_group())
        kind = fields["type"]
        if kind == "message":
            return item
        block: Block | None = None
        if kind == "reasoning":
            block = Block(thinking=Thinking())
        elif kind in CALLS:
            block = output.start_of_call(fields)
        item.block = self._blocks.begin(item.group, block, out)
        return item

    def _end_message(self, item: _Item, fields: Json, out: list[Event]) -> None:
        for place, part in enumerate(fields.get("content") or ()):
            self._end_part(item, place, part, out)
        self.message = output.fields_of_message(fields)

    def _end_reasoning(self, block: OpenBlock, fields: Json, out: list[Event]) -> None:
        if not block.has_said:
            text = output.BREAK.join(filter(None, output.texts_of_reasoning(fields)))
            self._say(block, "thinking", text, out)
        self._say(block, "signature", text_of(fields, "encrypted_content"), out)
        self._blocks.keep(block, output.fields_of_reasoning(fields), out)

    def _end_call(self, block: OpenBlock, item_fields: Json, out: list[Event]) -> None:
        if not block.has_said:
            text = text_of(item_fields, CALLS[item_fields["type"]])
            # A function without arguments: other dialects need valid JSON.
            text = text or ("{}" if item_fields["type"] == "function_call" else "")
            self._say(block, "input", text, out)
        extra_json = block.block.extra.json if block.block is not None else b""
        fields = output.fields_of_call(item_fields)
        if fields and dump(fields) != extra_json:
            begun = self._bounds.parse(extra_json) if extra_json else {}
            new = {name: value for name, value in fields.items() if name not in begun}
            self._blocks.keep(block, new, out)

    def _part_added(self, event: Json, out: list[Event]) -> None:
        item = self._item(event)
        place = event.get("content_index") or 0
        if item is not None and item.block is None and place not in item.parts:
            self._begin_part(item, place, event["part"], out)

    def _part_done(self, event: Json, out: list[Event]) -> None:
        item = self._item(event)
        if item is not None and item.block is None:
            self._end_part(item, event.get("content_index") or 0, event["part"], out)

    def _begin_part(self, item: _Item, place: int, part: Json, out: list[Event]) -> OpenBlock:
        is_known = part.get("type") in output.KINDS
        block = output.start_of_part(part) if is_known else None
        begun = self._blocks.begin(item.group, block, out)
        item.parts[place] = begun
        return begun

    def _end_part(self, item: _Item, place: int, part: Json, out: list[Event]) -> None:
        block = item.parts.get(place) or self._begin_part(item, place, part, out)
        if block.is_over:
            return
        if block.block is None:
            self._blocks.fill(block, output.start_of_part(part), out)
        elif not block.has_said:
            kind: DeltaKind = "refusal" if block.kind == "refusal" else "text"
            self._say(block, kind, text_of(part, kind), out, part)
        self._blocks.keep(block, _untold(part, block.annotations), out)
        self._blocks.end(block, out)

    def _text_delta(self, event: Json, out: list[Event]) -> None:
        block = self._part(event, "output_text", out)
        self._say(block, "text", text_of(event, "delta"), out, event)

    def _text_done(self, event: Json, out: list[Event]) -> None:
        block = self._part(event, "output_text", out)
        if not block.has_said:
            self._say(block, "text", text_of(event, "text"), out, event)

    def _refusal_delta(self, event: Json, out: list[Event]) -> None:
        block = self._part(event, "refusal", out)
        self._say(block, "refusal", text_of(event, "delta"), out)

    def _refusal_done(self, event: Json, out: list[Event]) -> None:
        block = self._part(event, "refusal", out)
        if not block.has_said:
            self._say(block, "refusal", text_of(event, "refusal"), out)

    def _annotation(self, event: Json, out: list[Event]) -> None:
        block = self._part(event, "output_text", out)
        block.annotations += 1
        self._blocks.keep(block, {"annotations": [event["annotation"]]}, out)

    def _thinking_delta(self, event: Json, out: list[Event]) -> None:
        self._think(event, text_of(event, "delta"), out)

    def _thinking_done(self, event: Json, out: list[Event]) -> None:
        self._think(event, text_of(event, "text"), out, is_all=True)

    def _think(self, event: Json, text: str, out: list[Event], *, is_all: bool = False) -> None:
        block = self._block(event, "thinking", out)
        # `response.reasoning_text.delta` numbers its parts separately from those of the summary.
        where = str(event["type"]).rpartition(".")[0], event.get("summary_index", -1)
        part = *where, event.get("content_index", -1)
        if not text or (is_all and part in block.parts):
            return
        if part not in block.parts and block.has_said:
            text = output.BREAK + text
        block.parts.add(part)
        self._say(block, "thinking", text, out)

    def _input_delta(self, event: Json, out: list[Event]) -> None:
        self._say(self._block(event, "tool_use", out), "input", text_of(event, "delta"), out)

    def _input_done(self, event: Json, out: list[Event]) -> None:
        block = self._block(event, "tool_use", out)
        if not block.has_said:
            text = text_of(event, "arguments") or text_of(event, "input")
            self._say(block, "input", text, out)

    def _say(
        self,
        block: OpenBlock,
        kind: DeltaKind,
        text: str,
        out: list[Event],
        content: Json | None = None,
    ) -> None:
        logprobs = (content or {}).get("logprobs")
        if not (text or logprobs):
            return
        self._blocks.say(block, kind, text, out, dump({"content": logprobs}) if logprobs else b"")

    def _part(self, event: Json, kind: str, out: list[Event]) -> OpenBlock:
        """Return the block of a content part; create it if its start was omitted."""
        item = self._item(event)
        if item is None:
            item = self._begin(self._index(event), {"type": "message"}, out)
        place = event.get("content_index") or 0
        if not isinstance(place, int) or item.block is not None:
            raise ValueError("a text of no message")
        block = item.parts.get(place)
        if block is None:
            return self._begin_part(item, place, {"type": kind}, out)
        if not block.kind:
            self._blocks.fill(block, output.start_of_part({"type": kind}), out)
        elif block.kind != output.KINDS[kind]:
            raise ValueError("a text of another part")
        return block

    def _block(self, event: Json, kind: str, out: list[Event]) -> OpenBlock:
        """Return the block of an item that has only one.

        Raises:
            ValueError: the item is of another kind, or a call that has not begun.
        """
        item = self._item(event)
        if item is None and kind == "thinking":
            item = self._begin(self._index(event), {"type": "reasoning"}, out)
        begun = None if item is None else item.block
        if begun is None or begun.kind != kind:
            raise ValueError(f"no {kind} at this index")
        return begun

    def _item(self, event: Json) -> _Item | None:
        return self._items.get(self._index(event))

    def _index(self, event: Json) -> int:
        """Return the index of an event's item; by default the item of the event before.

        Raises:
            ValueError: the index is invalid.
        """
        index: Any = event.get("output_index", self._last)
        if type(index) is not int or index < 0:
            raise ValueError("no index")
        self._last = index
        return index


def _untold(part: Json, annotations: int) -> Json:
    """Return the unknown fields of a part, without the first `annotations` annotations."""
    fields = output.fields_of_part(part)
    if listed := fields.pop("annotations", None):
        if missing := listed[annotations:]:
            fields["annotations"] = missing
    return fields


def _nothing(items: OutputItems, event: Json, out: list[Event]) -> None:
    """Do nothing: the deltas contain the texts."""


# By event type. Unbound functions: bound methods in each `OutputItems` would form a reference
# cycle.
HANDLERS: Mapping[str, Callable[[OutputItems, Json, list[Event]], None]] = {
    "response.output_item.added": OutputItems._added,
    "response.output_item.done": OutputItems._done,
    "response.content_part.added": OutputItems._part_added,
    "response.content_part.done": OutputItems._part_done,
    "response.output_text.delta": OutputItems._text_delta,
    "response.output_text.done": OutputItems._text_done,
    "response.output_text.annotation.added": OutputItems._annotation,
    "response.refusal.delta": OutputItems._refusal_delta,
    "response.refusal.done": OutputItems._refusal_done,
    "response.reasoning_summary_part.added": _nothing,
    "response.reasoning_summary_part.done": _nothing,
    "response.reasoning_summary_text.delta": OutputItems._thinking_delta,
    "response.reasoning_summary_text.done": OutputItems._thinking_done,
    "response.reasoning_text.delta": OutputItems._thinking_delta,
    "response.reasoning_text.done": OutputItems._thinking_done,
    "response.function_call_arguments.delta": OutputItems._input_delta,
    "response.function_call_arguments.done": OutputItems._input_done,
    "response.custom_tool_call_input.delta": OutputItems._input_delta,
    "response.custom_tool_call_input.done": OutputItems._input_done,
}

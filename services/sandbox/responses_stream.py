"""The events of a streamed response, in OpenAI's order, with sequence numbers.

Source: https://platform.openai.com/docs/api-reference/responses-streaming and the types of the
official SDK, `openai.types.responses`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.conversation.v1.conversation_pb2 import Block
from services.sandbox.model.play import (
    BlockEnded,
    BlockStarted,
    ChoiceEnded,
    Delta,
    Opened,
    Step,
)
from services.sandbox.responses_items import Item, Json, Writer, kind_of

# Deltas are padded to a multiple of this number of characters.
_PADDED_TO = 16


class EventWriter:
    """Writes the events of one response, step by step.

    Args:
        writer: writes the items and the response object.
        items: the items of the answer, in order.
        pads: whether deltas have `obfuscation`.
    """

    def __init__(self, writer: Writer, items: Sequence[Item], *, pads: bool) -> None:
        self._writer = writer
        self._items = items
        self._pads = pads
        self._number = 0  # of the next event
        self._at = -1  # index of the current item
        self._part = 0  # index of the current content part
        self._output: list[Json] = []  # completed items

    def write(self, step: Step) -> list[Json]:
        """Return the events of one step."""
        return [self._numbered(event) for event in self._events(step)]

    def failed(self, error: Json) -> Json:
        """Return the event of a failure in the middle of an answer."""
        response = self._writer.response("failed", self._output, error)
        return self._numbered({"type": "response.failed", "response": response})

    def _numbered(self, event: Json) -> Json:
        number, self._number = self._number, self._number + 1
        return {**event, "sequence_number": number}

    def _events(self, step: Step) -> Iterator[Json]:
        match step:
            case Opened():
                for kind in ("created", "in_progress"):
                    response = self._writer.response("in_progress")
                    yield {"type": f"response.{kind}", "response": response}
            case BlockStarted(_, _, block):
                yield from self._start(block)
            case Delta(_, _, block, text):
                yield from self._delta(block, text)
            case BlockEnded(_, _, block):
                yield from self._end(block)
            case ChoiceEnded():
                yield from self._close_message()
                status = self._writer.final_status
                response = self._writer.response(status, self._output)
                yield {"type": f"response.{status}", "response": response}

    @property
    def _item(self) -> Item:
        return self._items[self._at]

    @property
    def _place(self) -> Json:
        return {"item_id": self._item.id, "output_index": self._at}

    def _is_open(self) -> bool:
        return len(self._output) <= self._at

    def _start(self, block: Block) -> Iterator[Json]:
        kind = kind_of(block)
        if not (kind == "message" and self._at >= 0 and self._is_open()):
            yield from self._close_message()
            self._at += 1
            self._part = 0
            item = self._writer.begun(self._item)
            yield self._about("response.output_item.added", item=item)
        if kind == "message":
            part = self._writer.part(Block(refusal="") if block.refusal else Block(text=""))
            yield self._event("content_part.added", content_index=self._part, part=part)
        elif block.HasField("thinking") and self._writer.shows_thoughts:
            part = {"type": "summary_text", "text": ""}
            yield self._event("reasoning_summary_part.added", summary_index=0, part=part)
        elif kind == "web_search_call":
            for state in ("in_progress", "searching", "completed"):
                yield self._event(f"web_search_call.{state}")

    def _delta(self, block: Block, text: str) -> Iterator[Json]:
        match block.WhichOneof("kind"):
            case "text":
                logprobs = self._writer.logprobs([text])
                where = {"content_index": self._part, "logprobs": logprobs}
                yield self._delta_event("output_text.delta", text, where)
            case "refusal":
                yield self._delta_event("refusal.delta", text, {"content_index": self._part})
            case "thinking" if self._writer.shows_thoughts:
                yield self._delta_event("reasoning_summary_text.delta", text, {"summary_index": 0})
            case "tool_use":
                is_custom = block.tool_use.freeform
                kind = "custom_tool_call_input" if is_custom else "function_call_arguments"
                yield self._delta_event(f"{kind}.delta", text, {})

    def _end(self, block: Block) -> Iterator[Json]:
        kind = block.WhichOneof("kind")
        if kind_of(block) == "message":
            yield from self._end_part(block)
            return
        if kind == "thinking" and self._writer.shows_thoughts:
            text = block.thinking.text
            part = {"type": "summary_text", "text": text}
            yield self._event("reasoning_summary_text.done", summary_index=0, text=text)
            yield self._event("reasoning_summary_part.done", summary_index=0, part=part)
        elif kind == "tool_use" and block.tool_use.freeform:
            yield self._event("custom_tool_call_input.done", input=block.tool_use.input)
        elif kind == "tool_use":
            done = {"name": block.tool_use.name, "arguments": block.tool_use.input}
            yield self._event("function_call_arguments.done", **done)
        yield self._done()

    def _end_part(self, block: Block) -> Iterator[Json]:
        part = self._writer.part(block)
        where = {"content_index": self._part}
        for number, one in enumerate(self._writer.annotations(block)):
            yield self._event(
                "output_text.annotation.added", annotation_index=number, annotation=one, **where
            )
        if block.HasField("refusal"):
            yield self._event("refusal.done", refusal=block.refusal, **where)
        else:
            content = {"text": block.text, "logprobs": part["logprobs"]}
            yield self._event("output_text.done", **content, **where)
        yield self._event("content_part.done", part=part, **where)
        self._part += 1

    def _close_message(self) -> Iterator[Json]:
        """End the current message, if one is open."""
        if self._at >= 0 and self._is_open():
            yield self._done()

    def _done(self) -> Json:
        is_last = self._at + 1 == len(self._items)
        item = self._writer.item(self._item, is_last=is_last)
        self._output.append(item)
        return self._about("response.output_item.done", item=item)

    def _about(self, kind: str, **fields: Any) -> Json:
        return {"type": kind, "output_index": self._at, **fields}

    def _event(self, kind: str, **fields: Any) -> Json:
        return {"type": f"response.{kind}", **self._place, **fields}

    def _delta_event(self, kind: str, text: str, fields: Json) -> Json:
        event = {"type": f"response.{kind}", **self._place, **fields, "delta": text}
        if self._pads:
            event["obfuscation"] = "x" * (_PADDED_TO - len(text) % _PADDED_TO)
        return event

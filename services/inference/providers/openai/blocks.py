"""Sequential blocks of one choice from interleaved deltas.

Chat completions number tool calls, and the deltas of several may be interleaved with each other and
with text. Canonical events contain one block after the other. The deltas of a later block are
therefore queued until the open block is complete. A text or thinking block is complete when another
block begins. A tool call is complete when its arguments are a complete JSON value, else at the end
of the choice.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from gateway.conversation.v1.conversation_pb2 import (
    DIALECT_OPENAI,
    Block,
    Citation,
    Opaque,
    ToolUse,
)
from gateway.inference.v1.inference_pb2 import BlockStop, Event
from services.common.ids import IdGenerator
from services.inference.providers.bounds import Bounds, dump
from services.inference.providers.delta_templates import delta_of
from services.inference.providers.gemini import signatures
from services.inference.providers.openai.reasoning_details import ReceivedDetails
from services.inference.stream.pieces import keep

TextKind = Literal["text", "thinking", "refusal"]
_STOP = BlockStop()


class _Waiting:
    """Queued deltas of a block that has not begun, with their log probabilities."""

    __slots__ = ("_bounds", "_pieces")

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._pieces: list[tuple[list[str], bytes]] = []

    def add(self, text: str, logprobs: bytes) -> None:
        """Append a delta."""
        if not isinstance(text, str):
            raise TypeError("no text")
        if self._pieces and not (logprobs or self._pieces[-1][1]):
            keep(self._pieces[-1][0], text)
            return
        self._bounds.part()
        self._pieces.append(([text], logprobs))

    def text(self) -> str:
        """Return the text of all deltas."""
        return "".join("".join(texts) for texts, _ in self._pieces)

    def take(self) -> Iterator[tuple[str, bytes]]:
        """Yield and remove all deltas; those without log probabilities are joined."""
        pieces, self._pieces = self._pieces, []
        for texts, logprobs in pieces:
            yield "".join(texts), logprobs


# The arguments of a call without any.
EMPTY = "{}"


@dataclass(slots=True)
class ToolCall:
    """A tool call, as far as it has been received.

    Attributes:
        waiting: arguments that have been received but not sent.
        id: the provider's id, or "" if it has not sent one yet.
        name: the tool's name, as far as it has been received.
        is_named: whether the name is complete; the block begins with it, or with the end of the
            choice.
        freeform: whether the arguments are free text.
        said: the arguments that have been sent.
        holds_empty: whether the arguments began with `{}`, which is held until the end of the call:
            some servers send it before the arguments.
        queued: whether the call has its place among the blocks.
        closed: whether its block has ended.
        extra: unknown fields.
    """

    waiting: _Waiting
    id: str = ""
    name: str = ""
    is_named: bool = False
    freeform: bool = False
    said: list[str] = field(default_factory=list)
    holds_empty: bool = False
    queued: bool = False
    closed: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def has_arguments(self) -> bool:
        """Return whether any arguments have been received."""
        return bool(self.said or self.holds_empty or self.waiting.text())

    def is_empty(self) -> bool:
        """Return whether the arguments are `{}` so far."""
        return self.holds_empty and not any(self.said) and not self.waiting.text()

    def is_whole(self) -> bool:
        """Return whether only white space can follow the arguments that have been sent."""
        return self.is_empty() or (not self.freeform and _is_json("".join(self.said)))

    def is_received(self) -> bool:
        """Return whether only white space can follow the arguments that have been received."""
        received = "".join(self.said) + self.waiting.text()
        return not self.freeform and _is_json(received or EMPTY * self.holds_empty)


@dataclass(slots=True)
class _Text:
    """Text that followed an incomplete tool call."""

    kind: TextKind
    waiting: _Waiting


@dataclass(slots=True)
class _Part:
    """A content part of an unknown type that followed an incomplete tool call."""

    json: bytes


class Blocks:
    """Appends the block events of one choice to the `out` list of each call.

    Args:
        choice: the choice's index.
        new_id: generates the id of a tool call for which the provider sent none.
        bounds: the bounds of the answer.
        translates: whether the caller's dialect is another one.

    Attributes:
        kinds: the kinds of blocks so far.
        thoughts_field: the provider's name of its thinking field, if reported to callers.
        details: for callers of another dialect, who do not receive unknown fields: the signed
            thinking of the model, which is sent, as are Gemini's signatures of tool calls, in
            signatures of thinking blocks; None before any.
        citations: likewise, the citations of the text, which are written at its end; those of no
            range are of all of it.
    """

    def __init__(
        self, choice: int, new_id: IdGenerator, bounds: Bounds, *, translates: bool
    ) -> None:
        self.kinds: set[TextKind | Literal["tool", "part"]] = set()
        self.thoughts_field = ""
        self.details: ReceivedDetails | None = None
        self.citations: list[Citation] = []
        self._choice = choice
        self._new_id = new_id
        self._bounds = bounds
        self._translates = translates
        self._texts = 0  # text blocks so far
        self._length = 0  # characters of the open text, for callers of other dialects
        self._call_ids: set[str] = set()
        self._number = 0  # of the open block, or of the next one
        self._open: TextKind | ToolCall | None = None
        # Blocks after the open one, in order: queued behind an incomplete call, or from the first
        # call without a name on.
        self._pending: deque[_Text | _Part | ToolCall] = deque()

    def text(self, kind: TextKind, text: str, logprobs: bytes, out: list[Event]) -> None:
        """Add a delta of text, thinking or refusal."""
        if self._open is None:
            self._begin(kind, out)
        elif self._open != kind:
            self._close_finished(out)
            if isinstance(self._open, ToolCall):
                last = self._pending[-1] if self._pending else None
                if not isinstance(last, _Text) or last.kind != kind:
                    last = _Text(kind, _Waiting(self._bounds))
                    self._pending.append(last)
                last.waiting.add(text, logprobs)
                return
            self._close(out)
            self._begin(kind, out)
        event = Event(choice=self._choice, block=self._number, logprobs=logprobs)
        if kind == "text":
            self._length += len(text)
            event.text = text
        elif kind == "thinking":
            event.thinking = text
        else:
            event.refusal = text
        out.append(event)

    def tool(self, call: ToolCall, piece: str, logprobs: bytes, out: list[Event]) -> None:
        """Add a delta of a call's arguments; it may be empty.

        Each call is one object for all its deltas; the caller sets the id and name that the
        provider sent before.

        Raises:
            ValueError: the arguments were already complete.
        """
        if self._open is call:
            if piece or logprobs:
                self._say_input(call, piece, logprobs, out)
            return
        if call.closed:
            if piece.strip():
                raise ValueError("arguments go on after their end")
            return
        if not call.queued:
            call.queued = True
            self._close_finished(out)
            self._pending.append(call)
        if piece or logprobs:
            call.waiting.add(piece, logprobs)
        if call.is_named and call is self._pending[0] and not isinstance(self._open, ToolCall):
            self._close(out)
            self._write_pending(self._pending.popleft(), out)

    def keep(self, call: ToolCall, fields: dict[str, Any], out: list[Event]) -> None:
        """Add unknown fields of a call; unchanged values are ignored."""
        changed = {name: value for name, value in fields.items() if call.extra.get(name) != value}
        if not changed:
            return
        json = self._bounds.keep_delta(changed)
        call.extra |= changed
        if self._open is call:
            opaque = Opaque(dialect=DIALECT_OPENAI, json=json)
            out.append(Event(choice=self._choice, block=self._number, opaque=opaque))

    def part(self, json: bytes, out: list[Event]) -> None:
        """Add a content part of an unknown type."""
        self._close_finished(out)
        if isinstance(self._open, ToolCall) or self._pending:
            self._pending.append(_Part(json))
        else:
            self._say_part(json, out)

    def continue_delta(self, pieces: Sequence[bytes], out: list[Event]) -> None:
        """Continue the delta of the last event with further insides of JSON strings."""
        call = self._open if isinstance(self._open, ToolCall) else None
        kind = self._open if isinstance(self._open, str) else "input"
        event = delta_of(self._choice, self._number, kind, pieces)
        if call is not None:
            keep(call.said, event.input)
        elif self._translates:
            self._length += len(event.text)
        out.append(event)

    def new_call(self) -> ToolCall:
        """Return an empty tool call."""
        return ToolCall(_Waiting(self._bounds))

    def end(self, out: list[Event]) -> bool:
        """Close and write all remaining blocks; return whether every call had a name."""
        self._close(out)
        while self._pending:
            pending = self._pending.popleft()
            if isinstance(pending, ToolCall) and not pending.name:
                return False
            self._write_pending(pending, out)
            self._close(out)
        if self.details is not None and (state := self.details.take()):
            self._say_whole(Block(redacted_thinking=state), out)
        return True

    def _close_finished(self, out: list[Event]) -> None:
        """Close the open block if it is complete and no others are queued."""
        if self._pending:
            return
        if isinstance(self._open, ToolCall) and not self._open.is_whole():
            return
        self._close(out)

    def _write_pending(self, pending: _Text | _Part | ToolCall, out: list[Event]) -> None:
        """Open a queued block and write its content."""
        if isinstance(pending, _Part):
            self._say_part(pending.json, out)
        elif isinstance(pending, ToolCall):
            self._begin_call(pending, out)
            for text, logprobs in pending.waiting.take():
                self._say_input(pending, text, logprobs, out)
        else:
            self._begin(pending.kind, out)
            for text, logprobs in pending.waiting.take():
                self.text(pending.kind, text, logprobs, out)

    def _begin(self, kind: TextKind, out: list[Event]) -> None:
        self._bounds.part()
        event = Event(choice=self._choice, block=self._number)
        block = event.block_start
        if kind == "text":
            block.text = ""
        elif kind == "refusal":
            block.refusal = ""
        else:
            block.thinking.field = self.thoughts_field
            block.thinking.SetInParent()
        self._open, self._length = kind, 0
        self._texts += kind == "text"
        self.kinds.add(kind)
        out.append(event)

    def _begin_call(self, call: ToolCall, out: list[Event]) -> None:
        if self._translates:
            if self.details is not None and (state := self.details.take()):
                self._say_whole(Block(redacted_thinking=state), out)
            if signature := signatures.from_chat(call.extra):
                carried = signatures.packed(signatures.CALL, signature)
                self._say_whole(Block(redacted_thinking=carried), out)
        call_id = call.id
        if not call_id or call_id in self._call_ids:
            # Some servers send the same id for each call of a tool.
            call_id = self._new_id("call_")
        self._call_ids.add(call_id)
        use = ToolUse(id=call_id, name=call.name, freeform=call.freeform)
        self._open = call
        self.kinds.add("tool")
        block = Block(tool_use=use)
        if call.extra:
            block.extra.CopyFrom(Opaque(dialect=DIALECT_OPENAI, json=dump(call.extra)))
        out.append(Event(choice=self._choice, block=self._number, block_start=block))

    def _say_part(self, json: bytes, out: list[Event]) -> None:
        self.kinds.add("part")
        self._say_whole(Block(opaque=Opaque(dialect=DIALECT_OPENAI, json=json)), out)

    def _say_whole(self, block: Block, out: list[Event]) -> None:
        out.append(Event(choice=self._choice, block=self._number, block_start=block))
        out.append(Event(choice=self._choice, block=self._number, block_stop=_STOP))
        self._number += 1

    def _say_input(self, call: ToolCall, text: str, logprobs: bytes, out: list[Event]) -> None:
        keep(call.said, text)
        out.append(Event(choice=self._choice, block=self._number, input=text, logprobs=logprobs))

    def _close(self, out: list[Event]) -> None:
        if self._open is None:
            return
        if self._open == "text" and self.citations:
            self._cite(out)
        if isinstance(self._open, ToolCall) and self._open.is_empty():
            self._say_input(self._open, EMPTY, b"", out)
        if self._open == "thinking" and self.details is not None:
            if state := self.details.take():
                out.append(Event(choice=self._choice, block=self._number, signature=state))
        out.append(Event(choice=self._choice, block=self._number, block_stop=_STOP))
        if isinstance(self._open, ToolCall):
            self._open.closed = True
        self._open = None
        self._number += 1

    def _cite(self, out: list[Event]) -> None:
        """Write the citations of the text that ends, if it is the first: others have no offsets."""
        if self._texts > 1 or not self._length:
            return
        for citation in self.citations:
            citation.end_index = citation.end_index or self._length
            out.append(Event(choice=self._choice, block=self._number, citation=citation))
        self.citations.clear()


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True

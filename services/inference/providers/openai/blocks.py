"""The blocks of one choice, put in order: one open at a time, whatever order pieces come in.

Chat completions number tool calls, and pieces of several may come interleaved with each
other and with text. The canonical events want each block whole before the next one
begins. So the pieces of a later block wait until the open one is done. Text and
thinking are done when something else comes. A tool call is done when its arguments
are a whole JSON value, else at the end of the choice.
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
from services.inference.stream.pieces import keep

TextKind = Literal["text", "thinking", "refusal"]
_STOP = BlockStop()


class _Waiting:
    """Pieces that wait until their block begins, with their log probabilities."""

    __slots__ = ("_bounds", "_pieces")

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._pieces: list[tuple[list[str], bytes]] = []

    def add(self, text: str, logprobs: bytes) -> None:
        """Add a piece."""
        if not isinstance(text, str):
            raise TypeError("no text")
        if self._pieces and not (logprobs or self._pieces[-1][1]):
            keep(self._pieces[-1][0], text)
            return
        self._bounds.part()
        self._pieces.append(([text], logprobs))

    def take(self) -> Iterator[tuple[str, bytes]]:
        """Return all pieces, those without log probabilities joined; none are left."""
        pieces, self._pieces = self._pieces, []
        for texts, logprobs in pieces:
            yield "".join(texts), logprobs


@dataclass(slots=True)
class ToolCall:
    """A call of a tool as far as it has come.

    Attributes:
        waiting: what has come of the arguments and not gone out.
        id: the provider's, or "" while it has told none.
        name: the tool's; without it the call cannot begin.
        freeform: whether the arguments are free text.
        said: the arguments that have gone out.
        queued: whether it has its place among the blocks.
        closed: whether its block has ended.
        extra: what it has no name for.
    """

    waiting: _Waiting
    id: str = ""
    name: str = ""
    freeform: bool = False
    said: list[str] = field(default_factory=list)
    queued: bool = False
    closed: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def is_whole(self) -> bool:
        """Return whether nothing can follow but white space."""
        if self.freeform:
            return False
        try:
            orjson.loads("".join(self.said))
        except orjson.JSONDecodeError:
            return False
        return True


@dataclass(slots=True)
class _Text:
    """Text that came behind a tool call that is not done."""

    kind: TextKind
    waiting: _Waiting


@dataclass(slots=True)
class _Part:
    """A content part without a name that came behind a tool call that is not done."""

    json: bytes


class Blocks:
    """Writes the block events of one choice into lists that it is handed.

    Args:
        choice: its number.
        new_id: makes the id of a tool call that the provider gave none.
        bounds: what may still come of the answer.

    Attributes:
        kinds: what there has been so far.
        thoughts_field: what the provider calls its thoughts, where that is told callers.
        tells_signatures: whether thinking blocks carry Gemini's signatures of calls to callers
            who do not see a call's further fields.
    """

    def __init__(self, choice: int, new_id: IdGenerator, bounds: Bounds) -> None:
        self.kinds: set[TextKind | Literal["tool", "part"]] = set()
        self.thoughts_field = ""
        self.tells_signatures = False
        self._choice = choice
        self._new_id = new_id
        self._bounds = bounds
        self._texts = 0  # text blocks so far
        self._number = 0  # of the block that is open, or comes next
        self._open: TextKind | ToolCall | None = None
        # What comes after the open block, in order: behind a call that is not done, or
        # from one on that has no name yet.
        self._pending: deque[_Text | _Part | ToolCall] = deque()

    def text(self, kind: TextKind, text: str, logprobs: bytes, out: list[Event]) -> None:
        """Take a piece of text, thinking or refusal."""
        if self._open != kind:
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
        self._say(kind, text, logprobs, out)

    def tool(self, call: ToolCall, piece: str, logprobs: bytes, out: list[Event]) -> None:
        """Take a piece of a call's arguments, possibly empty.

        Each call is one object, the same at each of its pieces; what the provider tells
        of its id and name is set there before.

        Raises:
            ValueError: the arguments were whole already.
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
        if call.name and call is self._pending[0] and not isinstance(self._open, ToolCall):
            self._close(out)
            self._write_pending(self._pending.popleft(), out)

    def keep(self, call: ToolCall, fields: dict[str, Any], out: list[Event]) -> None:
        """Take fields of a call that have no name; those that say what is known say nothing."""
        changed = {name: value for name, value in fields.items() if call.extra.get(name) != value}
        if not changed:
            return
        json = self._bounds.keep_delta(changed)
        call.extra |= changed
        if self._open is call:
            opaque = Opaque(dialect=DIALECT_OPENAI, json=json)
            out.append(Event(choice=self._choice, block=self._number, opaque=opaque))

    def part(self, json: bytes, out: list[Event]) -> None:
        """Take a content part without a name."""
        self._close_finished(out)
        if isinstance(self._open, ToolCall) or self._pending:
            self._pending.append(_Part(json))
        else:
            self._say_part(json, out)

    def cite(self, citations: Sequence[Citation], out: list[Event]) -> None:
        """Add citations to the text, which has to be the only one: their places are of it all."""
        if self._open == "text" and self._texts == 1:
            choice, block = self._choice, self._number
            out += (Event(choice=choice, block=block, citation=one) for one in citations)

    def go_on(self, pieces: Sequence[bytes], out: list[Event]) -> None:
        """Take more of what the last event out of here said, the insides of JSON strings."""
        call = self._open if isinstance(self._open, ToolCall) else None
        kind = self._open if isinstance(self._open, str) else "input"
        event = delta_of(self._choice, self._number, kind, pieces)
        if call is not None:
            keep(call.said, event.input)
        out.append(event)

    def new_call(self) -> ToolCall:
        """Return a call of which nothing has come."""
        return ToolCall(_Waiting(self._bounds))

    def end(self, out: list[Event]) -> bool:
        """Close and write all that is left; return whether every call had a name."""
        self._close(out)
        while self._pending:
            pending = self._pending.popleft()
            if isinstance(pending, ToolCall) and not pending.name:
                return False
            self._write_pending(pending, out)
            self._close(out)
        return True

    def _close_finished(self, out: list[Event]) -> None:
        """Close the open block if it is done, unless others wait behind it already."""
        if self._pending:
            return
        if isinstance(self._open, ToolCall) and not self._open.is_whole():
            return
        self._close(out)

    def _write_pending(self, pending: _Text | _Part | ToolCall, out: list[Event]) -> None:
        """Open a block that waited and write what it holds."""
        if isinstance(pending, _Part):
            self._say_part(pending.json, out)
        elif isinstance(pending, ToolCall):
            self._begin_call(pending, out)
            for text, logprobs in pending.waiting.take():
                self._say_input(pending, text, logprobs, out)
        else:
            self._begin(pending.kind, out)
            for text, logprobs in pending.waiting.take():
                self._say(pending.kind, text, logprobs, out)

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
        self._open = kind
        self._texts += kind == "text"
        self.kinds.add(kind)
        out.append(event)

    def _begin_call(self, call: ToolCall, out: list[Event]) -> None:
        if self.tells_signatures and (signature := signatures.from_chat(call.extra)):
            carried = signatures.packed(signatures.CALL, signature)
            self._say_whole(Block(redacted_thinking=carried), out)
        call.id = call.id or self._new_id("call_")
        use = ToolUse(id=call.id, name=call.name, freeform=call.freeform)
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

    def _say(self, kind: TextKind, text: str, logprobs: bytes, out: list[Event]) -> None:
        choice, block = self._choice, self._number
        if kind == "text":
            event = Event(choice=choice, block=block, text=text, logprobs=logprobs)
        elif kind == "thinking":
            event = Event(choice=choice, block=block, thinking=text, logprobs=logprobs)
        else:
            event = Event(choice=choice, block=block, refusal=text, logprobs=logprobs)
        out.append(event)

    def _say_input(self, call: ToolCall, text: str, logprobs: bytes, out: list[Event]) -> None:
        keep(call.said, text)
        out.append(Event(choice=self._choice, block=self._number, input=text, logprobs=logprobs))

    def _close(self, out: list[Event]) -> None:
        if self._open is None:
            return
        out.append(Event(choice=self._choice, block=self._number, block_stop=_STOP))
        if isinstance(self._open, ToolCall):
            self._open.closed = True
        self._open = None
        self._number += 1

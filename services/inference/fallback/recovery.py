"""An answer that broke off in the middle, gone on with by another attempt. Pure.

What has gone out to the caller stands. A model that takes an assistant's message at
the end goes on from there (`Continued`); any other is asked again, and what it says is
let through from where the caller's copy ends, if it says the same up to there
(`Repeated`). Else the failure stays what it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import BlockStop, Event
from services.inference.fallback.failures import DivergedError
from services.inference.pieces import join, keep

# Of each kind of block whose beginning can be compared: its deltas.
_DELTAS = {"text": "text", "refusal": "refusal", "thinking": "thinking", "tool_use": "input"}


@dataclass(slots=True)
class _Sent:
    """A block as far as the caller has it; the pieces joined are its text or arguments."""

    kind: str
    pieces: list[str]
    name: str = ""
    signed: bool = False
    closed: bool = False

    def content(self) -> str:
        return "".join(self.pieces)


class Sent:
    """What of an answer has gone out.

    Attributes:
        finished: whether its end has, so that nothing is missing.
    """

    def __init__(self) -> None:
        self.finished = False
        self._is_known = True  # whether all of it is of kinds that can be compared
        # Whether fields of the message came last. Those that came with thoughts are whole
        # once the answer goes on with anything else.
        self._has_open_fields = False
        self.blocks: list[_Sent] = []
        self._pieces: list[str] = []

    def note(self, batch: Sequence[Event]) -> None:
        """Record events that go out."""
        for event in batch:
            # Nearly all events are text, and this runs for each.
            text = event.text
            if text:
                self._pieces.append(text)
            else:
                self._other(event)
        join(self._pieces)

    @property
    def comparable(self) -> bool:
        """Whether another answer could be told to begin with the same."""
        return self._is_known and not self._has_open_fields

    @property
    def text(self) -> str | None:
        """All that was sent, if it is text alone and not empty; else None."""
        if any(block.kind != "text" for block in self.blocks):
            return None
        return "".join(block.content() for block in self.blocks) or None

    def size(self) -> int:
        """Return the number of characters that were sent."""
        return sum(len(piece) for block in self.blocks for piece in block.pieces)

    def _other(self, event: Event) -> None:
        kind = event.WhichOneof("kind")
        if kind == "block_start":
            self._open(event.block_start)
        elif kind == "block_stop":
            self.blocks[-1].closed = True
        elif kind == "finish":
            self.finished = True
        elif kind == "signature":
            self.blocks[-1].signed = True
        elif kind in ("thinking", "refusal", "input"):
            keep(self.blocks[-1].pieces, getattr(event, kind))
        elif kind == "opaque":
            self._is_known = False
        elif kind == "further":
            self._has_open_fields |= event.further.HasField("message")

    def _open(self, block: Block) -> None:
        kind = block.WhichOneof("kind") or ""
        begun, name = _beginning(kind, block)
        # The block's own list takes its text without a look-up for each event.
        self._pieces = [begun]
        self.blocks.append(_Sent(kind, self._pieces, name))
        if kind not in _DELTAS and kind != "redacted_thinking":
            self._is_known = False
        if kind != "thinking":
            self._has_open_fields = False


def _beginning(kind: str, block: Block) -> tuple[str, str]:
    """Return what a block holds as it begins, and its name.

    The id of a tool call is made anew each time and says nothing.
    """
    if kind == "tool_use":
        return block.tool_use.input, block.tool_use.name
    if kind == "thinking":
        return block.thinking.text, ""
    if kind in ("text", "refusal", "redacted_thinking"):
        return getattr(block, kind), ""
    return "", ""


class Continued:
    """Joins the rest of a text to what was sent of it.

    The model was asked to go on after all text, white space at its end aside.
    """

    def __init__(self, sent: Sent) -> None:
        last = sent.blocks[-1]
        self._open = not last.closed  # the caller's last block goes on
        self._number = len(sent.blocks) - 1
        self._joins = self._open  # the first block of the rest is part of it
        self._offset = len(sent.blocks) - (1 if self._open else 0)
        text = sent.text or ""
        self._skips = text != text.rstrip()

    def feed(self, batch: Sequence[Event]) -> list[Event]:
        """Return the events that go out, numbered as the caller counts blocks."""
        out: list[Event] = []
        for event in batch:
            self._take(event, out)
        return out

    def _take(self, event: Event, out: list[Event]) -> None:
        kind = event.WhichOneof("kind")
        if kind == "start":
            return
        if kind == "usage":
            out.append(event)
            return
        if kind == "block_start" and self._joins:
            self._joins = False
            if event.block_start.HasField("text"):
                self._text(event.block_start.text, event, out)
                return
            # It goes on with something else than text, in a block of its own.
            self._offset += 1
            self._end(out)
        elif kind == "finish":
            if self._joins:
                self._end(out)
        elif kind == "text":
            self._text(event.text, event, out)
            return
        moved = Event()
        moved.CopyFrom(event)
        if kind != "finish":
            moved.block += self._offset
        out.append(moved)

    def _end(self, out: list[Event]) -> None:
        out.append(Event(block=self._number, block_stop=BlockStop()))
        self._open = False

    def _text(self, text: str, event: Event, out: list[Event]) -> None:
        if self._skips:
            # The caller has the white space already, which the model was not shown.
            text = text.lstrip()
            self._skips = not text
        if text:
            moved = Event(block=event.block + self._offset, text=text, logprobs=event.logprobs)
            if text == event.text:
                moved.pieces.extend(event.pieces)
            out.append(moved)


class Repeated:
    """Passes an answer on from where the caller's copy of it ends.

    Args:
        sent: what the caller has.
        provider: its name in the settings, for the failure.

    Raises:
        DivergedError: from `feed`, when the answer says something else.
    """

    def __init__(self, sent: Sent, provider: str) -> None:
        self._blocks = sent.blocks
        self._content = ""  # of the block that is compared
        self._provider = provider
        self._index = -1  # the block that is compared
        self._matched = 0  # characters of it
        self._passed = not self._blocks

    def feed(self, batch: Sequence[Event]) -> list[Event]:
        """Return the events that go out, possibly none."""
        out: list[Event] = []
        for event in batch:
            kind = event.WhichOneof("kind")
            if kind == "usage" or (self._passed and kind != "start"):
                out.append(event)
            elif kind not in ("start", "further", "unknown"):
                self._compare(kind, event, out)
        return out

    def _compare(self, kind: str | None, event: Event, out: list[Event]) -> None:
        if kind == "block_start":
            self._begin(event, out)
            return
        block = self._blocks[self._index]
        if kind == "block_stop":
            if self._matched != len(self._content):
                raise DivergedError(self._provider)
            if not block.closed:
                out.append(event)
            self._passed = self._index == len(self._blocks) - 1
        elif kind == "signature":
            # One that the caller has stands for the same text.
            if not (block.signed or block.closed):
                out.append(event)
        elif kind is not None and kind == _DELTAS.get(block.kind):
            self._more(getattr(event, kind), event, out)
        else:
            raise DivergedError(self._provider)

    def _begin(self, event: Event, out: list[Event]) -> None:
        self._index += 1
        self._matched = 0
        block = self._blocks[self._index]
        self._content = block.content()
        kind = event.block_start.WhichOneof("kind") or ""
        begun, name = _beginning(kind, event.block_start)
        if (kind, name) != (block.kind, block.name):
            raise DivergedError(self._provider)
        self._more(begun, event, out)

    def _more(self, piece: str, event: Event, out: list[Event]) -> None:
        block = self._blocks[self._index]
        known = self._content[self._matched : self._matched + len(piece)]
        rest = piece[len(known) :]
        if not piece.startswith(known) or (rest and (block.closed or block.kind not in _DELTAS)):
            raise DivergedError(self._provider)
        self._matched += len(known)
        if rest:
            more = Event(choice=event.choice, block=event.block)
            setattr(more, _DELTAS[block.kind], rest)
            out.append(more)
            # All that follows in this block is new.
            self._passed = True

"""The delivered part of an answer, from which the next attempt continues."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import Event
from services.common.text.tokens import estimate_tokens
from services.inference.stream.pieces import MOST, join, keep

# The kind of delta of each kind of block whose beginning can be compared.
DELTAS = {"text": "text", "refusal": "refusal", "thinking": "thinking", "tool_use": "input"}


@dataclass(slots=True)
class DeliveredBlock:
    """The delivered part of a block.

    Attributes:
        kind: the kind of the block.
        pieces: the pieces of its text or arguments.
        name: the name of the tool if the block is a tool call, else "".
        signed: whether its signature was delivered.
        closed: whether its end was delivered.
    """

    kind: str
    pieces: list[str]
    name: str = ""
    signed: bool = False
    closed: bool = False

    def content(self) -> str:
        """Return the text or arguments of the block."""
        return "".join(self.pieces)


class DeliveredPrefix:
    """The part of an answer that was delivered to the caller.

    Attributes:
        finished: whether the end was delivered, so that no content is missing.
    """

    def __init__(self) -> None:
        self.finished = False
        self._is_known = True  # whether all kinds of events can be compared
        # Whether fields of the message may be incomplete. Those that came with thinking are
        # complete once another kind of block begins.
        self._has_open_fields = False
        self.blocks: list[DeliveredBlock] = []
        self._pieces: list[str] = []

    def note(self, batch: Sequence[Event]) -> None:
        """Record events that are delivered."""
        for event in batch:
            # Nearly all events are text, and this runs for each.
            text = event.text
            if text:
                self._pieces.append(text)
            else:
                self._other(event)
        if len(self._pieces) > MOST:
            join(self._pieces)

    @property
    def comparable(self) -> bool:
        """Whether another answer can be compared with the delivered part."""
        return self._is_known and not self._has_open_fields

    @property
    def text(self) -> str | None:
        """The delivered text, if there are no other blocks and it is not empty; else None."""
        if any(block.kind != "text" for block in self.blocks):
            return None
        return "".join(block.content() for block in self.blocks) or None

    def tokens(self) -> int:
        """Return the estimated tokens of what was delivered."""
        blocks = sum(estimate_tokens(block.content()) for block in self.blocks)
        is_stray = not self.blocks or self._pieces is not self.blocks[-1].pieces
        return blocks + (estimate_tokens("".join(self._pieces)) if is_stray else 0)

    def size(self) -> int:
        """Return the number of delivered characters."""
        return sum(len(piece) for block in self.blocks for piece in block.pieces)

    def _other(self, event: Event) -> None:
        kind = event.WhichOneof("kind")
        if kind == "start":
            # An answer in native events cannot be continued in canonical ones.
            self._is_known = not event.native
        elif kind == "block_start":
            block = event.block_start
            block_kind = block.WhichOneof("kind") or ""
            begun, name = (block.text, "") if block_kind == "text" else beginning(block_kind, block)
            # The block's own list, so that text is added without a look-up for each event.
            self._pieces = [begun]
            self.blocks.append(DeliveredBlock(block_kind, self._pieces, name))
            if block_kind not in DELTAS and block_kind != "redacted_thinking":
                self._is_known = False
            if block_kind != "thinking":
                self._has_open_fields = False
        elif kind == "block_stop":
            self.blocks[-1].closed = True
        elif kind == "finish":
            self.finished = True
        elif kind == "signature":
            self.blocks[-1].signed = True
        elif kind in ("thinking", "refusal", "input"):
            # Texts beside native events belong to no block.
            keep(self._pieces, getattr(event, kind))
        elif kind in ("opaque", "citation"):
            self._is_known = False
        elif kind == "extra_fields":
            self._has_open_fields |= event.extra_fields.HasField("message")


def beginning(kind: str, block: Block) -> tuple[str, str]:
    """Return the initial content of a block, and the name of its tool or "".

    The id of a tool call is not compared: it is new in each answer.
    """
    if kind == "tool_use":
        return block.tool_use.input, block.tool_use.name
    if kind == "thinking":
        return block.thinking.text, ""
    if kind in ("text", "refusal", "redacted_thinking"):
        return getattr(block, kind), ""
    return "", ""

"""Sequential blocks of one streamed response from interleaved events.

Output items and their parts are numbered, and events of several may be interleaved. Canonical
events contain one block after the other, and the parts of a message in sequence. Events of a later
block are queued until the blocks before it have ended.
"""

from collections import deque
from typing import Literal

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Block, Opaque
from gateway.inference.v1.inference_pb2 import BlockStop, Event
from services.inference.providers.bounds import Bounds
from services.inference.providers.opaque_json import Json
from services.inference.stream.pieces import keep

DeltaKind = Literal["text", "refusal", "thinking", "signature", "input"]
_STOP = BlockStop()


class OpenBlock:
    """A block, as far as it has been received.

    Attributes:
        block: the start of the block; None until it is known.
        kind: the block's kind; "" until it is known.
        has_said: whether any of its content has been received.
        annotations: number of annotations received.
        parts: keys of the texts of a reasoning item that have begun.
        is_over: whether its end has been received.
        waiting: queued events, with the pieces of their texts.
    """

    __slots__ = ("annotations", "block", "has_said", "is_over", "kind", "parts", "waiting")

    def __init__(self) -> None:
        self.block: Block | None = None
        self.kind = ""
        self.has_said = False
        self.annotations = 0
        self.parts: set[tuple[object, ...]] = set()
        self.is_over = False
        self.waiting: list[tuple[Event, list[str]]] = []


class Group:
    """The consecutive blocks of one item.

    Attributes:
        blocks: the blocks that have not ended; in the first group, the first one is open.
        is_over: whether no further block follows.
        is_new: whether no block has begun; the first block is counted with the group.
    """

    __slots__ = ("blocks", "is_new", "is_over")

    def __init__(self) -> None:
        self.blocks: deque[OpenBlock] = deque()
        self.is_over = False
        self.is_new = True


class Blocks:
    """Appends the block events of one answer to the `out` list of each call.

    Args:
        bounds: the bounds of the answer.

    Attributes:
        kinds: kinds of the blocks so far.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.kinds: set[str] = set()
        self._bounds = bounds
        self._number = 0  # of the open block, or of the next one
        self._groups: deque[Group] = deque()

    def begin_group(self) -> Group:
        """Append a group."""
        self._bounds.part()
        group = Group()
        self._groups.append(group)
        return group

    def end_group(self, group: Group, out: list[Event]) -> None:
        """End a group and its blocks."""
        for block in group.blocks:
            block.is_over = True
        group.is_over = True
        self._go_on(out)

    def begin(self, group: Group, block: Block | None, out: list[Event]) -> OpenBlock:
        """Append a block to a group; without `block`, `fill` sets its start later."""
        if not group.is_new:
            self._bounds.part()
        group.is_new = False
        begun = OpenBlock()
        group.blocks.append(begun)
        if block is not None:
            self.fill(begun, block, out)
        return begun

    def fill(self, begun: OpenBlock, block: Block, out: list[Event]) -> None:
        """Set the start of a block."""
        begun.block, begun.kind = block, block.WhichOneof("kind") or ""
        self.kinds.add(begun.kind)
        if self._is_open(begun):
            self._open(begun, out)

    def say(
        self, block: OpenBlock, kind: DeltaKind, text: str, out: list[Event], logprobs: bytes = b""
    ) -> None:
        """Add a delta to a block; deltas after its end are ignored."""
        if block.is_over:
            return
        block.has_said = True
        event = Event(block=self._number)
        setattr(event, kind, text)
        if logprobs:
            event.logprobs = logprobs
        self._put(block, event, text, out)

    def keep(self, block: OpenBlock, fields: Json, out: list[Event]) -> None:
        """Add unknown fields of a block."""
        if block.is_over or not fields:
            return
        opaque = Opaque(dialect=DIALECT_RESPONSES, json=self._bounds.keep_delta(fields))
        self._put(block, Event(block=self._number, opaque=opaque), "", out)

    def end(self, block: OpenBlock, out: list[Event]) -> None:
        """End a block; a block whose start is unknown is dropped."""
        block.is_over = True
        self._go_on(out)

    def end_all(self, out: list[Event]) -> None:
        """End all blocks."""
        for group in list(self._groups):
            self.end_group(group, out)

    def _is_open(self, block: OpenBlock) -> bool:
        blocks = self._groups[0].blocks
        return bool(blocks) and blocks[0] is block

    def _go_on(self, out: list[Event]) -> None:
        """Close ended blocks, and open the next one."""
        groups = self._groups
        while groups:
            blocks = groups[0].blocks
            if blocks and not blocks[0].is_over:
                return
            if blocks:
                if blocks.popleft().block is not None:
                    out.append(Event(block=self._number, block_stop=_STOP))
                    self._number += 1
            elif groups[0].is_over:
                groups.popleft()
                blocks = groups[0].blocks if groups else blocks
            else:
                return
            if blocks:
                self._open(blocks[0], out)

    def _open(self, block: OpenBlock, out: list[Event]) -> None:
        if block.block is None:
            return
        out.append(Event(block=self._number, block_start=block.block))
        for event, texts in block.waiting:
            event.block = self._number
            if texts:
                kind = event.WhichOneof("kind")
                assert kind is not None, "it waits with a text"
                setattr(event, kind, "".join(texts))
            out.append(event)
        block.waiting.clear()

    def _put(self, block: OpenBlock, event: Event, text: str, out: list[Event]) -> None:
        if self._is_open(block):
            out.append(event)
            return
        last, texts = block.waiting[-1] if block.waiting else (None, [])
        if last is not None and texts and text and _is_alike(last, event):
            keep(texts, text)
            return
        self._bounds.part()
        block.waiting.append((event, [text] if text else []))


def _is_alike(last: Event, event: Event) -> bool:
    """Return whether the texts of two events may be joined."""
    is_plain = not (last.logprobs or event.logprobs)
    return is_plain and last.WhichOneof("kind") == event.WhichOneof("kind")

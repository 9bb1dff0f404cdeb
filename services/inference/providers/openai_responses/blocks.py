"""The blocks of one streamed response, in order: one open at a time.

Output items and their parts are numbered, so that events of several may come interleaved. The
canonical events want each block whole before the next one begins, and the parts of a message
beside each other. Events of a later block wait until those before it have ended.
"""

from collections import deque
from typing import Literal

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Block, Opaque
from gateway.inference.v1.inference_pb2 import BlockStop, Event
from services.inference.providers.bounds import Bounds
from services.inference.providers.request_fields import Json
from services.inference.stream.pieces import keep

DeltaKind = Literal["text", "refusal", "thinking", "signature", "input"]
_STOP = BlockStop()


class OpenBlock:
    """A block as far as it has come.

    Attributes:
        block: how it begins; None while that is not known.
        kind: of the block; "" while that is not known.
        has_said: whether anything of its content has come.
        annotations: how many annotations of it have come.
        parts: texts of a reasoning item that have begun.
        is_over: whether its end has come.
        waiting: events that have not gone out, with the pieces of their texts.
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
    """The blocks of one item, which stand beside each other.

    Attributes:
        blocks: those that have not gone out; the first one is open if the group is the first.
        is_over: whether no block follows.
        is_new: whether no block has begun, which is counted with the group then.
    """

    __slots__ = ("blocks", "is_new", "is_over")

    def __init__(self) -> None:
        self.blocks: deque[OpenBlock] = deque()
        self.is_over = False
        self.is_new = True


class Blocks:
    """Adds the block events of one answer to lists that it is handed.

    Args:
        bounds: what may still come of the answer.

    Attributes:
        kinds: kinds of the blocks so far.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.kinds: set[str] = set()
        self._bounds = bounds
        self._number = 0  # of the block that is open, or comes next
        self._groups: deque[Group] = deque()

    def begin_group(self) -> Group:
        """Add a group behind all others."""
        self._bounds.part()
        group = Group()
        self._groups.append(group)
        return group

    def end_group(self, group: Group, out: list[Event]) -> None:
        """Take the end of a group and of its blocks."""
        for block in group.blocks:
            block.is_over = True
        group.is_over = True
        self._go_on(out)

    def begin(self, group: Group, block: Block | None, out: list[Event]) -> OpenBlock:
        """Add a block to a group; without a block `fill` tells later how it begins."""
        if not group.is_new:
            self._bounds.part()
        group.is_new = False
        begun = OpenBlock()
        group.blocks.append(begun)
        if block is not None:
            self.fill(begun, block, out)
        return begun

    def fill(self, begun: OpenBlock, block: Block, out: list[Event]) -> None:
        """Set how a block begins."""
        begun.block, begun.kind = block, block.WhichOneof("kind") or ""
        self.kinds.add(begun.kind)
        if self._is_open(begun):
            self._open(begun, out)

    def say(
        self, block: OpenBlock, kind: DeltaKind, text: str, out: list[Event], logprobs: bytes = b""
    ) -> None:
        """Add more of a block; what comes after its end is ignored."""
        if block.is_over:
            return
        block.has_said = True
        event = Event(block=self._number)
        setattr(event, kind, text)
        if logprobs:
            event.logprobs = logprobs
        self._put(block, event, text, out)

    def keep(self, block: OpenBlock, fields: Json, out: list[Event]) -> None:
        """Add fields of a block that have no canonical name."""
        if block.is_over or not fields:
            return
        opaque = Opaque(dialect=DIALECT_RESPONSES, json=self._bounds.keep_delta(fields))
        self._put(block, Event(block=self._number, opaque=opaque), "", out)

    def end(self, block: OpenBlock, out: list[Event]) -> None:
        """Take the end of a block; one without a beginning is dropped."""
        block.is_over = True
        self._go_on(out)

    def end_all(self, out: list[Event]) -> None:
        """Take the end of all blocks."""
        for group in list(self._groups):
            self.end_group(group, out)

    def _is_open(self, block: OpenBlock) -> bool:
        blocks = self._groups[0].blocks
        return bool(blocks) and blocks[0] is block

    def _go_on(self, out: list[Event]) -> None:
        """Close what is over, and open what comes next."""
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

"""The blocks of one streamed response, in order: one open at a time.

Output items and their parts are numbered, so that events of several may come interleaved. The
canonical events want each block whole before the next one begins. Events of a later block wait
until those before it have ended.
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
        has_said: whether anything of its content has come.
        annotations: how many annotations of it have come.
        parts: texts of a reasoning item that have begun.
        is_over: whether its end has come.
        waiting: events that have not gone out, with the pieces of their texts.
    """

    __slots__ = ("annotations", "block", "has_said", "is_over", "parts", "waiting")

    def __init__(self, block: Block | None) -> None:
        self.block = block
        self.has_said = False
        self.annotations = 0
        self.parts: set[tuple[object, ...]] = set()
        self.is_over = False
        self.waiting: list[tuple[Event, list[str]]] = []


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
        self._queue: deque[OpenBlock] = deque()  # the first one is open

    def begin(self, block: Block | None, out: list[Event]) -> OpenBlock:
        """Add a block behind all others; without a block `fill` tells later how it begins."""
        self._bounds.part()
        begun = OpenBlock(None)
        self._queue.append(begun)
        if block is not None:
            self.fill(begun, block, out)
        return begun

    def fill(self, begun: OpenBlock, block: Block, out: list[Event]) -> None:
        """Set how a block begins."""
        self.kinds.add(block.WhichOneof("kind") or "")
        begun.block = block
        if self._queue[0] is begun:
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
        while self._queue and self._queue[0].is_over:
            over = self._queue.popleft()
            if over.block is not None:
                out.append(Event(block=self._number, block_stop=_STOP))
                self._number += 1
            if self._queue:
                self._open(self._queue[0], out)

    def end_all(self, out: list[Event]) -> None:
        """Take the end of all blocks."""
        for block in list(self._queue):
            self.end(block, out)

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
        if self._queue[0] is block:
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

"""The rest of an answer that broke off, from a model that continues an assistant message."""

from gateway.inference.v1.inference_pb2 import BlockStop, Event
from services.inference.stream.delivered import DeliveredPrefix
from services.inference.stream.filters import Batch


class Continuation:
    """Joins the rest of a text to its delivered part.

    The model was sent the delivered text to continue, without white space at its end.
    """

    is_done = False

    def __init__(self, delivered: DeliveredPrefix) -> None:
        last = delivered.blocks[-1]
        self._open = not last.closed  # the caller's last block is open
        self._number = len(delivered.blocks) - 1
        self._joins = self._open  # the first block of the rest is part of it
        self._offset = len(delivered.blocks) - (1 if self._open else 0)
        text = delivered.text or ""
        self._skips = text != text.rstrip()

    def feed(self, batch: Batch) -> list[Event]:
        """Return the events for the caller, with the caller's block numbers."""
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
            # The rest begins with another kind of block.
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
            # The caller already has the white space, which the model was not sent.
            text = text.lstrip()
            self._skips = not text
        if text:
            moved = Event(block=event.block + self._offset, text=text, logprobs=event.logprobs)
            if text == event.text:
                moved.pieces.extend(event.pieces)
            out.append(moved)

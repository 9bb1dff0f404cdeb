"""A replayed answer: one that broke off, generated again by a model from its beginning.

The part that the caller already has is compared and left out. If it differs, the model cannot
continue the answer.
"""

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import UpstreamError
from services.inference.stream.delivered import DELTAS, DeliveredPrefix, beginning
from services.inference.stream.filters import Batch


class DivergedError(UpstreamError):
    """Error raised when a replayed answer differs from the delivered part."""

    def __init__(self, provider: str) -> None:
        super().__init__(
            errors_pb2.REASON_UPSTREAM_ERROR,
            f"the provider {provider} restarted the interrupted answer with different content",
            status=200,
        )


class ReplayAligner:
    """Removes the delivered part from a replayed answer.

    Args:
        delivered: the delivered part.
        provider: the provider's name in the settings, for the error message.

    Raises:
        DivergedError: from `feed`, if the replayed answer differs.
    """

    is_done = False

    def __init__(self, delivered: DeliveredPrefix, provider: str) -> None:
        self._blocks = delivered.blocks
        self._content = ""  # delivered content of the block that is compared
        self._provider = provider
        self._index = -1  # the block that is compared
        self._matched = 0  # characters of `_content`
        self._passed = not self._blocks

    def feed(self, batch: Batch) -> list[Event]:
        """Return the events after the delivered part, possibly none."""
        out: list[Event] = []
        for event in batch:
            kind = event.WhichOneof("kind")
            if kind == "usage" or (self._passed and kind != "start"):
                out.append(event)
            elif kind not in ("start", "extra_fields", "unknown"):
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
            # A delivered signature is one of the same text.
            if not (block.signed or block.closed):
                out.append(event)
        elif kind is not None and kind == DELTAS.get(block.kind):
            self._more(getattr(event, kind), event, out)
        else:
            raise DivergedError(self._provider)

    def _begin(self, event: Event, out: list[Event]) -> None:
        self._index += 1
        self._matched = 0
        block = self._blocks[self._index]
        self._content = block.content()
        kind = event.block_start.WhichOneof("kind") or ""
        begun, name = beginning(kind, event.block_start)
        if (kind, name) != (block.kind, block.name):
            raise DivergedError(self._provider)
        self._more(begun, event, out)

    def _more(self, piece: str, event: Event, out: list[Event]) -> None:
        block = self._blocks[self._index]
        delivered = self._content[self._matched : self._matched + len(piece)]
        new_text = piece[len(delivered) :]
        if not piece.startswith(delivered) or (
            new_text and (block.closed or block.kind not in DELTAS)
        ):
            raise DivergedError(self._provider)
        self._matched += len(delivered)
        if new_text:
            more = Event(choice=event.choice, block=event.block)
            setattr(more, DELTAS[block.kind], new_text)
            out.append(more)
            # The rest of this block is new.
            self._passed = True

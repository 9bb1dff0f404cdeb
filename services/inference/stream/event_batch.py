"""A batch of events as a message of `StreamGenerate`."""

from gateway.inference.v1.inference_pb2 import StreamGenerateResponse
from services.inference.stream.filters import Batch


class EventBatch:
    """A `StreamGenerateResponse` that is only made for another process.

    To copy a batch into a message, and to read it there, takes longer than all else that is done
    to it. Within a process the events themselves are handed over.

    Attributes:
        events: in order; whoever receives them owns them.
    """

    __slots__ = ("events",)

    def __init__(self, events: Batch) -> None:
        self.events = events

    # As protobuf calls them: code that sends messages calls these.

    def ByteSize(self) -> int:
        """Return the size of the events in bytes, serialized."""
        return sum([event.ByteSize() for event in self.events])

    def SerializeToString(self) -> bytes:
        """Return the message, serialized."""
        return StreamGenerateResponse(events=self.events).SerializeToString()

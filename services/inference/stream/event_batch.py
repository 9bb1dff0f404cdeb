"""A batch of events as a message of `StreamGenerate`."""

from gateway.inference.v1.inference_pb2 import StreamGenerateResponse
from services.inference.stream.filters import Batch


class EventBatch:
    """A `StreamGenerateResponse` that is only built for another process.

    Copying a batch into a message and reading it there takes longer than all other work on it.
    Within a process the events themselves are handed over.

    Attributes:
        events: the events in order, owned by the receiver.
    """

    __slots__ = ("events",)

    def __init__(self, events: Batch) -> None:
        self.events = events

    # Named as in protobuf: called by code that sends messages.

    def ByteSize(self) -> int:
        """Return the size of the serialized events in bytes."""
        return sum([event.ByteSize() for event in self.events])

    def SerializeToString(self) -> bytes:
        """Return the serialized message."""
        return StreamGenerateResponse(events=self.events).SerializeToString()

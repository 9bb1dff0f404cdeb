"""Batches of events: a streamed answer, and a batch as a message. Pure."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple

from gateway.inference.v1.inference_pb2 import StreamGenerateResponse
from services.inference.stream.filters import Batch

# Receives a batch; returns whether the next ones should wait.
OnBatch = Callable[[Batch], bool]
# A streamed answer, one batch per read. A function that is sent into the iterator by `asend` may be
# called with the following batches as they are received, which costs less than an iteration each.
# When the function has returned True, the iterator yields an empty batch. It also yields every
# batch that it does not pass to the function.
Batches = AsyncGenerator[Batch, OnBatch | None]


def do_nothing() -> None:
    """Do nothing at the end of an answer."""


async def observed(
    batches: Batches,
    observe: Callable[[Batch], object],
    on_complete: Callable[[], object] = do_nothing,
) -> Batches:
    """Yield the batches of an answer.

    Args:
        batches: the answer.
        observe: called with each non-empty batch before it is passed on.
        on_complete: called when the answer is complete.
    """

    def observe_and_pass(batch: Batch) -> bool:
        observe(batch)
        assert on_batch is not None, "it is passed on with `on_batch`"
        return on_batch(batch)

    on_batch: OnBatch | None = None
    async with aclosing(batches):
        try:
            batch = await anext(batches)
            while True:
                if batch:
                    observe(batch)
                on_batch = yield batch
                batch = await batches.asend(None if on_batch is None else observe_and_pass)
        except StopAsyncIteration:
            on_complete()


class EventBatch(NamedTuple):
    """A `StreamGenerateResponse`, or `ForwardResponse`, that is only built for another process.

    Copying a batch into a message and reading it there takes longer than all other work on it.
    Within a process the events themselves are handed over.

    Attributes:
        events: the events in order, owned by the receiver.
    """

    events: Batch

    # Named as in protobuf: called by code that sends messages.

    def ByteSize(self) -> int:
        """Return the size of the serialized events in bytes."""
        return sum([event.ByteSize() for event in self.events])

    def SerializeToString(self) -> bytes:
        """Return the serialized message, which is the same for both types."""
        return StreamGenerateResponse(events=self.events).SerializeToString()

"""Reader of streams of server-sent events as batches of canonical events."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from gateway.inference.v1.inference_pb2 import Event
from services.common.errors import UpstreamError


class Reader(Protocol):
    """A reader of one answer of a dialect."""

    @property
    def is_complete(self) -> bool:
        """Whether all of the answer has come; what is known of it may follow."""

    def feed(self, text: bytes, out: list[Event]) -> None:
        """Add to `out` the events that the text of server-sent events stands for, if any.

        Raises:
            UpstreamError: one tells an error, or cannot be read; what came before it is in `out`.
        """


async def read_events(
    stream: AsyncGenerator[bytes, None], reader: Reader
) -> AsyncGenerator[list[Event], None]:
    """Return the events of a stream, a batch for each read, none empty.

    What came before a failure in the same read is given first, and a failure behind a complete
    answer is none.

    Raises:
        UpstreamError: the stream failed.
    """
    try:
        async with aclosing(stream) as texts:
            async for text in texts:
                events: list[Event] = []
                try:
                    reader.feed(text, events)
                except UpstreamError:
                    if events:
                        yield events
                    raise
                if events:
                    yield events
    except UpstreamError:
        if not reader.is_complete:
            raise

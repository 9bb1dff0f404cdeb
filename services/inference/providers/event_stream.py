"""Parse the events of a provider's streamed response."""

import asyncio
from collections.abc import Callable

from gateway.inference.v1.inference_pb2 import Event
from services.common import http
from services.common.errors import UpstreamError
from services.common.process.timer_wheel import TimerWheel
from services.common.settings import Limits
from services.inference.providers.base import Call
from services.inference.providers.idle_reader import IdleTimeoutReader
from services.inference.providers.protocols import Reader, Splitter
from services.inference.providers.sse import SseSplitter
from services.inference.stream.batches import OnBatch
from services.inference.stream.filters import Batch
from services.inference.stream.patience import Patience, has_content

# Grace period for the end of a finished stream, so that its connection can be reused; most servers
# end it in the same packet.
_ENDING_GRACE_S = 0.25
# Timeout for data after the end of an answer, such as usage.
_USAGE_S = 30.0


class EventStream:
    """Reads the events of one response.

    The caller sets the timeout of the first content: a model may think long after the provider has
    begun to answer. From then on each read, and the content, may take what `Patience` allows.

    Attributes:
        needs_stop: whether a timer may run, so that `stop` must be called.
    """

    def __init__(
        self,
        body: http.ResponseBody,
        reader: Reader,
        limits: Limits,
        timers: TimerWheel,
        call: Call | None,
        split: Callable[[int], Splitter] = SseSplitter,
    ) -> None:
        """Create a stream for the unread body of a response.

        Args:
            body: the body.
            reader: parses the events.
            limits: limits on time and size.
            timers: timers of the running event loop.
            call: the call, which makes and gets the allowed silences; None for those of `limits`.
            split: returns a splitter of the body for the maximum size of an event in bytes.
        """
        self._body = body
        self._reader = reader
        self._stream_idle_s = limits.stream_idle_s
        self._step_timeout_s = limits.step_timeout_s
        self._call = call
        self._timers = timers
        self._splitter: Splitter | None = None
        self._split = split
        self._max_event = limits.max_sse_line_bytes
        self._idle: IdleTimeoutReader | None = None
        self.needs_stop = False
        # Raised after the events that preceded it have been returned.
        self._failure: UpstreamError | None = None
        self._on_batch: OnBatch | None = None
        self._is_over = self._is_full = False
        self._awaits_usage = False  # by the timeout of `_idle`

    async def next(self, on_batch: OnBatch | None) -> Batch | None:
        """Return the next events, or None at the end.

        With `on_batch`, events after the first content are passed to it as they are received, until
        it returns True; an empty batch is then returned.

        Raises:
            UpstreamError: an event reports an error, or cannot be parsed.
            HttpError: as `http.ResponseBody.read`.
            SseTooLongError: as `Splitter.feed`.
            TimeoutError: the idle timeout has passed.
        """
        while not self._is_over:
            if self._reader.is_complete or self._reader.has_content:
                self._watch()
            idle = self._idle
            if on_batch is None or idle is None:
                piece = await (idle or self._body).read()
                if not piece:
                    return None
                if events := self._feed(piece):
                    return events
            else:
                self._on_batch = on_batch
                if not await idle.deliver(self._pass_on):
                    return None
                if self._is_full:
                    return ()
        if self._failure is not None:
            raise self._failure
        return None

    def stop(self) -> None:
        """Stop the timer."""
        if self._idle is not None:
            self._idle.stop()
        # Avoid a reference cycle: `on_batch` refers to the owner of this stream.
        self._on_batch = None

    def _feed(self, piece: bytes) -> list[Event]:
        """Return the events that a piece completes, if any."""
        events: list[Event] = []
        if self._splitter is None:
            self._splitter = self._split(self._max_event)
        if text := self._splitter.feed(piece):
            try:
                self._reader.feed(text, events)
                self._is_over = self._reader.ended
            except UpstreamError as error:
                self._failure = error
                self._is_over = True
        if self._idle is not None and has_content(events):
            self._idle.progress()
        return events

    def _pass_on(self, piece: bytes) -> bool:
        """Pass on the events of a piece; return whether `next` must continue."""
        assert self._on_batch is not None and self._idle is not None, "events are passed on"
        self._idle.touch()
        events = self._feed(piece)
        self._is_full = bool(events) and self._on_batch(events)
        return (
            self._is_full or self._is_over or (self._reader.is_complete and not self._awaits_usage)
        )

    def _watch(self) -> None:
        """Read with the idle timeout that applies now, from the first content on."""
        if self._reader.is_complete:
            if not self._awaits_usage:
                self._awaits_usage = True
                limit_s = min(self._stream_idle_s, _USAGE_S)
                self._read_with(Patience(limit_s, limit_s))
        elif self._idle is None:
            patience = Patience(self._stream_idle_s, self._step_timeout_s)
            if self._call is not None and self._call.make_patience is not None:
                patience = self._call.patience = self._call.make_patience()
            self._read_with(patience)

    def _read_with(self, patience: Patience) -> None:
        """Read the rest of the response with other allowed silences."""
        if self._idle is not None:
            self._idle.stop()
        self._idle = IdleTimeoutReader(self._body, patience, self._timers)
        self.needs_stop = True


async def let_end(body: http.ResponseBody) -> None:
    """Wait briefly for the end of a stream, so that the connection can be reused."""
    try:
        async with asyncio.timeout(_ENDING_GRACE_S):
            while await body.read():
                pass
    except (TimeoutError, http.HttpError):
        return  # the answer is complete; close the connection

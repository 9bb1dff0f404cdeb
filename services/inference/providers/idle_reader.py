"""Response reader with an idle timeout."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from services.common import http
from services.common.process.timer_wheel import TimerHandle, TimerWheel
from services.inference.stream.patience import Patience

_T = TypeVar("_T")


class SilenceError(TimeoutError):
    """Error raised when a response has been silent for longer than is allowed."""


class SilenceTimer:
    """Calls back once a response has been silent, or without content, for too long.

    `touch` and `progress` cost almost nothing: what the `Patience` allows is computed only when the
    timer expires, and the timer is rescheduled then.
    """

    def __init__(
        self, timers: TimerWheel, patience: Patience, callback: Callable[[], object]
    ) -> None:
        self._timers = timers
        self._now = timers.loop.time
        self._patience = patience
        self._callback: Callable[[], object] | None = callback
        self._last = self._last_content = self._now()
        self._timer: TimerHandle | None = TimerHandle(timers, self._end(), self._look)

    def begin(self) -> None:
        """Begin a silence now; the time before, in which nothing was read, is none."""
        now = self._now()
        self._last_content += now - self._last
        self._last = now

    def touch(self) -> None:
        """End a silence, and begin another."""
        now = self._now()
        silence = now - self._last
        if silence > self._patience.longest_s:
            self._patience.longest_s = silence
        self._last = now

    def progress(self) -> None:
        """Record that what ended the last silence had content."""
        self._last_content = self._last

    def stop(self) -> None:
        """Stop the timer; there are no further callbacks."""
        if self._timer is not None:
            self._timer.cancel()
        # The callback's object often refers to the timer: break the cycle, so both are freed now.
        self._timer = self._callback = None

    def _look(self) -> None:
        now = self._now()
        if now >= self._end() and self._callback is not None:
            self._last = self._last_content = now
            self._callback()
        if self._callback is not None:
            self._timer = TimerHandle(self._timers, self._end(), self._look)

    def _end(self) -> float:
        """Return the time at which the response will have been silent for too long."""
        patience = self._patience
        silent = self._last + patience.allowed_s()
        return min(silent, self._last_content + patience.without_content_s())


class IdleTimeoutReader:
    """Reads the body of a response with an idle timeout; one timer serves all reads.

    Attributes:
        patience: the allowed silences.
        touch: ends a silence.
        progress: records that what was last received had content.
    """

    def __init__(self, body: http.ResponseBody, patience: Patience, timers: TimerWheel) -> None:
        """Create a reader of a body."""
        self.patience = patience
        self._body = body
        self._timer = SilenceTimer(timers, patience, self._expire)
        self.touch = self._timer.touch
        self.progress = self._timer.progress
        self._waits = self._is_over = False

    async def read(self) -> bytes:
        """Read the next piece; see `http.ResponseBody.read`.

        Raises:
            SilenceError: the response was silent for too long.
        """
        chunk = await self._wait(self._body.read())
        if self._is_over and not chunk:
            raise SilenceError
        self.touch()
        return chunk

    async def deliver(self, on_piece: http.OnPiece) -> bool:
        """Pass pieces to `on_piece` as they are received; see `http.ResponseBody.deliver`.

        `on_piece` must call `touch` for each piece.

        Raises:
            SilenceError: the response was silent for too long.
        """
        is_stopped = await self._wait(self._body.deliver(on_piece))
        if self._is_over and not is_stopped:
            raise SilenceError
        return is_stopped

    async def _wait(self, reading: Awaitable[_T]) -> _T:
        """Return the result of a read.

        Raises:
            SilenceError: the response was silent for too long.
        """
        self._timer.begin()
        self._waits = True
        try:
            return await reading
        except http.HttpError:
            if self._is_over:
                raise SilenceError from None
            raise
        finally:
            self._waits = False

    def stop(self) -> None:
        """Cancel the timer."""
        self._timer.stop()

    def _expire(self) -> None:
        if self._waits:
            self._is_over = True
            self._body.close()

"""Response reader with an idle timeout."""

from collections.abc import Awaitable
from typing import TypeVar

from services.common import http
from services.common.process.timer_wheel import IdleTimer, TimerWheel

_T = TypeVar("_T")


class IdleTimeoutReader:
    """Reads the body of a response with an idle timeout; one timer serves all reads.

    Attributes:
        patience_s: the idle timeout in seconds.
        touch: restarts the timeout.
    """

    def __init__(self, body: http.Body, patience_s: float, timers: TimerWheel) -> None:
        """Create a reader of a body with an idle timeout in seconds."""
        self.patience_s = patience_s
        self._body = body
        self._timer = IdleTimer(timers, patience_s, self._expire)
        self.touch = self._timer.touch
        self._waits = self._is_over = False

    async def read(self) -> bytes:
        """Read the next piece; see `http.Body.read`.

        Raises:
            TimeoutError: the idle timeout has passed.
        """
        chunk = await self._wait(self._body.read())
        if self._is_over and not chunk:
            raise TimeoutError
        return chunk

    async def deliver(self, on_piece: http.OnPiece) -> bool:
        """Pass pieces to `on_piece` as they are received; see `http.Body.deliver`.

        `on_piece` must call `touch` for each piece.

        Raises:
            TimeoutError: the idle timeout has passed.
        """
        is_stopped = await self._wait(self._body.deliver(on_piece))
        if self._is_over and not is_stopped:
            raise TimeoutError
        return is_stopped

    async def _wait(self, reading: Awaitable[_T]) -> _T:
        """Return the result of a read.

        Raises:
            TimeoutError: the idle timeout has passed.
        """
        self._timer.touch()
        self._waits = True
        try:
            return await reading
        except http.HttpError:
            if self._is_over:
                raise TimeoutError from None
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

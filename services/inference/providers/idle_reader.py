"""Response reader with an idle timeout."""

from services.common.idle import IdleTimer
from services.inference import http


class IdleTimeoutReader:
    """Reads an answer as long as something comes; one timer serves all its reads.

    Attributes:
        patience_s: for how many seconds the answer may be silent.
    """

    def __init__(self, response: http.Response, patience_s: float) -> None:
        """Take an answer, and for how many seconds it may be silent while it is read."""
        self.patience_s = patience_s
        self._response = response
        self._timer = IdleTimer(patience_s, self._expire)
        self._waits = self._is_over = False

    async def read(self) -> bytes:
        """Read on; see `http.Response.read`.

        Raises:
            TimeoutError: nothing came in time.
        """
        self._timer.touch()
        self._waits = True
        try:
            chunk = await self._response.read()
        except http.HttpError:
            if self._is_over:
                raise TimeoutError from None
            raise
        finally:
            self._waits = False
        if self._is_over and not chunk:
            raise TimeoutError
        return chunk

    def stop(self) -> None:
        """Watch no more."""
        self._timer.stop()

    def _expire(self) -> None:
        if self._waits:
            self._is_over = True
            self._response.break_off()

"""Terminal statuses of calls whose request messages are still being written.

When a write fails, gRPC replaces the status by an internal error of its own. The caller would see
that error instead of the service's.
"""

from collections.abc import Coroutine
from typing import Any

import grpc


class TerminalStatus:
    """The terminal status of a call, captured before a failed write can overwrite it.

    Attributes:
        refusal: the service's error, once it has ended the call with a status other than OK.
    """

    def __init__(self, call: Any) -> None:
        """Watch a call that has just started."""
        self.refusal: grpc.aio.AioRpcError | None = None
        call.add_done_callback(self._remember)

    def _remember(self, call: Any) -> None:
        code = _at_once(call.code())
        trailing = _at_once(call.trailing_metadata())
        if trailing or code not in (grpc.StatusCode.OK, grpc.StatusCode.INTERNAL):
            self.refusal = grpc.aio.AioRpcError(
                code, _at_once(call.initial_metadata()), trailing, _at_once(call.details())
            )


def _at_once(awaitable: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that does not wait, or None if it does."""
    try:
        awaitable.send(None)
    except StopIteration as done:
        return done.value
    awaitable.close()
    return None

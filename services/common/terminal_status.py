"""Terminal statuses of calls whose messages are still being written.

gRPC puts an internal error of its own over it when a write fails: the caller would be told
that, and not why its call was refused.
"""

from collections.abc import Coroutine
from typing import Any

import grpc


class TerminalStatus:
    """How a call ended, kept from the only moment when it cannot be overwritten yet.

    Attributes:
        refusal: what the service said, once it has ended the call in any other way than OK.
    """

    def __init__(self, call: Any) -> None:
        """Listen to a call that has just begun."""
        self.refusal: grpc.aio.AioRpcError | None = None
        call.add_done_callback(self._remember)

    def _remember(self, call: Any) -> None:
        code = _at_once(call.code())
        trailing = _at_once(call.trailing_metadata())
        if trailing or code not in (grpc.StatusCode.OK, grpc.StatusCode.INTERNAL):
            self.refusal = grpc.aio.AioRpcError(
                code, _at_once(call.initial_metadata()), trailing, _at_once(call.details())
            )


def _at_once(known: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns that has nothing to wait for."""
    try:
        known.send(None)
    except StopIteration as done:
        return done.value
    known.close()
    return None

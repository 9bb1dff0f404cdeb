"""The WebSockets that are open in a process, by user."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from facade.reports import FacadeMetrics
from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

_RETRY_AFTER_S: Final = 1


class OpenSockets:
    """Counts the open sockets.

    Args:
        most_of_user: how many of one user there may be.
        metrics: the metrics of the process.
    """

    def __init__(self, most_of_user: int, metrics: FacadeMetrics) -> None:
        self._most_of_user = most_of_user
        self._metrics = metrics
        self._of_users: Counter[str] = Counter()

    def check(self, user_id: str) -> None:
        """Check that a user may open another socket.

        Raises:
            GatewayError: rate_limited, the user has as many as allowed.
        """
        if self._of_users[user_id] >= self._most_of_user:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                f"{self._most_of_user:,} of your WebSockets are open, the maximum; close one",
                retry_after_s=_RETRY_AFTER_S,
                limit="limits.max_parallel_requests_per_user",
            )

    @contextmanager
    def counted(self, user_id: str) -> Iterator[None]:
        """Count an open socket of a user."""
        self._of_users[user_id] += 1
        self._metrics.sockets.inc()
        try:
            yield
        finally:
            self._metrics.sockets.inc(-1)
            self._of_users[user_id] -= 1
            if not self._of_users[user_id]:
                del self._of_users[user_id]

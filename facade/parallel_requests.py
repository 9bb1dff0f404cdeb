"""Limit on the requests of one user that a process serves at the same time."""

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

_RETRY_AFTER_S = 1


class ParallelRequests:
    """Counts the requests in progress per user."""

    def __init__(self, most: int) -> None:
        """Create a counter that allows `most` requests of one user."""
        self._most = most
        self._of_users: dict[str, int] = {}

    def enter(self, user_id: str) -> None:
        """Count a request, until `leave`.

        Raises:
            GatewayError: rate_limited, the user has as many requests in progress as allowed.
        """
        count = self._of_users.get(user_id, 0)
        if count >= self._most:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                f"{count:,} of your requests are in progress, the maximum; try again when one has "
                "finished",
                retry_after_s=_RETRY_AFTER_S,
                limit="limits.max_parallel_requests_per_user",
            )
        self._of_users[user_id] = count + 1

    def leave(self, user_id: str) -> None:
        """Stop counting a request."""
        count = self._of_users[user_id]
        if count == 1:
            del self._of_users[user_id]
        else:
            self._of_users[user_id] = count - 1

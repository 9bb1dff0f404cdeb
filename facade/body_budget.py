"""Limits on the request bodies that a process buffers at once."""

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError

# Retry-After in seconds; most bodies are read and sent on sooner.
_RETRY_AFTER_S = 1


class BodyBudget:
    """Counts the bytes of buffered bodies, per user and in total.

    A single body is always admitted; its size is limited elsewhere.
    """

    def __init__(self, total: int, per_user: int) -> None:
        """Create a budget of `total` bytes, of which one user gets at most `per_user`."""
        self._total = total
        self._per_user = per_user
        self._held = 0
        self._of_users: dict[str, int] = {}

    @property
    def held(self) -> int:
        """Bytes that are reserved now."""
        return self._held

    def reserve(self, user_id: str, size: int, own: int) -> None:
        """Reserve `size` more bytes for a body with `own` reserved bytes.

        Raises:
            GatewayError: rate_limited, the user's other bodies leave no room; unavailable,
                those of all users leave none.
        """
        of_user = self._of_users.get(user_id, 0)
        if of_user > own and of_user + size > self._per_user:
            raise GatewayError(
                errors_pb2.REASON_RATE_LIMITED,
                f"the bodies of your concurrent requests already use {of_user:,} of "
                f"at most {self._per_user:,} bytes; try again in a moment",
                retry_after_s=_RETRY_AFTER_S,
                limit="limits.max_buffered_bytes_per_user",
            )
        if self._held > own and self._held + size > self._total:
            raise GatewayError(
                errors_pb2.REASON_UNAVAILABLE,
                "too many large requests are being read; try again in a moment",
                retry_after_s=_RETRY_AFTER_S,
                limit="limits.max_buffered_bytes",
            )
        self._of_users[user_id] = of_user + size
        self._held += size

    def release(self, user_id: str, size: int) -> None:
        """Release bytes that were reserved."""
        left = self._of_users.pop(user_id) - size
        if left:
            self._of_users[user_id] = left
        self._held -= size

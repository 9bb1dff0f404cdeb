"""Models that answer chats alone, as learned from their providers' errors."""

from typing import Final

from services.common.errors import UpstreamError
from services.inference.circuit_breaker import ModelKey

_MAX_MODELS: Final = 1_000
# Statuses of servers without the endpoint.
_NO_SUCH_PATH: Final = (404, 405, 501)
# What servers say of a model that only chats.
_SAYS_SO: Final = ("chat model", "v1/completions", "completion operation")


class ChatModels:
    """The models whose providers have no legacy completions for them."""

    def __init__(self) -> None:
        self._keys: set[ModelKey] = set()

    def __contains__(self, key: ModelKey) -> bool:
        return key in self._keys

    def learns_from(self, key: ModelKey, error: UpstreamError) -> bool:
        """Return whether an error means that a model only chats, and remember it."""
        body = error.body.lower()
        if error.status not in _NO_SUCH_PATH and not any(text in body for text in _SAYS_SO):
            return False
        # Callers choose names of models.
        if len(self._keys) >= _MAX_MODELS:
            self._keys.clear()
        self._keys.add(key)
        return True

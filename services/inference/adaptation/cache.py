"""What was made of media, kept for the next turns of a conversation.

Whoever sends the same bytes again gets the same conversion without the work. What is kept
belongs to one user: an answer that came quicker would tell what others have sent. Keys are
hashes of the user, the bytes, what was done with which parameters, the model, and the version
of the conversions. A store that does not work costs the work, and fails nothing.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable
from typing import Protocol, TypeVar

import orjson

from services.common.authentication import caller
from services.common.errors import GatewayError
from services.inference.adaptation.codec import Made, dump, load
from services.inference.metrics import Metrics

# Goes up when what is kept would be made otherwise now.
VERSION = 1
# Bytes of one conversion above which it is not kept.
_MOST_BYTES = 64 << 20
# Bytes from which on hashing takes a while: others go on meanwhile.
_MANY_BYTES = 256 << 10

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Made)
A = TypeVar("A")
B = TypeVar("B")


async def _aside(function: Callable[[A], B], given: A, *, is_much: bool) -> B:
    """Return what a function returns, called in a thread where that takes a while."""
    return await asyncio.to_thread(function, given) if is_much else function(given)


class Store(Protocol):
    """Where bytes are kept under keys such as `owner/hash`."""

    async def get(self, key: str) -> bytes | None:
        """Return what is under a key, None where nothing is.

        Raises:
            GatewayError: storage_unavailable.
        """
        ...

    async def put(self, key: str, content: bytes) -> None:
        """Put bytes under a key, whole or not at all.

        Raises:
            GatewayError: storage_unavailable; storage_full.
        """
        ...


class Cache:
    """Conversions of the user whom the current task serves."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics

    async def key(self, content: bytes, what: str, *parameters: str | int) -> str:
        """Return the key of a conversion: `what` was made of the bytes, with which parameters."""
        if len(content) > _MANY_BYTES:
            hashed = await asyncio.to_thread(hashlib.sha256, content)
        else:
            hashed = hashlib.sha256(content)
        return self.key_of(hashed.digest(), what, *parameters)

    def key_of(self, digest: bytes, what: str, *parameters: str | int) -> str:
        """Return the key of a conversion of bytes whose SHA-256 is known."""
        known = caller.get(None)
        owner = "" if known is None else hashlib.sha256(known.user_id.encode()).hexdigest()[:32]
        # The parts of a key are told apart by their JSON.
        told = orjson.dumps([VERSION, owner, digest.hex(), what, parameters])
        return f"{owner}/{hashlib.sha256(told).hexdigest()}"

    async def get(self, key: str, kind: type[M]) -> M | None:
        """Return what is kept under a key, None where nothing of that kind is."""
        if key.startswith("/"):
            return None  # nobody's
        made: Made | None = None
        try:
            kept = await self._store.get(key)
            if kept is not None:
                made = await _aside(load, kept, is_much=len(kept) > _MANY_BYTES)
        except GatewayError as error:
            log.warning("a conversion could not be read", extra={"error": error.message})
        except ValueError as error:
            log.warning("a conversion that was kept is damaged", extra={"error": str(error)})
        found = made if isinstance(made, kind) else None
        self._metrics.adaptation_cache.labels("miss" if found is None else "hit").inc()
        return found

    async def put(self, key: str, made: Made) -> None:
        """Keep what was made, if that is possible now."""
        if key.startswith("/"):
            return
        content = await _aside(dump, made, is_much=not isinstance(made, str))
        if len(content) > _MOST_BYTES:
            return
        try:
            await self._store.put(key, content)
        except GatewayError as error:
            log.warning("a conversion could not be kept", extra={"error": error.message})

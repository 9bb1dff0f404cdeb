"""Cache of conversion results: for later turns of a conversation, and pages that are shown again.

The same bytes of the same user are converted once. Entries belong to one user: a shared cache would
show by its response time what other users have sent. Keys are hashes of the user, the bytes, the
conversion with its parameters, the model, and the version of the conversions. A failing store never
fails a request; the conversion is done again.
"""

import hashlib
import logging
from typing import Protocol, TypeVar

import orjson

from services.common.errors import GatewayError
from services.common.grpc.authentication import caller
from services.common.process.byte_budget import Admit, is_over_budget
from services.common.process.metrics import Counter
from services.common.process.offload import offload_if
from services.media.conversion.codec import Made, dump, load

# The store of the results; the service of inference sweeps it.
CONVERSIONS = "conversions"
# Incremented when the format or content of cached results changes.
VERSION = 1
# Maximum size of a cached conversion, in bytes.
_MOST_BYTES = 64 << 20
# Content of at least this many bytes is hashed in a thread, so that the event loop is not blocked.
_MANY_BYTES = 256 << 10

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Made)
A = TypeVar("A")
B = TypeVar("B")


class Store(Protocol):
    """A byte store whose keys have the form `owner/hash`."""

    async def get(self, key: str, admit: Admit | None = None) -> bytes | None:
        """Return the content stored under a key, or None; see `ByteStore.get`."""
        ...

    async def put(self, key: str, content: bytes) -> None:
        """Store content under a key, atomically.

        Raises:
            GatewayError: storage_unavailable; storage_full.
        """
        ...


def owner_of(user_id: str) -> str:
    """Return an identifier of a user in cache keys, 32 hex digits."""
    return hashlib.sha256(user_id.encode()).hexdigest()[:32]


class Cache:
    """Cached conversions of the current task's user.

    Args:
        store: the store of results.
        lookups: counts lookups by their `result`: hit, miss.
    """

    def __init__(self, store: Store, lookups: Counter) -> None:
        self._store = store
        self._lookups = lookups

    async def key(self, content: bytes, conversion: str, *parameters: str | int) -> str:
        """Return the cache key of a conversion `conversion` of content, with its parameters."""
        hashed = await offload_if(len(content) > _MANY_BYTES, hashlib.sha256, content)
        return self.key_of(hashed.digest(), conversion, *parameters)

    def key_of(self, digest: bytes, conversion: str, *parameters: str | int) -> str:
        """Return the cache key of a conversion of content whose SHA-256 is known."""
        current_caller = caller.get(None)
        owner = "" if current_caller is None else owner_of(current_caller.user_id)
        # JSON keeps the parts of the key unambiguous.
        parts = orjson.dumps([VERSION, owner, digest.hex(), conversion, parameters])
        return f"{owner}/{hashlib.sha256(parts).hexdigest()}"

    async def get(self, key: str, kind: type[M], admit: Admit | None = None) -> M | None:
        """Return the cached result under a key, or None if there is none of the given kind.

        Args:
            key: the key.
            kind: the type of the result.
            admit: called with the result's size in bytes before it is read.

        Raises:
            GatewayError: as `admit`.
        """
        if key.startswith("/"):
            return None  # no user
        made: Made | None = None
        try:
            kept = await self._store.get(key, admit)
            if kept is not None:
                made = await offload_if(len(kept) > _MANY_BYTES, load, kept)
        except GatewayError as error:
            if is_over_budget(error):
                raise
            log.warning("a cached conversion could not be read", extra={"error": error.message})
        except ValueError as error:
            log.warning("a cached conversion is damaged", extra={"error": str(error)})
        result = made if isinstance(made, kind) else None
        self._lookups.labels("miss" if result is None else "hit").inc()
        return result

    async def put(self, key: str, made: Made) -> None:
        """Store a result; a failing store is ignored."""
        if key.startswith("/"):
            return
        content = await offload_if(not isinstance(made, str), dump, made)
        if len(content) > _MOST_BYTES:
            return
        try:
            await self._store.put(key, content)
        except GatewayError as error:
            log.warning("a conversion could not be cached", extra={"error": error.message})

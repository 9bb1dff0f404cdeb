"""Cache of quantized vectors, so that a search does not read all of them from the database."""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

# A memory, a model and its dimensions.
Key = tuple[str, str, int]


class Version(NamedTuple):
    """The state of an archive: the number of rewinds of its memory, and the number of its turns.

    Within an epoch turns are only added, and the vector of a turn stays the same.
    """

    epoch: int
    turns: int


class SignatureCache:
    """LRU cache of blocks of quantized vectors, up to a total size.

    Other processes change memories too, so the caller passes the version that the database has.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        # The least recently used first.
        self._held: OrderedDict[Key, tuple[Version, Sequence[bytes]]] = OrderedDict()
        # Searches run in several threads.
        self._lock = Lock()

    def get(self, key: Key, version: Version) -> Sequence[bytes] | None:
        """Return the blocks of a version; None if they are not cached."""
        with self._lock:
            cached = self._held.get(key)
            if cached is None or cached[0] != version:
                return None
            self._held.move_to_end(key)
            return cached[1]

    def put(self, key: Key, version: Version, blocks: Sequence[bytes]) -> None:
        """Cache the blocks of a version that has vectors of all its turns."""
        with self._lock:
            self._held.pop(key, None)
            if _size(blocks) <= self._max_bytes:
                self._held[key] = version, blocks
            while sum(_size(held) for _, held in self._held.values()) > self._max_bytes:
                self._held.popitem(last=False)


def _size(blocks: Sequence[bytes]) -> int:
    return sum(map(len, blocks))

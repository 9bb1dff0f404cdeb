"""Cache of quantized vectors, so that a search does not read all of them from the database."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple


class Version(NamedTuple):
    """What tells the archive of a memory at one time from that at any other.

    Within an epoch turns are only added, and the vector of a turn stays the same.

    Attributes:
        epoch: how often the memory was rewound.
        turns: how many turns are archived.
    """

    epoch: int
    turns: int


class Key(NamedTuple):
    """Which vectors: those of a memory by a model."""

    entity_id: str
    model: str
    dimensions: int


class SignatureCache:
    """LRU cache of the quantized vectors of memories, up to a total size.

    Other processes change memories too, so whoever asks says which version is in the database.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        # The least recently used first.
        self._held: OrderedDict[Key, tuple[Version, Sequence[bytes]]] = OrderedDict()

    def get(self, key: Key, version: Version) -> Sequence[bytes] | None:
        """Return the blocks of a version; None where they are not cached."""
        cached = self._held.get(key)
        if cached is None or cached[0] != version:
            return None
        self._held.move_to_end(key)
        return cached[1]

    def put(self, key: Key, version: Version, blocks: Sequence[bytes]) -> None:
        """Cache the blocks of a version that has vectors of all its turns.

        Blocks that are larger than the whole cache may be are not cached.
        """
        if key in self._held:
            self._bytes -= _size(self._held.pop(key)[1])
        if _size(blocks) > self._max_bytes:
            return
        self._held[key] = version, blocks
        self._bytes += _size(blocks)
        while self._bytes > self._max_bytes:
            _, (_, dropped) = self._held.popitem(last=False)
            self._bytes -= _size(dropped)


def _size(blocks: Sequence[bytes]) -> int:
    return sum(map(len, blocks))

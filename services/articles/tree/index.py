"""Index of parents: an immutable map that shares unchanged parts between versions."""

from collections.abc import Iterable

# A change copies one bucket and the tuple of buckets: with 50,000 elements, 200 and 256 entries.
_BUCKETS = 256
# Shared by all maps: a bucket is copied before it is changed.
_EMPTY: tuple[dict[str, str], ...] = ({},) * _BUCKETS


class ParentIndex:
    """Map from the id of each element to the id of its parent ("" at the top)."""

    __slots__ = ("_buckets", "_length")

    def __init__(self) -> None:
        self._buckets = _EMPTY
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParentIndex) and self._buckets == other._buckets

    __hash__ = None  # type: ignore[assignment]  # compared as a whole, never a key

    def get(self, element_id: str) -> str | None:
        """Return the parent's id, or None for an id that is not in the document."""
        return self._buckets[hash(element_id) % _BUCKETS].get(element_id)

    def changed(self, removed_ids: Iterable[str], new: Iterable[tuple[str, str]]) -> "ParentIndex":
        """Return the map without the ids `removed_ids` and with the pairs `new`.

        Raises:
            ValueError: an id in `new` exists already.
        """
        buckets = list(self._buckets)
        copied: set[int] = set()

        def bucket(element_id: str) -> dict[str, str]:
            bucket_number = hash(element_id) % _BUCKETS
            if bucket_number not in copied:
                copied.add(bucket_number)
                buckets[bucket_number] = dict(buckets[bucket_number])
            return buckets[bucket_number]

        length = self._length
        for element_id in removed_ids:
            del bucket(element_id)[element_id]
            length -= 1
        for element_id, parent in new:
            target = bucket(element_id)
            if element_id in target:
                raise ValueError(f"duplicate element id {element_id}")
            target[element_id] = parent
            length += 1
        index = object.__new__(ParentIndex)
        index._buckets, index._length = tuple(buckets), length
        return index

"""Cache of documents, so that an edit does not read its document from the database."""

from collections import OrderedDict

from msgspec import Struct

from services.articles.tree.document import Document

# Bytes of memory for an empty document, and for each byte of a document's JSON: many small blocks
# take as much, long texts less.
_EMPTY_BYTES = 4096
_BYTES_PER_JSON_BYTE = 8


class DocumentState(Struct, frozen=True):
    """A document after a number of operations.

    Attributes:
        document: the tree.
        revision: number of operations committed to it.
        snapshot_bytes: size of its newest snapshot.
        tail_operations: number of operations since that snapshot.
        tail_bytes: size of those operations.
        log_bytes: size of all operations and their inverses from the first on.
    """

    document: Document
    revision: int
    snapshot_bytes: int = 0
    tail_operations: int = 0
    tail_bytes: int = 0
    log_bytes: int = 0

    @property
    def size(self) -> int:
        """Approximate size of the document in memory, in bytes."""
        return _EMPTY_BYTES + _BYTES_PER_JSON_BYTE * (self.snapshot_bytes + self.tail_bytes)


class DocumentCache:
    """LRU cache of documents up to a total size; the newest entry stays whatever its size."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        # The least recently used first.
        self._states: OrderedDict[str, DocumentState] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    def get(self, article_id: str) -> DocumentState | None:
        """Return a cached document; the log may have newer operations."""
        cached = self._states.get(article_id)
        if cached is not None:
            self._states.move_to_end(article_id)
        return cached

    def peek(self, article_id: str) -> DocumentState | None:
        """Return a cached document as `get`; any thread may call it."""
        return self._states.get(article_id)

    def put(self, article_id: str, state: DocumentState) -> None:
        """Cache a document, unless a newer state of it is cached."""
        before = self._states.get(article_id)
        if before is not None:
            if before.revision > state.revision:
                return
            self._bytes -= before.size
        self._states[article_id] = state
        self._states.move_to_end(article_id)
        self._bytes += state.size
        while self._bytes > self._max_bytes and len(self._states) > 1:
            _, dropped = self._states.popitem(last=False)
            self._bytes -= dropped.size

    def drop(self, article_id: str) -> None:
        """Remove a document from the cache."""
        if (dropped := self._states.pop(article_id, None)) is not None:
            self._bytes -= dropped.size

"""Documents held in memory, so that an edit need not read one."""

from collections import OrderedDict
from dataclasses import dataclass

from services.articles.tree.document import Document

# Bytes of memory that a document takes at least, and for each byte of its JSON. Long texts
# take less, many small blocks as much.
_LEAST = 4096
_FOR_JSON = 8


@dataclass(frozen=True, slots=True)
class DocumentState:
    """A document as it is after a number of operations.

    Attributes:
        document: the tree.
        revision: how many operations made it.
        snapshot_bytes: size of the snapshot it was built on, or that was taken since.
        tail_operations: operations since that snapshot.
        tail_bytes: their size.
        log_bytes: of all operations from the first on, each with what undoes it.
    """

    document: Document
    revision: int
    snapshot_bytes: int = 0
    tail_operations: int = 0
    tail_bytes: int = 0
    log_bytes: int = 0

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        return _LEAST + _FOR_JSON * (self.snapshot_bytes + self.tail_bytes)


class DocumentCache:
    """The documents used last, up to a size in all; the one in use stays whatever it has."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        # The least recently used first.
        self._held: OrderedDict[str, DocumentState] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, article_id: str) -> DocumentState | None:
        """Return a document as it was held last; the log may have more."""
        held = self._held.get(article_id)
        if held is not None:
            self._held.move_to_end(article_id)
        return held

    def put(self, article_id: str, opened: DocumentState) -> None:
        """Hold a document, unless a newer state of it is held."""
        before = self._held.get(article_id)
        if before is not None:
            if before.revision > opened.revision:
                return
            self._bytes -= before.size
        self._held[article_id] = opened
        self._held.move_to_end(article_id)
        self._bytes += opened.size
        while self._bytes > self._max_bytes and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._bytes -= dropped.size

"""The first bytes of a body that is logged, within a bound of all bodies of a process."""


class PendingBytes:
    """Bytes of captured bodies in memory.

    Args:
        limit: maximum bytes.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit

    def take(self, size: int) -> int:
        """Reserve up to `size` bytes; return how many."""
        taken = min(size, self._left)
        self._left -= taken
        return taken

    def release(self, size: int) -> None:
        """Release bytes that were reserved."""
        self._left += size


class CapturedBody:
    """The first bytes of a body.

    Args:
        max_bytes: maximum bytes.
        pending: the bytes of all bodies.

    Attributes:
        content: the bytes.
        is_cut: whether the body has more bytes.
    """

    __slots__ = ("_max_bytes", "_pending", "content", "is_cut")

    def __init__(self, max_bytes: int, pending: PendingBytes) -> None:
        self._max_bytes = max_bytes
        self._pending = pending
        self.content = bytearray()
        self.is_cut = False

    def add(self, data: bytes) -> None:
        """Add the next bytes of the body, as far as there is room."""
        if self.is_cut:
            return
        size = len(data)
        taken = self._pending.take(min(size, self._max_bytes - len(self.content)))
        self.content += memoryview(data)[:taken]
        self.is_cut = taken < size

    def release(self) -> None:
        """Free the bytes; the body is not used any more."""
        self._pending.release(len(self.content))
        self.content = bytearray()
        self.is_cut = True

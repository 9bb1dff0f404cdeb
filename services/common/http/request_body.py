"""Request bodies that are sent in pieces."""

from collections.abc import AsyncGenerator
from typing import Protocol


class PiecedBody(Protocol):
    """A request body that is made while it is sent, so that it is never held as a whole.

    Attributes:
        size: the number of bytes of all pieces.
    """

    @property
    def size(self) -> int:
        """See the attribute."""
        ...

    def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body in pieces, each once the connection has sent most of those before."""
        ...

"""The contract between the erasure of a user's data and the stores that have some of it.

Each store gives a function that removes one bounded batch. It runs again after a crash, and beside
itself in another process, so it must be correct in both cases.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from sqlalchemy.ext.asyncio import AsyncConnection


class CountErased(Protocol):
    """Adds removed things to the report of an erasure, in the transaction that removes them."""

    async def __call__(
        self, connection: AsyncConnection, kind: str, items: int, size_bytes: int = 0
    ) -> None:
        """Add to the report.

        Args:
            connection: the connection of the transaction.
            kind: what was removed, such as `files`.
            items: how many were removed; 0 adds nothing.
            size_bytes: their size.
        """


# Removes one batch of the things of the user with an id. Returns how many were removed; 0 if there
# were none. May raise GatewayError; what was removed before stays removed.
EraseBatch = Callable[[str, CountErased], Awaitable[int]]

"""The contract between the file store and other services that have data of its files."""

from collections.abc import Awaitable, Callable, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

# Called with the ids of files, in the transaction that removes their rows.
RemoveFiles = Callable[[AsyncConnection, Sequence[str]], Awaitable[None]]


async def keep_nothing(connection: AsyncConnection, file_ids: Sequence[str]) -> None:
    """Remove nothing, as nothing but the file store has data of files."""

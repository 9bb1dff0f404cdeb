"""What is done with a memory in the transactions that add a claim on it and remove the claim.

A turn finds its memory, waits for the lock and reads what it needs in one transaction: each further
one would wait for the database, and for the event loop, once more.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from sqlalchemy import ColumnElement, and_, bindparam
from sqlalchemy.ext.asyncio import AsyncConnection

from services.memory.storage.memory_records import MemoryRecord, lock_lost_error
from services.memory.storage.tables import memories


class Opening(Protocol):
    """A memory that is being locked.

    Its methods execute statements, and await nothing else.

    Attributes:
        condition: the condition on `memories` that the memory fulfils, if it can be locked as is;
            one for all memories, with bind parameters.
    """

    condition: ClassVar[ColumnElement[bool]]

    @property
    def parameters(self) -> dict[str, str]:
        """The values of the parameters of `condition`."""

    async def make(self, connection: AsyncConnection) -> str:
        """Return the id of the memory, made such that it can be locked.

        Raises:
            GatewayError: there is no such memory, and none can be created.
        """

    async def read(
        self, connection: AsyncConnection, record: MemoryRecord, owner_bytes: int
    ) -> None:
        """Read more of the memory, in the transaction in which its lock was free.

        Args:
            connection: the connection of the transaction.
            record: the memory.
            owner_bytes: the size of its owner's memories and responses.
        """

    async def leave(self, connection: AsyncConnection, record: MemoryRecord) -> None:
        """Undo what `make` changed, before the claim is removed.

        It is not called where `MemoryLocks.commit` has removed the claim.
        """


@dataclass(frozen=True)
class KnownMemory:
    """A memory whose record is known: nothing is read or changed with its claims."""

    condition: ClassVar[ColumnElement[bool]] = and_(
        memories.c.id == bindparam("opened_id"), memories.c.owner_id == bindparam("its_owner_id")
    )

    record: MemoryRecord

    @property
    def parameters(self) -> dict[str, str]:
        """The values of the parameters of `condition`."""
        return {"opened_id": self.record.id, "its_owner_id": self.record.owner_id}

    async def make(self, _connection: AsyncConnection) -> str:
        """Refuse: the memory was deleted.

        Raises:
            GatewayError: conflict.
        """
        raise lock_lost_error()

    async def read(
        self, _connection: AsyncConnection, _record: MemoryRecord, _owner_bytes: int
    ) -> None:
        """Read nothing."""

    async def leave(self, _connection: AsyncConnection, _record: MemoryRecord) -> None:
        """Undo nothing."""

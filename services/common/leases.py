"""Leases in the database: at most one process at a time holds one.

A lease is a row with a holder and an end. Whoever holds it renews it while it works; the
lease of a process that died ends by itself. Clocks of two machines differ, so a lease
saves work, and what is done under one must stay right when two do it at once.
"""

from sqlalchemy import BigInteger, Column, String, Table, delete, insert, or_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.database import metadata, writing
from services.common.ids import Source

table = Table(
    "leases",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("ends_at_ms", BigInteger, nullable=False),
)


class Lease:
    """This process's claim to one job."""

    def __init__(self, engine: AsyncEngine, name: str, length_s: float, source: Source) -> None:
        self._engine = engine
        self._name = name
        self._length_s = length_s
        self._source = source
        self._holder = source.new_id("holder_")

    async def take(self) -> bool:
        """Acquire or renew the lease for its whole length; return whether it is held.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        now_ms = int(self._source.now() * 1000)
        ours = {"holder": self._holder, "ends_at_ms": now_ms + int(self._length_s * 1000)}
        free = or_(table.c.holder == self._holder, table.c.ends_at_ms <= now_ms)
        async with writing(self._engine) as connection:
            taken = await connection.execute(
                update(table).where(table.c.name == self._name, free).values(**ours)
            )
        if taken.rowcount:
            return True
        try:
            async with writing(self._engine) as connection:
                await connection.execute(insert(table).values(name=self._name, **ours))
        except IntegrityError:
            return False
        return True

    async def release(self) -> None:
        """Release the lease, so that the next holder takes it at once.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        async with writing(self._engine) as connection:
            await connection.execute(
                delete(table).where(table.c.name == self._name, table.c.holder == self._holder)
            )

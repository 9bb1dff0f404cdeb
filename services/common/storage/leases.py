"""Named leases, for work that one process should do at a time.

Work under a lease must remain correct when two processes do it at once (see `leased_rows`).
"""

from sqlalchemy import BigInteger, Column, String, Table, and_, delete, or_
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids
from services.common.clock import Clock
from services.common.storage.database import insert_if_absent, metadata, write
from services.common.storage.leased_rows import LeasedRows

table = Table(
    "leases",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("ends_at_ms", BigInteger, nullable=False),
)


class Lease:
    """A named lease that this process may hold."""

    def __init__(
        self,
        engine: AsyncEngine,
        name: str,
        length_s: float,
        clock: Clock,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._name = name
        self._rows = LeasedRows(table, clock, length_s)
        self._holder = new_id("holder_")

    async def take(self) -> bool:
        """Acquire or renew the lease for its whole duration; return whether this process holds it.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        free = or_(table.c.holder == self._holder, self._rows.has_expired())
        which = and_(table.c.name == self._name, free)

        async def hold_or_insert(connection: AsyncConnection) -> bool:
            if await self._rows.hold(connection, which, holder=self._holder):
                return True
            ours = {"holder": self._holder, "ends_at_ms": self._rows.ends_at_ms()}
            return await insert_if_absent(connection, table, {"name": self._name, **ours})

        return await write(self._engine, hold_or_insert)

    async def release(self) -> None:
        """Release the lease, so that another process can acquire it at once.

        Raises:
            GatewayError: unavailable, when the database does not answer.
        """
        ours = delete(table).where(table.c.name == self._name, table.c.holder == self._holder)
        await write(self._engine, lambda connection: connection.execute(ours))

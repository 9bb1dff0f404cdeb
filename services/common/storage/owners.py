"""Per-user counts and sizes of stored memories and responses.

Both are updated in the transactions that change the memories and responses, after the counted rows
have been locked; the statement that increments the number of memories checks the quota.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    String,
    Table,
    bindparam,
    delete,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.storage.database import insert_if_absent, metadata, reading_once, write

owners = Table(
    "memory_owners",
    metadata,
    Column("owner_id", String(64), primary_key=True),
    Column(
        "memories", BigInteger, CheckConstraint("memories >= 0", name="memories"), nullable=False
    ),
    Column("size_bytes", BigInteger, nullable=False),
)

# Built once: SQLAlchemy takes longer to build it than to execute it.
_CHARGE = (
    update(owners)
    .where(owners.c.owner_id == bindparam("charged_id"))
    .values(size_bytes=owners.c.size_bytes + bindparam("size"))
    .returning(owners.c.size_bytes)
)


async def ensure_owner(connection: AsyncConnection, owner_id: str) -> None:
    """Insert an owner's row if it is missing."""
    await insert_if_absent(
        connection, owners, {"owner_id": owner_id, "memories": 0, "size_bytes": 0}
    )


async def charge(connection: AsyncConnection, owner_id: str, size: int) -> int:
    """Add bytes to the size of an owner's stored data; return the new size."""
    total: int | None = await connection.scalar(_CHARGE, {"charged_id": owner_id, "size": size})
    return total or 0


async def stored_bytes(engine: AsyncEngine, owner_id: str) -> int:
    """Return the size of an owner's stored data in bytes.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    query = select(owners.c.size_bytes).where(owners.c.owner_id == owner_id)
    async with reading_once(engine) as connection:
        return await connection.scalar(query) or 0


async def remove_empty_owner(engine: AsyncEngine, owner_id: str) -> None:
    """Delete an owner's row if nothing is stored for it.

    Raises:
        GatewayError: unavailable, when the database does not answer.
    """
    removal = delete(owners).where(
        owners.c.owner_id == owner_id, owners.c.memories == 0, owners.c.size_bytes == 0
    )
    try:
        await write(engine, lambda connection: connection.execute(removal))
    except IntegrityError:
        return  # something was stored meanwhile

"""What an owner has: memories are made, counted, and forgotten, each within a transaction."""

from dataclasses import asdict

from sqlalchemy import Select, delete, insert, not_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.database import insert_into
from services.memory.locks import lock_queue
from services.memory.storage import transcript_rows
from services.memory.storage.memory_records import (
    COLUMNS,
    WAS_USED,
    MemoryRecord,
    quota_exceeded,
    select_owned,
    to_record,
)
from services.memory.storage.tables import memories, owners


async def reserve_existing(
    connection: AsyncConnection, owner_id: str, memory_id: str, now_ms: int
) -> MemoryRecord | None:
    """Reserve a memory that others have reserved and that has no turn yet, if there is one."""
    shared = await connection.execute(
        update(memories)
        .where(memories.c.owner_id == owner_id, memories.c.memory_id == memory_id, not_(WAS_USED))
        .values(reservations=memories.c.reservations + 1, updated_at_ms=now_ms)
        .returning(*COLUMNS)
    )
    row = shared.one_or_none()
    return to_record(row) if row else None


async def create(
    connection: AsyncConnection,
    owner_id: str,
    memory_id: str,
    now_ms: int,
    entity_id: str,
    quota: int,
) -> MemoryRecord | None:
    """Make a memory and reserve it; None when another call has made it meanwhile.

    Raises:
        GatewayError: memory_quota_exceeded.
        IntegrityError: another call made it meanwhile, too.
    """
    none = insert_into(connection, owners).values(owner_id=owner_id, memories=0, size_bytes=0)
    await connection.execute(none.on_conflict_do_nothing())
    counted = await connection.execute(
        update(owners)
        .where(owners.c.owner_id == owner_id, owners.c.memories < quota)
        .values(memories=owners.c.memories + 1)
    )
    if not counted.rowcount:
        # Whoever took the last place may have taken it for this very memory.
        if await connection.scalar(_named(owner_id, memory_id)):
            return None
        raise quota_exceeded(quota)
    made = MemoryRecord(entity_id, owner_id, memory_id, created_at_ms=now_ms, updated_at_ms=now_ms)
    await connection.execute(
        insert(memories).values(asdict(made) | {"reservations": 1, "size_bytes": 0})
    )
    return made


def _named(owner_id: str, memory_id: str) -> Select[tuple[str]]:
    return select(memories.c.id).where(
        memories.c.owner_id == owner_id, memories.c.memory_id == memory_id
    )


async def release_reservation(connection: AsyncConnection, record: MemoryRecord) -> bool:
    """Take one reservation back; return whether nobody needs the memory any more."""
    left = await connection.scalar(
        update(memories)
        .where(memories.c.id == record.id, memories.c.owner_id == record.owner_id, not_(WAS_USED))
        .values(reservations=memories.c.reservations - 1)
        .returning(memories.c.reservations)
    )
    return left is not None and left <= 0


async def lock_abandoned(
    connection: AsyncConnection, until_ms: int, now_ms: int, at_most: int
) -> list[MemoryRecord]:
    """Lock memories without a turn that nobody reserved since, and nobody holds."""
    query = (
        select(*COLUMNS)
        .where(
            not_(WAS_USED),
            memories.c.updated_at_ms <= until_ms,
            not_(lock_queue.has_live_claims(now_ms)),
        )
        .order_by(memories.c.updated_at_ms)
        .limit(at_most)
        .with_for_update(skip_locked=True)
    )
    found = [to_record(row) for row in await connection.execute(query)]
    # Owners in one order everywhere, so that two of these never wait for each other.
    return sorted(found, key=lambda record: record.owner_id)


async def delete_memory(connection: AsyncConnection, record: MemoryRecord) -> None:
    """Take a memory away with all that hangs on it, and off its owner's count."""
    # Until it is locked for this, others may still be adding rows that refer to it.
    await connection.execute(select_owned(record.id, record.owner_id).with_for_update())
    await lock_queue.remove_claims(connection, record.id)
    await transcript_rows.delete_transcript(connection, record.id)
    gone = await connection.scalar(
        delete(memories)
        .where(memories.c.id == record.id, memories.c.owner_id == record.owner_id)
        .returning(memories.c.size_bytes)
    )
    if gone is None:
        return
    await connection.execute(
        update(owners)
        .where(owners.c.owner_id == record.owner_id)
        .values(memories=owners.c.memories - 1, size_bytes=owners.c.size_bytes - gone)
    )


async def charge(connection: AsyncConnection, owner_id: str, size: int) -> int:
    """Add bytes to what an owner's memories have; return that.

    The memory's own row, which is locked before, says the same of it.
    """
    total: int | None = await connection.scalar(
        update(owners)
        .where(owners.c.owner_id == owner_id)
        .values(size_bytes=owners.c.size_bytes + size)
        .returning(owners.c.size_bytes)
    )
    return total or 0

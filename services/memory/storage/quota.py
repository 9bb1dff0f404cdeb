"""Reservation, creation and deletion of memories, and the quotas of their owners.

Each function works in the caller's transaction, where the memory's row is locked before its
owner's. The statement that increments the count of an owner's memories also checks the quota.
"""

from dataclasses import asdict

from sqlalchemy import delete, not_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.storage.database import insert_into
from services.common.storage.leased_rows import delete_in_order
from services.common.storage.owners import ensure_owner, owners
from services.memory.storage import transcript_rows
from services.memory.storage.memory_records import (
    COLUMNS,
    IS_UNUSED,
    OWNED,
    WAS_USED,
    MemoryRecord,
    owned,
    quota_exceeded,
    to_record,
)
from services.memory.storage.tables import claims, memories, queues


async def lock_owner(connection: AsyncConnection, owner_id: str) -> None:
    """Lock an owner's row until the transaction ends; insert it if there is none."""
    await ensure_owner(connection, owner_id)
    await connection.execute(
        select(owners.c.owner_id)
        .where(owners.c.owner_id == owner_id)
        .with_for_update(key_share=True)
    )


async def reserve_existing(
    connection: AsyncConnection, owner_id: str, memory_id: str, now_ms: int
) -> MemoryRecord | None:
    """Reserve an existing memory that has no turn yet; return None if there is none."""
    reserved = await connection.execute(
        update(memories)
        .where(memories.c.owner_id == owner_id, memories.c.memory_id == memory_id, not_(WAS_USED))
        .values(reservations=memories.c.reservations + 1, updated_at_ms=now_ms)
        .returning(*COLUMNS)
    )
    row = reserved.one_or_none()
    return to_record(row) if row else None


async def create(
    connection: AsyncConnection, record: MemoryRecord, max_memories: int
) -> MemoryRecord | None:
    """Insert and reserve a memory; return None when another call has inserted it meanwhile.

    Raises:
        GatewayError: memory_quota_exceeded, when its owner has `max_memories` already.
    """
    await ensure_owner(connection, record.owner_id)
    # Before the owner is locked: the insert waits while a memory of that name is being changed.
    inserted = await connection.execute(
        insert_into(connection, memories)
        .values(asdict(record) | {"reservations": 1, "size_bytes": 0})
        .on_conflict_do_nothing()
        .returning(memories.c.id)
    )
    if inserted.one_or_none() is None:
        return None
    counted = await connection.execute(
        update(owners)
        .where(owners.c.owner_id == record.owner_id, owners.c.memories < max_memories)
        .values(memories=owners.c.memories + 1)
    )
    if not counted.rowcount:
        raise quota_exceeded(max_memories)
    return record


async def release_reservation(connection: AsyncConnection, record: MemoryRecord) -> bool:
    """Release a reservation; return whether the memory has no turn and no other reservation."""
    left = await connection.scalar(
        update(memories)
        .where(memories.c.id == record.id, memories.c.owner_id == record.owner_id, not_(WAS_USED))
        .values(reservations=memories.c.reservations - 1)
        .returning(memories.c.reservations)
    )
    return left is not None and left <= 0


async def lock_abandoned(
    connection: AsyncConnection, until_ms: int, now_ms: int, limit: int
) -> list[MemoryRecord]:
    """Lock memories without a turn that were last reserved before `until_ms` and have no claim."""
    has_claims = select(claims.c.id).where(
        claims.c.entity_id == memories.c.id, claims.c.ends_at_ms > now_ms
    )
    query = (
        select(*COLUMNS)
        .where(IS_UNUSED, memories.c.updated_at_ms <= until_ms, ~has_claims.exists())
        .order_by(memories.c.updated_at_ms)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    abandoned = [to_record(row) for row in await connection.execute(query)]
    # The same order of owners everywhere, so that two transactions never deadlock.
    return sorted(abandoned, key=lambda record: record.owner_id)


async def delete_memory(connection: AsyncConnection, record: MemoryRecord) -> None:
    """Delete a memory with its claims and transcript, and subtract it from its owner's totals.

    The caller has deleted the rows of other stores before, in the same transaction.
    """
    # Until this row is locked, other transactions may still be adding rows that refer to it.
    await connection.execute(OWNED.with_for_update(), owned(record.id, record.owner_id))
    await connection.execute(delete(queues).where(queues.c.entity_id == record.id))
    await delete_in_order(connection, claims, claims.c.entity_id == record.id)
    await transcript_rows.delete_transcript(connection, record.id)
    freed = await connection.scalar(
        delete(memories)
        .where(memories.c.id == record.id, memories.c.owner_id == record.owner_id)
        .returning(memories.c.size_bytes)
    )
    if freed is None:
        return
    await connection.execute(
        update(owners)
        .where(owners.c.owner_id == record.owner_id)
        .values(memories=owners.c.memories - 1, size_bytes=owners.c.size_bytes - freed)
    )

"""The rows of stored responses, and the count of what they take up.

Each function works in the caller's transaction, where responses are locked before their owners.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.common.database import execute_many
from services.memory.responses.packing import PackedContent
from services.memory.responses.records import RUN_BYTES, ResponseState
from services.memory.responses.tables import contents, output_items, responses
from services.memory.storage import quota

# The holder of a response that nobody generates.
FREE = ""


async def insert_response(
    connection: AsyncConnection, row: Mapping[str, Any], packed_input: bytes, packed: PackedContent
) -> int:
    """Insert a response; return what its owner's memories and responses take up then.

    Raises:
        IntegrityError: its owner has a response of that id.
    """
    await quota.ensure_owner(connection, row["owner_id"])
    await connection.execute(insert(responses).values(row))
    await connection.execute(
        insert(contents).values(
            id=row["id"],
            body=packed.body,
            input=packed_input,
            output=packed.output,
            events=packed.events,
        )
    )
    await _insert_items(connection, row["id"], row["owner_id"], packed)
    return await quota.charge(connection, row["owner_id"], row["size_bytes"])


async def write_end(
    connection: AsyncConnection, row_id: str, owner_id: str, packed: PackedContent, size: int
) -> None:
    """Write the content of a response that has ended, and release it."""
    await connection.execute(delete(output_items).where(output_items.c.id == row_id))
    await _insert_items(connection, row_id, owner_id, packed)
    await connection.execute(
        update(contents)
        .where(contents.c.id == row_id)
        .values(body=packed.body, output=packed.output, events=packed.events)
    )
    await connection.execute(
        update(responses)
        .where(responses.c.id == row_id)
        .values(state=ResponseState.ENDED, holder=FREE, ends_at_ms=0, size_bytes=size)
    )


async def end_running(
    connection: AsyncConnection, which: ColumnElement[bool], state: ResponseState
) -> int:
    """End responses that are being generated, without a content; return how many there were."""
    ordered = select(responses.c.id).where(which).order_by(responses.c.id).with_for_update()
    ended = await connection.execute(
        update(responses)
        .where(responses.c.id.in_(ordered))
        .values(
            state=state,
            holder=FREE,
            ends_at_ms=0,
            size_bytes=responses.c.size_bytes - RUN_BYTES,
        )
        .returning(responses.c.owner_id)
    )
    counted = Counter(ended.scalars())
    for owner_id, count in sorted(counted.items()):
        await quota.charge(connection, owner_id, -RUN_BYTES * count)
    return counted.total()


async def delete_responses(
    connection: AsyncConnection, which: ColumnElement[bool], *, limit: int
) -> int:
    """Delete responses, and take them off their owners' counts; return how many there were."""
    query = (
        select(responses.c.id, responses.c.owner_id, responses.c.size_bytes)
        .where(which)
        .order_by(responses.c.id)
        .limit(limit)
        .with_for_update()
    )
    rows = (await connection.execute(query)).all()
    ids = [row.id for row in rows]
    for table in (output_items, contents):
        await connection.execute(delete(table).where(table.c.id.in_(ids)))
    await connection.execute(delete(responses).where(responses.c.id.in_(ids)))
    freed: Counter[str] = Counter()
    for row in rows:
        freed[row.owner_id] += row.size_bytes
    for owner_id, size in sorted(freed.items()):
        await quota.charge(connection, owner_id, -size)
    return len(rows)


async def _insert_items(
    connection: AsyncConnection, row_id: str, owner_id: str, packed: PackedContent
) -> None:
    rows = [{"id": row_id, "item_id": one, "owner_id": owner_id} for one in packed.item_ids]
    if rows:
        await execute_many(connection, insert(output_items), rows)

"""The rows of stored responses, and the accounting of their sizes.

Each function works in the caller's transaction, where responses are locked before their owners.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, insert, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.responses_pb2 import ResponseConversation, ResponseItem
from services.common.errors import GatewayError
from services.common.storage.database import execute_many
from services.common.storage.owners import charge, ensure_owner
from services.responses.conversations.records import ConversationLimits
from services.responses.conversations.rows import append_items
from services.responses.conversations.tables import origins
from services.responses.packing import PackedContent
from services.responses.records import RUN_BYTES, StoredState
from services.responses.tables import contents, output_items, responses

# The holder of a response that is not being generated.
FREE = ""
_INSERT_RESPONSE = insert(responses)
_INSERT_CONTENT = insert(contents)
_INSERT_ITEM = insert(output_items)
# The condition that a response is being generated; with a literal, to match the index on leases.
IS_HELD = and_(responses.c.holder != literal_column("''"), responses.c.ends_at_ms > 0)


@dataclass(frozen=True, slots=True)
class NewRow:
    """A response to be inserted.

    Attributes:
        row: its row in the table of responses.
        packed_input: the serialized items of its input.
        packed: its content.
        origin: the stored conversation that it was generated from.
        appended: items to be appended to that conversation, unless it is gone.
    """

    row: Mapping[str, Any]
    packed_input: bytes
    packed: PackedContent
    origin: ResponseConversation | None = None
    appended: Sequence[ResponseItem] = ()


async def insert_responses(
    connection: AsyncConnection, new: Sequence[NewRow], limits: ConversationLimits
) -> Mapping[str, int]:
    """Insert responses; return the new stored sizes of their owners, in bytes.

    Args:
        connection: a connection in a transaction.
        new: the responses.
        limits: the bounds of the conversations that they are appended to.

    Raises:
        IntegrityError: an owner has a response of that id.
        GatewayError: too_large, a conversation has no room.
    """
    sizes: Counter[str] = Counter()
    for new_row in new:
        sizes[new_row.row["owner_id"]] += new_row.row["size_bytes"]
    # The same order everywhere, so that two transactions never deadlock.
    ordered = sorted(sizes.items())
    for owner_id, _ in ordered:
        await ensure_owner(connection, owner_id)
    await execute_many(connection, _INSERT_RESPONSE, [new_row.row for new_row in new])
    await execute_many(connection, _INSERT_CONTENT, [_content_row(new_row) for new_row in new])
    items = [
        row
        for new_row in new
        for row in _item_rows(new_row.row["id"], new_row.row["owner_id"], new_row.packed)
    ]
    await execute_many(connection, _INSERT_ITEM, items)
    from_conversations = [new_row for new_row in new if new_row.origin is not None]
    if from_conversations:
        sizes.update(await _insert_origins(connection, from_conversations, limits))
        ordered = sorted(sizes.items())
    return {owner_id: await charge(connection, owner_id, size) for owner_id, size in ordered}


async def _insert_origins(
    connection: AsyncConnection, new: Sequence[NewRow], limits: ConversationLimits
) -> Mapping[str, int]:
    """Insert the origins of responses, and append to their conversations.

    Returns:
        The bytes charged for the items, by owner.

    Raises:
        GatewayError: too_large.
    """
    await connection.execute(insert(origins), [_origin_row(new_row) for new_row in new])
    sizes: Counter[str] = Counter()
    # Conversations in the same order everywhere, responses of one in the order of the calls.
    for new_row in sorted(new, key=_conversation_id):
        sizes[new_row.row["owner_id"]] += await append_of_response(
            connection,
            new_row.row["owner_id"],
            _conversation_id(new_row),
            new_row.appended,
            new_row.row["created_at_ms"],
            limits,
        )
    return sizes


async def append_of_response(
    connection: AsyncConnection,
    owner_id: str,
    conversation_id: str,
    new: Sequence[ResponseItem],
    now_ms: int,
    limits: ConversationLimits,
) -> int:
    """Append the items of a response to its conversation; return the bytes charged for them.

    Nothing is appended to a conversation that was deleted, or has expired, meanwhile.

    Raises:
        GatewayError: too_large.
    """
    if not new:
        return 0
    try:
        appended = await append_items(connection, owner_id, conversation_id, new, now_ms, limits)
    except GatewayError as error:
        if error.reason != errors_pb2.REASON_NOT_FOUND:
            raise
        return 0
    return appended.size


async def write_end(
    connection: AsyncConnection, row_id: str, owner_id: str, packed: PackedContent, size: int
) -> None:
    """Write the content of a response that has ended, and release its lease."""
    await connection.execute(delete(output_items).where(output_items.c.id == row_id))
    await execute_many(connection, _INSERT_ITEM, _item_rows(row_id, owner_id, packed))
    await connection.execute(
        update(contents)
        .where(contents.c.id == row_id)
        .values(body=packed.body, output=packed.output, events=packed.events)
    )
    await connection.execute(
        update(responses)
        .where(responses.c.id == row_id)
        .values(state=StoredState.ENDED, holder=FREE, ends_at_ms=0, size_bytes=size)
    )


async def end_running(
    connection: AsyncConnection, which: ColumnElement[bool], state: StoredState
) -> int:
    """End responses that are being generated, without content; return their number."""
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
    ended_by_owner = Counter(ended.scalars())
    for owner_id, count in sorted(ended_by_owner.items()):
        await charge(connection, owner_id, -RUN_BYTES * count)
    return ended_by_owner.total()


async def delete_responses(
    connection: AsyncConnection,
    which: ColumnElement[bool],
    *,
    limit: int,
    skip_locked: bool = False,
) -> Sequence[int]:
    """Delete responses, and subtract them from their owners' stored sizes; return their sizes.

    Rows are locked in the order in which they expire, so a caller that deletes several sets
    `skip_locked` to skip rows that other transactions have locked.
    """
    query = (
        select(responses.c.id, responses.c.owner_id, responses.c.size_bytes)
        .where(which)
        .order_by(responses.c.expires_at_ms)
        .limit(limit)
        .with_for_update(skip_locked=skip_locked)
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
        await charge(connection, owner_id, -size)
    return [row.size_bytes for row in rows]


def _content_row(new: NewRow) -> dict[str, Any]:
    packed = new.packed
    return {
        "id": new.row["id"],
        "body": packed.body,
        "input": new.packed_input,
        "output": packed.output,
        "events": packed.events,
    }


def _item_rows(row_id: str, owner_id: str, packed: PackedContent) -> list[dict[str, Any]]:
    return [{"id": row_id, "item_id": item_id, "owner_id": owner_id} for item_id in packed.item_ids]


def _conversation_id(new: NewRow) -> str:
    return new.origin.id if new.origin is not None else ""


def _origin_row(new: NewRow) -> dict[str, Any]:
    assert new.origin is not None
    return {
        "id": new.row["id"],
        "conversation_id": new.origin.id,
        "last_position": new.origin.last_position,
    }

"""The rows of stored conversations.

Each function works in the caller's transaction, where conversations are locked after responses and
before their owners, several of them in the order of their ids. The sizes of rows are returned, to
be charged to the owner at the end of the transaction.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, and_, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.memory.v1.responses_pb2 import ResponseItem
from services.common import ids
from services.common.storage.database import execute_many
from services.responses.conversations.records import (
    ConversationLimits,
    check_size,
    conversation_not_found,
    items_size,
)
from services.responses.conversations.tables import conversations, items

# Ids in one SQL statement; databases accept some thousands.
_IDS_AT_ONCE = 500
_NEW_ITEM = "item_"


class Appended(NamedTuple):
    """Appended items with their final ids, and the bytes charged for them."""

    items: Sequence[ResponseItem]
    size: int


class ReadItems(NamedTuple):
    """Items, or only their size.

    Attributes:
        items: the items.
        omitted_bytes: about the size of the items, if they were not loaded because of it, else 0.
        last_position: position of the last item in its conversation; 0 without one.
    """

    items: Sequence[ResponseItem]
    omitted_bytes: int = 0
    last_position: int = 0


def is_alive(owner_id: str, conversation_id: str, now_ms: int) -> ColumnElement[bool]:
    """Return the condition that a row is an owner's conversation and has not expired."""
    return and_(
        conversations.c.id == conversation_id,
        conversations.c.owner_id == owner_id,
        conversations.c.expires_at_ms > now_ms,
    )


async def append_items(
    connection: AsyncConnection,
    owner_id: str,
    conversation_id: str,
    new: Sequence[ResponseItem],
    now_ms: int,
    limits: ConversationLimits,
    new_id: ids.IdGenerator = ids.new_id,
) -> Appended:
    """Append items to a conversation, and restart its time to live.

    The first statement locks the row of the conversation, so that concurrent appends are
    serialized.

    Args:
        connection: a connection in a transaction.
        owner_id: the user.
        conversation_id: the conversation.
        new: the items; an item whose id exists in the conversation gets a new id.
        now_ms: Unix milliseconds.
        limits: the bounds.
        new_id: makes ids of items.

    Raises:
        GatewayError: not_found; too_large.
    """
    size = items_size(len(new), sum(len(item.json) for item in new))
    row = (
        await connection.execute(
            update(conversations)
            .where(is_alive(owner_id, conversation_id, now_ms))
            .values(
                item_count=conversations.c.item_count + len(new),
                last_position=conversations.c.last_position + len(new),
                size_bytes=conversations.c.size_bytes + size,
                expires_at_ms=now_ms + int(limits.ttl_s * 1000),
            )
            .returning(
                conversations.c.item_count,
                conversations.c.last_position,
                conversations.c.size_bytes,
            )
        )
    ).one_or_none()
    if row is None:
        raise conversation_not_found(conversation_id)
    check_size(limits, row.item_count, row.size_bytes)
    items_with_ids = _named(new, await _ids_taken(connection, conversation_id, new), new_id)
    first = row.last_position - len(new) + 1
    rows = [
        {
            "conversation_id": conversation_id,
            "position": position,
            "item_id": item.id,
            "json": item.json,
        }
        for position, item in enumerate(items_with_ids, first)
    ]
    await execute_many(connection, insert(items), rows)
    return Appended(items_with_ids, size)


async def read_until(
    connection: AsyncConnection,
    owner_id: str,
    conversation_id: str,
    last_position: int,
    now_ms: int,
    max_bytes: int | None = None,
) -> ReadItems:
    """Return the items of a conversation up to a position, without deleted ones.

    Args:
        connection: a connection for one read statement.
        owner_id: the user.
        conversation_id: the conversation.
        last_position: position of the last item.
        now_ms: Unix milliseconds.
        max_bytes: the items of a larger conversation are not loaded.

    Raises:
        GatewayError: not_found.
    """
    is_before = and_(
        items.c.conversation_id == conversations.c.id, items.c.position <= last_position
    )
    if max_bytes is not None:
        is_before = and_(is_before, conversations.c.size_bytes <= max_bytes)
    query: Select[Any] = (
        select(conversations.c.size_bytes, items.c.item_id, items.c.json)
        .select_from(conversations)
        .outerjoin(items, is_before)
        .where(is_alive(owner_id, conversation_id, now_ms))
        .order_by(items.c.position)
    )
    rows = (await connection.execute(query)).all()
    if not rows:
        raise conversation_not_found(conversation_id)
    return items_within(rows, max_bytes)


def items_within(rows: Sequence[Row[Any]], max_bytes: int | None) -> ReadItems:
    """Return the items of a conversation's rows, or its size if that is more than `max_bytes`."""
    size: int = rows[0].size_bytes
    if max_bytes is not None and size > max_bytes:
        return ReadItems((), size)
    return ReadItems(items_of(rows))


def items_of(rows: Iterable[Row[Any]]) -> list[ResponseItem]:
    """Return the items of rows; the row of a conversation without items has none."""
    return [ResponseItem(id=row.item_id, json=row.json) for row in rows if row.item_id is not None]


async def delete_conversations(
    connection: AsyncConnection,
    which: ColumnElement[bool],
    *,
    limit: int,
    skip_locked: bool = False,
) -> list[tuple[str, int]]:
    """Delete conversations with their items; return the owner and the freed bytes of each.

    Rows are locked in the order in which they expire, so a caller that deletes several sets
    `skip_locked` to skip rows that other transactions have locked.
    """
    query = (
        select(conversations.c.id, conversations.c.owner_id, conversations.c.size_bytes)
        .where(which)
        .order_by(conversations.c.expires_at_ms)
        .limit(limit)
        .with_for_update(skip_locked=skip_locked)
    )
    rows = (await connection.execute(query)).all()
    conversation_ids = [row.id for row in rows]
    await connection.execute(delete(items).where(items.c.conversation_id.in_(conversation_ids)))
    await connection.execute(delete(conversations).where(conversations.c.id.in_(conversation_ids)))
    return [(row.owner_id, row.size_bytes) for row in rows]


async def _ids_taken(
    connection: AsyncConnection, conversation_id: str, new: Sequence[ResponseItem]
) -> set[str]:
    """Return the ids of new items that exist in the conversation."""
    item_ids = [item.id for item in new]
    taken_ids: set[str] = set()
    for start in range(0, len(item_ids), _IDS_AT_ONCE):
        query = select(items.c.item_id).where(
            items.c.conversation_id == conversation_id,
            items.c.item_id.in_(item_ids[start : start + _IDS_AT_ONCE]),
        )
        taken_ids.update(await connection.scalars(query))
    return taken_ids


def _named(
    new: Iterable[ResponseItem], taken_ids: set[str], new_id: ids.IdGenerator
) -> list[ResponseItem]:
    """Return items with ids that are not taken; their ids are added to `taken_ids`."""
    items_with_ids = []
    for item in new:
        item_id = new_id(_NEW_ITEM) if item.id in taken_ids else item.id
        taken_ids.add(item_id)
        items_with_ids.append(ResponseItem(id=item_id, json=item.json))
    return items_with_ids

"""The stored conversations of all users in the database."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.memory.v1.conversations_pb2 import StoredConversation
from gateway.memory.v1.responses_pb2 import ResponseItem
from services.common import ids
from services.common.clock import Clock
from services.common.errors import GatewayError, invalid
from services.common.storage.database import reading_once, write
from services.common.storage.owners import charge, ensure_owner
from services.responses.conversations.records import (
    ConversationLimits,
    check_size,
    conversation_not_found,
    conversation_size,
    item_not_found,
    items_size,
    storage_exceeded,
)
from services.responses.conversations.rows import (
    ReadItems,
    append_items,
    delete_conversations,
    is_alive,
    items_of,
    items_within,
)
from services.responses.conversations.tables import conversations, items

_COLUMNS = (
    conversations.c.id,
    conversations.c.notes,
    conversations.c.created_at_ms,
    conversations.c.expires_at_ms,
)


class ConversationRepository:
    """Stored conversations; every method raises `unavailable` when the database does not answer.

    `max_bytes` is the storage quota of a user for memories, responses and conversations together.

    Args:
        engine: the database.
        clock: the clock.
        limits: the bounds.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock, limits: ConversationLimits) -> None:
        self._engine = engine
        self._clock = clock
        self._limits = limits

    async def create(
        self, owner_id: str, max_bytes: int, notes: bytes, new: Sequence[ResponseItem]
    ) -> StoredConversation:
        """Create a conversation with items.

        Raises:
            GatewayError: too_large; memory_storage_exceeded.
        """
        now_ms = self._clock.now_ms()
        conversation = StoredConversation(
            id=ids.new_conversation_id(),
            metadata=notes,
            created_at_ms=now_ms,
            expires_at_ms=self._ends_ms(now_ms),
        )
        size = conversation_size(notes)
        row = {
            "id": conversation.id,
            "owner_id": owner_id,
            "notes": notes,
            "created_at_ms": now_ms,
            "expires_at_ms": conversation.expires_at_ms,
            "item_count": 0,
            "last_position": 0,
            "size_bytes": size,
        }

        async def transact(connection: AsyncConnection) -> None:
            added = 0
            await ensure_owner(connection, owner_id)
            await connection.execute(insert(conversations).values(row))
            if new:
                appended = await append_items(
                    connection, owner_id, conversation.id, new, now_ms, self._limits
                )
                added = appended.size
            await _charge(connection, owner_id, size + added, max_bytes)

        await write(self._engine, transact)
        return conversation

    async def find(self, owner_id: str, conversation_id: str) -> StoredConversation:
        """Return a conversation.

        Raises:
            GatewayError: not_found.
        """
        query: Select[Any] = select(*_COLUMNS).where(
            is_alive(owner_id, conversation_id, self._clock.now_ms())
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        return _conversation(row, conversation_id)

    async def list_of(
        self, owner_id: str, size: int, after: str
    ) -> tuple[Sequence[StoredConversation], bool]:
        """Return a page of an owner's conversations, and whether there are others after it.

        Args:
            owner_id: the user.
            size: maximum number of conversations.
            after: id of the conversation before the page, or "".

        Raises:
            GatewayError: invalid, the owner has no conversation `after`.
        """
        place = (conversations.c.expires_at_ms, conversations.c.id)
        alive = (
            conversations.c.owner_id == owner_id,
            conversations.c.expires_at_ms > self._clock.now_ms(),
        )
        query: Select[Any] = (
            select(*_COLUMNS)
            .where(*alive)
            .order_by(*(column.desc() for column in place))
            .limit(size + 1)
        )
        async with reading_once(self._engine) as connection:
            if after:
                of_after: Select[Any] = select(*place).where(*alive, conversations.c.id == after)
                last = (await connection.execute(of_after)).one_or_none()
                if last is None:
                    raise invalid("after", "after: must be the id of one of your conversations")
                query = query.where(tuple_(*place) < tuple_(*last))
            rows = (await connection.execute(query)).all()
        return [_conversation(row, row.id) for row in rows[:size]], len(rows) > size

    async def update(
        self, owner_id: str, max_bytes: int, conversation_id: str, notes: bytes
    ) -> StoredConversation:
        """Replace the metadata of a conversation, and return it.

        Raises:
            GatewayError: not_found; memory_storage_exceeded.
        """
        now_ms = self._clock.now_ms()
        alive = is_alive(owner_id, conversation_id, now_ms)

        async def transact(connection: AsyncConnection) -> StoredConversation:
            before = await connection.scalar(
                select(conversations.c.notes).where(alive).with_for_update()
            )
            if before is None:
                raise conversation_not_found(conversation_id)
            size = len(notes) - len(before)
            changed = await connection.execute(
                update(conversations)
                .where(alive)
                .values(
                    notes=notes,
                    size_bytes=conversations.c.size_bytes + size,
                    expires_at_ms=self._ends_ms(now_ms),
                )
                .returning(*_COLUMNS)
            )
            conversation = _conversation(changed.one_or_none(), conversation_id)
            await _charge(connection, owner_id, size, max_bytes)
            return conversation

        return await write(self._engine, transact)

    async def delete(self, owner_id: str, conversation_id: str) -> None:
        """Delete a conversation with its items.

        Raises:
            GatewayError: not_found.
        """
        which = is_alive(owner_id, conversation_id, self._clock.now_ms())

        async def transact(connection: AsyncConnection) -> None:
            freed = await delete_conversations(connection, which, limit=1)
            if not freed:
                raise conversation_not_found(conversation_id)
            await _free(connection, freed)

        await write(self._engine, transact)

    async def delete_expired(self, limit: int) -> int:
        """Delete at most `limit` expired conversations; return their number."""
        which = conversations.c.expires_at_ms <= self._clock.now_ms()

        async def transact(connection: AsyncConnection) -> int:
            freed = await delete_conversations(connection, which, limit=limit, skip_locked=True)
            await _free(connection, freed)
            return len(freed)

        return await write(self._engine, transact)

    async def append(
        self, owner_id: str, max_bytes: int, conversation_id: str, new: Sequence[ResponseItem]
    ) -> Sequence[ResponseItem]:
        """Append items to a conversation; return them with their final ids.

        Raises:
            GatewayError: not_found; too_large; memory_storage_exceeded.
        """
        now_ms = self._clock.now_ms()

        async def transact(connection: AsyncConnection) -> Sequence[ResponseItem]:
            appended = await append_items(
                connection, owner_id, conversation_id, new, now_ms, self._limits
            )
            await _charge(connection, owner_id, appended.size, max_bytes)
            return appended.items

        return await write(self._engine, transact)

    async def append_if_present(
        self, owner_id: str, max_bytes: int, conversation_id: str, new: Sequence[ResponseItem]
    ) -> None:
        """Append items, unless the conversation has been deleted; raises the errors of `append`."""
        try:
            await self.append(owner_id, max_bytes, conversation_id, new)
        except GatewayError as error:
            if error.reason != errors_pb2.REASON_NOT_FOUND:
                raise

    async def find_item(self, owner_id: str, conversation_id: str, item_id: str) -> ResponseItem:
        """Return an item.

        Raises:
            GatewayError: not_found, the conversation or the item.
        """
        rows = await self._rows(owner_id, conversation_id, items.c.item_id == item_id)
        if rows[0].item_id is None:
            raise item_not_found(item_id)
        return ResponseItem(id=rows[0].item_id, json=rows[0].json)

    async def delete_item(
        self, owner_id: str, conversation_id: str, item_id: str
    ) -> StoredConversation:
        """Delete an item, and return its conversation.

        Raises:
            GatewayError: not_found, the conversation or the item.
        """
        alive = is_alive(owner_id, conversation_id, self._clock.now_ms())

        async def transact(connection: AsyncConnection) -> StoredConversation:
            query: Select[Any] = select(*_COLUMNS).where(alive).with_for_update()
            row = (await connection.execute(query)).one_or_none()
            conversation = _conversation(row, conversation_id)
            deleted = await connection.execute(
                delete(items)
                .where(items.c.conversation_id == conversation_id, items.c.item_id == item_id)
                .returning(func.length(items.c.json))
            )
            json_bytes = deleted.scalar_one_or_none()
            if json_bytes is None:
                raise item_not_found(item_id)
            size = items_size(1, json_bytes)
            await connection.execute(
                update(conversations)
                .where(alive)
                .values(
                    item_count=conversations.c.item_count - 1,
                    size_bytes=conversations.c.size_bytes - size,
                )
            )
            await charge(connection, owner_id, -size)
            return conversation

        return await write(self._engine, transact)

    async def page(
        self, owner_id: str, conversation_id: str, size: int, after: str, *, ascending: bool
    ) -> tuple[Sequence[ResponseItem], bool]:
        """Return a page of items, and whether there are items after it.

        Args:
            owner_id: the user.
            conversation_id: the conversation.
            size: maximum number of items.
            after: id of the item before the page, or "".
            ascending: whether the oldest items come first.

        Raises:
            GatewayError: not_found; invalid, the conversation has no item `after`.
        """
        conditions: list[ColumnElement[bool]] = []
        if after:
            place = await self._position(owner_id, conversation_id, after)
            conditions = [items.c.position > place if ascending else items.c.position < place]
        rows = await self._rows(
            owner_id, conversation_id, *conditions, ascending=ascending, limit=size + 1
        )
        page_items = items_of(rows)
        return page_items[:size], len(page_items) > size

    async def read(
        self,
        owner_id: str,
        conversation_id: str,
        new_items: int,
        new_bytes: int,
        max_bytes: int | None = None,
    ) -> ReadItems:
        """Return all items of a conversation.

        The items of a conversation of more than `max_bytes` bytes are not loaded.

        Raises:
            GatewayError: not_found; too_large, there is no room for `new_items` items of
                `new_bytes` bytes.
        """
        fits = [] if max_bytes is None else [conversations.c.size_bytes <= max_bytes]
        rows = await self._rows(owner_id, conversation_id, *fits)
        size = rows[0].size_bytes + items_size(new_items, new_bytes)
        check_size(self._limits, rows[0].item_count + new_items, size)
        return items_within(rows, max_bytes)._replace(last_position=rows[-1].position or 0)

    async def _position(self, owner_id: str, conversation_id: str, item_id: str) -> int:
        rows = await self._rows(owner_id, conversation_id, items.c.item_id == item_id)
        position: int | None = rows[0].position
        if position is None:
            raise invalid("after", "after: must be the id of an item of this conversation")
        return position

    async def _rows(
        self,
        owner_id: str,
        conversation_id: str,
        *wanted: ColumnElement[bool],
        ascending: bool = True,
        limit: int | None = None,
    ) -> Sequence[Row[Any]]:
        """Return the rows of a conversation's items; without any, one row with an empty item.

        Raises:
            GatewayError: not_found.
        """
        position = items.c.position
        query: Select[Any] = (
            select(
                conversations.c.item_count,
                conversations.c.size_bytes,
                position,
                items.c.item_id,
                items.c.json,
            )
            .select_from(conversations)
            .outerjoin(items, and_(items.c.conversation_id == conversations.c.id, *wanted))
            .where(is_alive(owner_id, conversation_id, self._clock.now_ms()))
            .order_by(position if ascending else position.desc())
            .limit(limit)
        )
        async with reading_once(self._engine) as connection:
            rows: Sequence[Row[Any]] = (await connection.execute(query)).all()
        if not rows:
            raise conversation_not_found(conversation_id)
        return rows

    def _ends_ms(self, now_ms: int) -> int:
        return now_ms + int(self._limits.ttl_s * 1000)


async def _charge(connection: AsyncConnection, owner_id: str, size: int, max_bytes: int) -> None:
    """Add bytes to an owner's stored size.

    Raises:
        GatewayError: memory_storage_exceeded; never if nothing is added.
    """
    total = await charge(connection, owner_id, size)
    if size > 0 and total > max_bytes:
        raise storage_exceeded(max_bytes)


async def _free(connection: AsyncConnection, freed: Sequence[tuple[str, int]]) -> None:
    """Subtract deleted conversations from their owners' stored sizes."""
    sizes: Counter[str] = Counter()
    for owner_id, size in freed:
        sizes[owner_id] += size
    # The same order everywhere, so that two transactions never deadlock.
    for owner_id, size in sorted(sizes.items()):
        await charge(connection, owner_id, -size)


def _conversation(row: Row[Any] | None, conversation_id: str) -> StoredConversation:
    """Return the conversation of a row.

    Raises:
        GatewayError: not_found, there is no row.
    """
    if row is None:
        raise conversation_not_found(conversation_id)
    return StoredConversation(
        id=row.id,
        metadata=row.notes,
        created_at_ms=row.created_at_ms,
        expires_at_ms=row.expires_at_ms,
    )

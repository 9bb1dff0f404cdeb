"""The stored chat completions of all users in the database."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from gateway.memory.v1.chats_pb2 import StoredChatCompletion
from services.common.clock import Clock
from services.common.errors import invalid
from services.common.storage.database import reading_once, write
from services.common.storage.owners import charge, ensure_owner
from services.responses.chats.records import (
    ChatLimits,
    chat_exists,
    chat_not_found,
    chat_too_large,
    label_in,
    labels_of,
    size_of,
    storage_exceeded,
)
from services.responses.chats.tables import chat_contents, chats

# Bytes of a page, which has at least one chat completion.
_MAX_PAGE = 16 << 20
_CONTENT = and_(chat_contents.c.owner_id == chats.c.owner_id, chat_contents.c.id == chats.c.id)
_OF_LISTS = (
    chats.c.id,
    chats.c.model,
    chats.c.labels,
    chats.c.created_at_ms,
    chats.c.expires_at_ms,
    chat_contents.c.completion,
)


class ChatRepository:
    """Stored chat completions; every method raises `unavailable` when the database fails.

    `max_bytes` is the storage quota of a user for memories, responses and chat completions.

    Args:
        engine: the database.
        clock: the clock.
        limits: the bounds.
    """

    def __init__(self, engine: AsyncEngine, clock: Clock, limits: ChatLimits) -> None:
        self._engine = engine
        self._clock = clock
        self._limits = limits

    async def create(self, owner_id: str, max_bytes: int, chat: StoredChatCompletion) -> None:
        """Store a chat completion.

        Raises:
            GatewayError: conflict, the owner has one of that id; too_large;
                memory_storage_exceeded.
        """
        size = size_of(chat)
        if size > self._limits.max_bytes:
            raise chat_too_large(self._limits.max_bytes)
        now_ms = self._clock.now_ms()
        key = {"owner_id": owner_id, "id": chat.id}
        row = {
            **key,
            "model": chat.model,
            "labels": labels_of(chat.metadata),
            "created_at_ms": now_ms,
            "expires_at_ms": now_ms + int(self._limits.ttl_s * 1000),
            "size_bytes": size,
        }
        content = {**key, "completion": chat.completion, "messages": chat.messages}

        async def transact(connection: AsyncConnection) -> None:
            await ensure_owner(connection, owner_id)
            try:
                await connection.execute(insert(chats).values(row))
            except IntegrityError:
                raise chat_exists() from None
            await connection.execute(insert(chat_contents).values(content))
            await _charge(connection, owner_id, size, max_bytes)

        await write(self._engine, transact)

    async def find(self, owner_id: str, chat_id: str) -> StoredChatCompletion:
        """Return a chat completion.

        Raises:
            GatewayError: not_found.
        """
        query: Select[Any] = (
            select(*_OF_LISTS, chat_contents.c.messages)
            .join(chat_contents, _CONTENT)
            .where(self._is_alive(owner_id, chat_id))
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise chat_not_found(chat_id)
        return _chat(row, row.messages)

    async def page(
        self,
        owner_id: str,
        size: int,
        after: str,
        *,
        descending: bool,
        model: str,
        metadata: Mapping[str, str],
    ) -> tuple[Sequence[StoredChatCompletion], bool]:
        """Return a page of chat completions, and whether there are more after it.

        Args:
            owner_id: the user.
            size: maximum number of chat completions.
            after: id of the one before the page, or "".
            descending: whether the newest come first.
            model: the model of all of them, or "".
            metadata: entries that all of them have.

        Raises:
            GatewayError: invalid, the owner has no chat completion `after`.
        """
        conditions = [self._is_of(owner_id)]
        if after:
            conditions.append(await self._is_after(owner_id, after, descending=descending))
        if model:
            conditions.append(chats.c.model == model)
        # No function for parts of a text is the same in both databases.
        conditions += [
            func.replace(chats.c.labels, label_in(key, value), "") != chats.c.labels
            for key, value in metadata.items()
        ]
        columns = (chats.c.created_at_ms, chats.c.id)
        order = [column.desc() if descending else column for column in columns]
        query: Select[Any] = (
            select(chats.c.id, chats.c.size_bytes)
            .where(*conditions)
            .order_by(*order)
            .limit(size + 1)
        )
        async with reading_once(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        listed_ids = _within(rows[:size])
        contents: Select[Any] = (
            select(*_OF_LISTS)
            .join(chat_contents, _CONTENT)
            .where(self._is_of(owner_id), chats.c.id.in_(listed_ids))
            .order_by(*order)
        )
        async with reading_once(self._engine) as connection:
            listed = [_chat(row) for row in await connection.execute(contents)]
        return listed, len(rows) > len(listed_ids)

    async def update(
        self, owner_id: str, max_bytes: int, chat_id: str, metadata: Mapping[str, str]
    ) -> StoredChatCompletion:
        """Replace the metadata of a chat completion, and return it without its messages.

        Raises:
            GatewayError: not_found; memory_storage_exceeded.
        """
        labels = labels_of(metadata)
        is_alive = self._is_alive(owner_id, chat_id)

        async def transact(connection: AsyncConnection) -> None:
            before = await connection.scalar(
                select(chats.c.labels).where(is_alive).with_for_update()
            )
            if before is None:
                raise chat_not_found(chat_id)
            added = len(labels) - len(before)
            changed = {"labels": labels, "size_bytes": chats.c.size_bytes + added}
            await connection.execute(update(chats).where(is_alive).values(changed))
            await _charge(connection, owner_id, added, max_bytes)

        await write(self._engine, transact)
        return await self.find(owner_id, chat_id)

    async def delete(self, owner_id: str, chat_id: str) -> None:
        """Delete a chat completion.

        Raises:
            GatewayError: not_found.
        """
        is_alive = self._is_alive(owner_id, chat_id)
        if not await write(
            self._engine, lambda connection: delete_chats(connection, is_alive, limit=1)
        ):
            raise chat_not_found(chat_id)

    async def delete_expired(self, limit: int) -> int:
        """Delete at most `limit` expired chat completions; return their number."""
        which = chats.c.expires_at_ms <= self._clock.now_ms()
        sizes = await write(
            self._engine,
            lambda connection: delete_chats(connection, which, limit=limit, skip_locked=True),
        )
        return len(sizes)

    def _is_of(self, owner_id: str) -> ColumnElement[bool]:
        return and_(chats.c.owner_id == owner_id, chats.c.expires_at_ms > self._clock.now_ms())

    def _is_alive(self, owner_id: str, chat_id: str) -> ColumnElement[bool]:
        return and_(self._is_of(owner_id), chats.c.id == chat_id)

    async def _is_after(
        self, owner_id: str, chat_id: str, *, descending: bool
    ) -> ColumnElement[bool]:
        """Return the condition that a row comes after another one.

        Raises:
            GatewayError: invalid, the owner has no such chat completion.
        """
        query = select(chats.c.created_at_ms).where(self._is_alive(owner_id, chat_id))
        async with reading_once(self._engine) as connection:
            created: int | None = await connection.scalar(query)
        if created is None:
            raise invalid("after", "after: must be the id of a stored chat completion")
        time, row_id = chats.c.created_at_ms, chats.c.id
        if descending:
            return or_(time < created, and_(time == created, row_id < chat_id))
        return or_(time > created, and_(time == created, row_id > chat_id))


async def delete_chats(
    connection: AsyncConnection,
    which: ColumnElement[bool],
    *,
    limit: int,
    skip_locked: bool = False,
) -> list[int]:
    """Delete chat completions; return the freed bytes of each.

    Rows are locked in the order in which they expire, so a caller that deletes several sets
    `skip_locked` to skip rows that other transactions have locked.
    """
    query = (
        select(chats.c.owner_id, chats.c.id, chats.c.size_bytes)
        .where(which)
        .order_by(chats.c.expires_at_ms, chats.c.id)
        .limit(limit)
        .with_for_update(skip_locked=skip_locked)
    )
    rows = (await connection.execute(query)).all()
    keys = [(row.owner_id, row.id) for row in rows]
    for table in (chat_contents, chats):
        is_one = tuple_(table.c.owner_id, table.c.id).in_(keys)
        await connection.execute(delete(table).where(is_one))
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row.owner_id] += row.size_bytes
    # The same order everywhere, so that two transactions never deadlock.
    for owner_id, size in sorted(sizes.items()):
        await charge(connection, owner_id, -size)
    return [row.size_bytes for row in rows]


async def _charge(connection: AsyncConnection, owner_id: str, size: int, max_bytes: int) -> None:
    """Add bytes to an owner's stored size.

    Raises:
        GatewayError: memory_storage_exceeded; never if nothing is added.
    """
    total = await charge(connection, owner_id, size)
    if size > 0 and total > max_bytes:
        raise storage_exceeded(max_bytes)


def _within(rows: Sequence[Row[Any]]) -> list[str]:
    """Return the ids of the first rows that have `_MAX_PAGE` bytes together, at least one."""
    left = _MAX_PAGE
    listed: list[str] = []
    for row in rows:
        left -= row.size_bytes
        if listed and left < 0:
            break
        listed.append(row.id)
    return listed


def _chat(row: Row[Any], messages: bytes = b"") -> StoredChatCompletion:
    return StoredChatCompletion(
        id=row.id,
        model=row.model,
        metadata=orjson.loads(row.labels),
        completion=row.completion,
        messages=messages,
        created_at_ms=row.created_at_ms,
        expires_at_ms=row.expires_at_ms,
    )

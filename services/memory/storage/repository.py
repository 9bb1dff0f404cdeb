"""Memories in the database: which there are, and their transcripts.

::

    record = await repository.reserve(user_id, "diary", quota)
    try:
        async with locks.write_lock(record) as lock:
            ...
            async with repository.committing(lock) as (connection, record):
                await repository.rewind(connection, record, 4)
                await repository.append(connection, record, turns)
    finally:
        await repository.release(record)

A memory without a turn is the same as none: only who reserved it sees it. What a rewind
takes out of the transcript stays in the tables, superseded. In a transaction a memory's
row is locked before anything else of it, and its owner's after that.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.database import reading, reading_once, writing
from services.common.ids import Source
from services.memory.locks import lock_queue
from services.memory.locks.locks import WriteLock
from services.memory.storage import quota, transcript_rows
from services.memory.storage.memory_records import (
    COLUMNS,
    WAS_USED,
    select_owned,
    taken_over,
    to_record,
)
from services.memory.storage.memory_records import MemoryRecord as MemoryRecord
from services.memory.storage.page_tokens import read_number, read_time_and_id, write_token
from services.memory.storage.tables import memories, owners
from services.memory.transcript.messages import message_key
from services.memory.transcript.turns import StoredTurn

PREFIX = "memory_"

# Calls that make one memory at once make it once; the others find it.
_ATTEMPTS = 3


class MemoryRepository:
    """Memories and their transcripts.

    Every method that opens a transaction raises `unavailable` when the database does not
    answer.
    """

    def __init__(self, engine: AsyncEngine, source: Source | None = None) -> None:
        self._engine = engine
        self._source = source or Source()

    async def find(self, owner_id: str, memory_id: str) -> MemoryRecord | None:
        """Return a memory by its owner's name of it; None when there is none with a turn."""
        query = select(*COLUMNS).where(
            memories.c.owner_id == owner_id, memories.c.memory_id == memory_id, WAS_USED
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        return to_record(row) if row else None

    async def current(self, record: MemoryRecord) -> MemoryRecord | None:
        """Return a memory as it is now; None when it is gone, even if another has its name."""
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(select_owned(record.id, record.owner_id))).one_or_none()
        return to_record(row) if row else None

    async def names(self, owner_id: str, entity_ids: Collection[str]) -> dict[str, str]:
        """Return an owner's own names of memories by their ids; foreign ones are left out."""
        query = select(memories.c.id, memories.c.memory_id).where(
            memories.c.owner_id == owner_id, memories.c.id.in_(entity_ids)
        )
        async with reading_once(self._engine) as connection:
            return {row.id: row.memory_id for row in await connection.execute(query)}

    async def page(
        self, owner_id: str, limit: int, page_token: str = ""
    ) -> tuple[list[MemoryRecord], str]:
        """Return an owner's memories, the one used last first, and the token of the next page.

        Raises:
            GatewayError: invalid_request, when the token is none.
        """
        query = select(*COLUMNS).where(memories.c.owner_id == owner_id, WAS_USED)
        position = tuple_(memories.c.updated_at_ms, memories.c.id)
        if page_token:
            query = query.where(position < read_time_and_id(page_token))
        query = query.order_by(memories.c.updated_at_ms.desc(), memories.c.id.desc())
        async with reading_once(self._engine) as connection:
            rows = (await connection.execute(query.limit(limit + 1))).all()
        found = [to_record(row) for row in rows[:limit]]
        last = found[-1] if len(rows) > limit else None
        return found, write_token(last.updated_at_ms, last.id) if last else ""

    async def reserve(self, owner_id: str, memory_id: str, max_memories: int) -> MemoryRecord:
        """Return a memory, made where there is none; `release` it when the call is over.

        Args:
            owner_id: the user.
            memory_id: the user's name of it.
            max_memories: how many memories the user may have.

        Raises:
            GatewayError: memory_quota_exceeded, when it would be one too many.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            if record := await self.find(owner_id, memory_id):
                return record
            try:
                async with writing(self._engine) as connection:
                    name = (owner_id, memory_id, self._now_ms())
                    record = await quota.reserve_existing(connection, *name)
                    if record is None:
                        new_id = self._source.new_id(PREFIX)
                        record = await quota.create(connection, *name, new_id, max_memories)
                if record:
                    return record
            except IntegrityError:
                # Another call made it meanwhile.
                if attempt == _ATTEMPTS:
                    raise
        raise taken_over()

    async def release(self, record: MemoryRecord) -> None:
        """Drop a memory that was reserved and got no turn, unless other calls are at it."""
        if record.turns or record.epoch:
            return
        async with writing(self._engine) as connection:
            if await quota.release_reservation(connection, record):
                await quota.delete_memory(connection, record)

    async def drop_unused(self, older_than_s: float, at_most: int) -> int:
        """Drop memories without a turn whose calls died so long ago; return how many.

        Args:
            older_than_s: how long ago they were last reserved, at least: longer than it
                takes to claim what was reserved.
            at_most: how many of them at once.
        """
        now_ms = self._now_ms()
        until_ms = now_ms - int(older_than_s * 1000)
        async with writing(self._engine) as connection:
            found = await quota.lock_abandoned(connection, until_ms, now_ms, at_most)
            for record in found:
                await quota.delete_memory(connection, record)
        return len(found)

    async def delete(self, connection: AsyncConnection, record: MemoryRecord) -> None:
        """Forget a memory; its owner may have another one at once.

        What others keep of it goes first, in the same transaction.
        """
        await quota.delete_memory(connection, record)

    @asynccontextmanager
    async def committing(
        self, lock: WriteLock
    ) -> AsyncIterator[tuple[AsyncConnection, MemoryRecord]]:
        """Yield a transaction in which nobody else changes a memory, and the memory as it is.

        Raises:
            GatewayError: conflict, when others have taken the memory over or deleted it.
        """
        async with writing(self._engine) as connection:
            query = select_owned(lock.entity_id, lock.owner_id).with_for_update(key_share=True)
            row = (await connection.execute(query)).one_or_none()
            if row is None:
                raise taken_over()
            await lock_queue.assert_claimed(connection, lock.entity_id, lock.holder, lock.fence)
            yield connection, to_record(row)

    async def rewind(
        self, connection: AsyncConnection, record: MemoryRecord, keep_messages: int
    ) -> int:
        """Take all but the first messages out of the transcript; bring `record` up to date.

        Nothing is erased. Where the cut goes through a turn, what is left of it has its
        number.

        Returns:
            Number of the first turn that is gone or has changed.

        Raises:
            ValueError: there are not that many messages.
        """
        if not 0 <= keep_messages <= record.messages:
            raise ValueError(f"cannot keep {keep_messages} of {record.messages} messages")
        if keep_messages == record.messages:
            return record.turns + 1
        record.epoch += 1
        changed, record.turns, size = await transcript_rows.truncate(
            connection, record.id, record.epoch, keep_messages, self._now_ms()
        )
        record.messages = keep_messages
        record.summarised = min(record.summarised, changed - 1)
        await self.set_summarised(connection, record.id, record.summarised)
        await self._save(connection, record, size)
        if size:
            await quota.charge(connection, record.owner_id, size)
        return changed

    async def append(
        self, connection: AsyncConnection, record: MemoryRecord, turns: Sequence[StoredTurn]
    ) -> int:
        """Add turns to the transcript; bring `record` up to date.

        Messages that are there already are not written again.

        Args:
            connection: that of `committing`.
            record: that of `committing`.
            turns: in order, with all their messages. The first is the next turn; or it is
                the last one there is, which then goes on, is closed, or ends in a message
                that goes on and so takes the place of what it was.

        Returns:
            How many bytes the owner's memories have then.

        Raises:
            ValueError: the turns do not follow on those there are.
        """
        _must_follow(record, turns)
        known = turns[0].messages[: record.messages - turns[0].first_message]
        if known:
            last = await transcript_rows.read_last_key(connection, record.id, record.messages)
            if message_key(known[-1]) != last:
                await self.rewind(connection, record, record.messages - 1)
        record.messages, size = await transcript_rows.append(
            connection, record.id, record.epoch, record.messages, turns
        )
        record.turns = turns[-1].number
        await self._save(connection, record, size)
        return await quota.charge(connection, record.owner_id, size)

    async def charge(
        self, connection: AsyncConnection, entity_id: str, owner_id: str, size: int
    ) -> None:
        """Charge the owner of a memory for what was added to its index.

        The memory's row is locked in the transaction.
        """
        await connection.execute(
            update(memories)
            .where(memories.c.id == entity_id, memories.c.owner_id == owner_id)
            .values(size_bytes=memories.c.size_bytes + size)
        )
        await quota.charge(connection, owner_id, size)

    async def stored_bytes(self, owner_id: str) -> int:
        """Return how many bytes an owner's memories have."""
        query = select(owners.c.size_bytes).where(owners.c.owner_id == owner_id)
        async with reading_once(self._engine) as connection:
            return await connection.scalar(query) or 0

    async def mark_summarised(
        self, connection: AsyncConnection, entity_id: str, epoch: int, last_turn: int
    ) -> bool:
        """Say that the summary covers all turns up to one; False when the epoch is another.

        It locks the memory's row, so it comes first in a transaction.
        """
        marked = await connection.execute(
            update(memories)
            .where(memories.c.id == entity_id, memories.c.epoch == epoch)
            .values(summarised=last_turn)
        )
        return marked.rowcount == 1

    async def set_summarised(
        self, connection: AsyncConnection, entity_id: str, last_turn: int
    ) -> None:
        """Say up to which turn the summary reaches that is left after a rewind; 0: there is none.

        A rewind itself only takes back what it cut.
        """
        await connection.execute(
            update(memories).where(memories.c.id == entity_id).values(summarised=last_turn)
        )

    async def keys(self, entity_id: str) -> bytes:
        """Return the keys of all messages of the transcript, `KEY_SIZE` bytes each."""
        async with reading(self._engine) as connection:
            return await transcript_rows.read_keys(connection, entity_id)

    async def turns(self, entity_id: str, first: int, last: int) -> list[StoredTurn]:
        """Return the turns of these numbers, both included, as far as there are any."""
        async with reading(self._engine) as connection:
            return await transcript_rows.read_turns(connection, entity_id, first, last)

    async def turn_of_message(self, entity_id: str, index: int) -> StoredTurn | None:
        """Return the turn that has a message of the transcript; None behind its end."""
        async with reading(self._engine) as connection:
            return await transcript_rows.read_turn_of(connection, entity_id, index)

    async def turn_page(
        self, record: MemoryRecord, limit: int, page_token: str = ""
    ) -> tuple[list[StoredTurn], str]:
        """Return turns, the newest first, and the token of the next page.

        Raises:
            GatewayError: invalid_request, when the token is none.
        """
        behind = read_number(page_token) if page_token else record.turns + 1
        first = max(behind - limit, 1)
        found = await self.turns(record.id, first, behind - 1)
        found.reverse()
        return found, write_token(first) if first > 1 else ""

    async def _save(self, connection: AsyncConnection, record: MemoryRecord, size: int) -> None:
        record.updated_at_ms = max(record.updated_at_ms, self._now_ms())
        await connection.execute(
            update(memories)
            .where(memories.c.id == record.id, memories.c.owner_id == record.owner_id)
            .values(
                updated_at_ms=record.updated_at_ms,
                epoch=record.epoch,
                turns=record.turns,
                messages=record.messages,
                size_bytes=memories.c.size_bytes + size,
            )
        )

    def _now_ms(self) -> int:
        return int(self._source.now() * 1000)


def _must_follow(record: MemoryRecord, turns: Sequence[StoredTurn]) -> None:
    first = turns[0]
    known = record.messages - first.first_message
    goes_on = 0 < known <= len(first.messages) and first.number == record.turns
    is_next = known == 0 and first.number == record.turns + 1
    numbers = [turn.number for turn in turns]
    if not (goes_on or is_next) or numbers != list(range(first.number, first.number + len(turns))):
        raise ValueError(f"turns {numbers} do not follow on {record.turns} of {record.messages}")

"""The memories of all users in the database, with their transcripts.

::

    record = await repository.find(user_id, "diary")
    async with locks.write_lock(record) as lock:
        ...
        async with locks.committing(lock) as (connection, record):
            await repository.rewind(connection, record, 4)
            await repository.append(connection, record, turns)

A memory without a turn counts as absent: only the calls that reserved it see it. Parts of the
transcript that a rewind removes stay in the tables, superseded. In a transaction a memory's row
is locked before its other rows, and its owner's row after it.
"""

from collections.abc import Collection, Sequence
from functools import partial

from sqlalchemy import bindparam, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import ids
from services.common.clock import Clock, ExpiryClock
from services.common.process.byte_budget import Admit
from services.common.storage.database import read, reading_once, write
from services.common.storage.owners import charge, stored_bytes
from services.common.storage.page_tokens import read_number, read_time_and_id, write_token
from services.memory.storage import quota, transcript_rows
from services.memory.storage.memory_records import (
    COLUMNS,
    OWNED,
    WAS_USED,
    MemoryRecord,
    lock_lost_error,
    owned,
    to_record,
)
from services.memory.storage.messages import message_key
from services.memory.storage.stored_turns import StoredTurn
from services.memory.storage.tables import memories

PREFIX = "memory_"

# Built once: that takes longer than to execute it.
_SAVE = (
    update(memories)
    .where(memories.c.id == bindparam("saved_id"), memories.c.owner_id == bindparam("its_owner_id"))
    .values(
        **{name: bindparam(name) for name in ("updated_at_ms", "epoch", "turns", "messages")},
        size_bytes=memories.c.size_bytes + bindparam("added_bytes"),
    )
)

# When several calls insert one memory at once, one succeeds and the others retry and find it.
_ATTEMPTS = 3
# After a clock was set, seconds in which no memory is deleted for having been reserved long ago.
_SETTLE_S = 3_600.0


class MemoryRepository:
    """Memories and their transcripts.

    Methods that take a connection work in the caller's transaction; every other raises
    `unavailable` when the database does not answer.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock | None = None,
        *,
        new_id: ids.IdGenerator = ids.new_id,
    ) -> None:
        self._engine = engine
        self._clock = clock or Clock()
        self._expiry = ExpiryClock(self._clock, _SETTLE_S)
        self._new_id = new_id

    async def find(self, owner_id: str, memory_id: str) -> MemoryRecord | None:
        """Return a memory by its name; None when it does not exist or never had a turn."""
        query = select(*COLUMNS).where(
            memories.c.owner_id == owner_id, memories.c.memory_id == memory_id, WAS_USED
        )
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        return to_record(row) if row else None

    async def current(self, record: MemoryRecord) -> MemoryRecord | None:
        """Return a memory's current record; None when it is deleted, even if its name is reused."""
        async with reading_once(self._engine) as connection:
            row = (await connection.execute(OWNED, owned(record.id, record.owner_id))).one_or_none()
        return to_record(row) if row else None

    async def names(self, owner_id: str, entity_ids: Collection[str]) -> dict[str, str]:
        """Return the names of an owner's memories by their ids; other owners' are left out."""
        query = select(memories.c.id, memories.c.memory_id).where(
            memories.c.owner_id == owner_id, memories.c.id.in_(entity_ids)
        )
        async with reading_once(self._engine) as connection:
            return {row.id: row.memory_id for row in await connection.execute(query)}

    async def page(
        self, owner_id: str, page_size: int, page_token: str = ""
    ) -> tuple[list[MemoryRecord], str]:
        """Return an owner's memories, the most recently used first, and the next page's token.

        Raises:
            GatewayError: invalid_request, when the token is invalid.
        """
        query = select(*COLUMNS).where(memories.c.owner_id == owner_id, WAS_USED)
        position = tuple_(memories.c.updated_at_ms, memories.c.id)
        if page_token:
            query = query.where(position < read_time_and_id(page_token))
        query = query.order_by(memories.c.updated_at_ms.desc(), memories.c.id.desc())
        async with reading_once(self._engine) as connection:
            rows = (await connection.execute(query.limit(page_size + 1))).all()
        page = [to_record(row) for row in rows[:page_size]]
        last = page[-1] if len(rows) > page_size else None
        return page, write_token(last.updated_at_ms, last.id) if last else ""

    async def reserve(
        self, connection: AsyncConnection, owner_id: str, memory_id: str, max_memories: int
    ) -> MemoryRecord:
        """Return a memory, and create it if there is none; the caller has to `release` it.

        Raises:
            GatewayError: memory_quota_exceeded, when the user would have more than `max_memories`.
        """
        named = select(*COLUMNS).where(
            memories.c.owner_id == owner_id, memories.c.memory_id == memory_id
        )
        for _ in range(_ATTEMPTS):
            now_ms = self._clock.now_ms()
            row = (await connection.execute(named)).one_or_none()
            if row is None:
                new_id = self._new_id(PREFIX)
                new = MemoryRecord(new_id, owner_id, memory_id, now_ms, now_ms)
                record = await quota.create(connection, new, max_memories)
            else:
                record = to_record(row)
                if not record.was_used:
                    record = await quota.reserve_existing(connection, owner_id, memory_id, now_ms)
            if record is not None:
                return record
        raise lock_lost_error()

    async def release(self, connection: AsyncConnection, record: MemoryRecord) -> None:
        """Release a reservation; the release of the last one deletes a memory without a turn."""
        if not record.was_used and await quota.release_reservation(connection, record):
            await quota.delete_memory(connection, record)

    async def delete_unused(self, older_than_s: float, limit: int) -> int:
        """Delete memories without a turn whose calls have died; return their number.

        Args:
            older_than_s: minimum seconds since the last reservation: longer than any call takes
                from reserving a memory to claiming its lock.
            limit: maximum number of deletions.
        """
        now_ms, _ = self._expiry.bounds_ms()
        until_ms = now_ms - int(older_than_s * 1000)

        async def transact(connection: AsyncConnection) -> list[MemoryRecord]:
            abandoned = await quota.lock_abandoned(connection, until_ms, now_ms, limit)
            for record in abandoned:
                await quota.delete_memory(connection, record)
            return abandoned

        abandoned = await write(self._engine, transact)
        return len(abandoned)

    async def rewind(
        self, connection: AsyncConnection, record: MemoryRecord, keep_messages: int
    ) -> int:
        """Remove all but the first messages from the transcript, and update `record`.

        Nothing is erased. If the cut divides a turn, the rest of the turn keeps its number.

        Returns:
            Number of the first turn that was removed or cut.

        Raises:
            ValueError: there are not that many messages.
        """
        if not 0 <= keep_messages <= record.messages:
            raise ValueError(f"cannot keep {keep_messages} of {record.messages} messages")
        if keep_messages == record.messages:
            return record.turns + 1
        record.epoch += 1
        changed, record.turns, size = await transcript_rows.truncate(
            connection, record.id, record.epoch, keep_messages, self._clock.now_ms()
        )
        record.messages = keep_messages
        record.summarised = min(record.summarised, changed - 1)
        await self.set_summarised(connection, record.id, record.summarised)
        await self._save(connection, record, size)
        if size:
            await charge(connection, record.owner_id, size)
        return changed

    async def append(
        self, connection: AsyncConnection, record: MemoryRecord, turns: Sequence[StoredTurn]
    ) -> int:
        """Append turns to the transcript, and update `record`.

        Messages that are stored already are not written again.

        Args:
            connection: the connection of `MemoryLocks.committing`.
            record: the record of `MemoryLocks.committing`.
            turns: in order, with all their messages. The first is either the next turn, or the
                last stored turn, which is continued or closed, or whose last message is
                continued and so replaced.

        Returns:
            The new size of the owner's memories and responses, in bytes.

        Raises:
            ValueError: the turns do not follow on the stored ones.
        """
        _check_order(record, turns)
        stored = turns[0].messages[: record.messages - turns[0].first_message]
        if stored:
            last = await transcript_rows.read_last_key(connection, record.id, record.messages)
            if message_key(stored[-1]) != last:
                await self.rewind(connection, record, record.messages - 1)
        record.messages, size = await transcript_rows.append(
            connection, record.id, record.epoch, record.messages, turns
        )
        record.turns = turns[-1].number
        await self._save(connection, record, size)
        return await charge(connection, record.owner_id, size)

    async def charge(
        self, connection: AsyncConnection, entity_id: str, owner_id: str, size: int
    ) -> None:
        """Charge a memory and its owner for bytes added to the memory's index.

        The memory's row is locked in the transaction.
        """
        await connection.execute(
            update(memories)
            .where(memories.c.id == entity_id, memories.c.owner_id == owner_id)
            .values(size_bytes=memories.c.size_bytes + size)
        )
        await charge(connection, owner_id, size)

    async def stored_bytes(self, owner_id: str) -> int:
        """Return the size of an owner's memories and responses."""
        return await stored_bytes(self._engine, owner_id)

    async def mark_summarised(
        self, connection: AsyncConnection, entity_id: str, epoch: int, last_turn: int
    ) -> bool:
        """Record that the summary covers all turns up to `last_turn`; False in another epoch.

        This locks the memory's row, so it has to come first in a transaction.
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
        """Record the last turn of the summary that is left after a rewind; 0 without one."""
        await connection.execute(
            update(memories).where(memories.c.id == entity_id).values(summarised=last_turn)
        )

    async def keys(self, entity_id: str) -> bytes:
        """Return the keys of all messages of the transcript, `KEY_SIZE` bytes each."""
        return await read(
            self._engine, lambda connection: transcript_rows.read_keys(connection, entity_id)
        )

    async def turns(
        self, entity_id: str, first: int, last: int, admit: Admit | None = None
    ) -> list[StoredTurn]:
        """Return the turns from `first` to `last`, both included, that exist.

        `admit` is called with their bytes before they are read.
        """
        if admit is not None:
            await admit(
                await read(
                    self._engine,
                    partial(
                        transcript_rows.measure_turns, entity_id=entity_id, first=first, last=last
                    ),
                )
            )
        return await read(
            self._engine,
            partial(transcript_rows.read_turns, entity_id=entity_id, first=first, last=last),
        )

    async def turn_of_message(
        self, entity_id: str, index: int, admit: Admit | None = None
    ) -> StoredTurn | None:
        """Return the turn that contains a message of the transcript; None past its end.

        `admit` is called with its bytes before they are read.
        """
        if admit is not None:
            await admit(
                await read(
                    self._engine,
                    partial(transcript_rows.measure_turn_of, entity_id=entity_id, message=index),
                )
            )
        return await read(
            self._engine,
            partial(transcript_rows.read_turn_of, entity_id=entity_id, message=index),
        )

    async def turn_page(
        self,
        record: MemoryRecord,
        page_size: int,
        page_token: str = "",
        admit: Admit | None = None,
    ) -> tuple[list[StoredTurn], str]:
        """Return turns, the newest first, and the next page's token.

        `admit` is called with their bytes before they are read.

        Raises:
            GatewayError: invalid_request, when the token is invalid.
        """
        end = read_number(page_token) if page_token else record.turns + 1
        first = max(end - page_size, 1)
        turns = await self.turns(record.id, first, end - 1, admit)
        turns.reverse()
        return turns, write_token(first) if first > 1 else ""

    async def _save(self, connection: AsyncConnection, record: MemoryRecord, size: int) -> None:
        record.updated_at_ms = max(record.updated_at_ms, self._clock.now_ms())
        await connection.execute(
            _SAVE,
            {
                "saved_id": record.id,
                "its_owner_id": record.owner_id,
                "added_bytes": size,
                "updated_at_ms": record.updated_at_ms,
                "epoch": record.epoch,
                "turns": record.turns,
                "messages": record.messages,
            },
        )


def _check_order(record: MemoryRecord, turns: Sequence[StoredTurn]) -> None:
    first = turns[0]
    stored = record.messages - first.first_message
    continues = 0 < stored <= len(first.messages) and first.number == record.turns
    is_next = stored == 0 and first.number == record.turns + 1
    numbers = [turn.number for turn in turns]
    if not (continues or is_next) or numbers != list(
        range(first.number, first.number + len(turns))
    ):
        raise ValueError(f"turns {numbers} do not follow on {record.turns} of {record.messages}")

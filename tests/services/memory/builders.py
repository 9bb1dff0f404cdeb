"""Memories that tests fill: short turns, a clock that stands, and what the tables hold."""

from collections.abc import Sequence

from sqlalchemy import Select, Table, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.conversation.v1.conversation_pb2 import (
    ROLE_ASSISTANT,
    ROLE_USER,
    Block,
    Message,
    ToolResult,
    ToolUse,
)
from gateway.memory.v1.memory_pb2 import Turn
from services.common.storage.database import reading, write
from services.memory.locks.locks import LockLimits, MemoryLocks
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.quota import delete_memory
from services.memory.storage.repository import MemoryRepository
from services.memory.storage.stored_turns import StoredTurn, pending_call_ids
from services.memory.storage.tables import claims, keys, memories, parts, queues
from tests.manual_clock import ManualClock

QUOTA = 10
OF_ENTITY = (claims, queues, keys, parts)


class MemoryProcess:
    """One process's objects for the memories in a database."""

    def __init__(
        self, engine: AsyncEngine, clock: ManualClock, limits: LockLimits | None = None
    ) -> None:
        self.engine = engine
        self.repository = MemoryRepository(engine, clock)
        self.locks = MemoryLocks(engine, clock, limits)

    async def reserve(self, owner_id: str, memory_id: str, quota: int) -> MemoryRecord:
        """Reserve a memory, in a transaction of its own."""
        return await write(
            self.engine, lambda opened: self.repository.reserve(opened, owner_id, memory_id, quota)
        )

    async def release(self, record: MemoryRecord) -> None:
        """Release a memory that was reserved, in a transaction of its own."""
        await write(self.engine, lambda opened: self.repository.release(opened, record))

    async def make(self, memory_id: str = "diary", owner_id: str = "ada") -> MemoryRecord:
        """Make a memory with a first turn."""
        record = await self.reserve(owner_id, memory_id, QUOTA)
        return await self.add(record, turn(1, 0, "hello", "hi"))

    async def add(self, record: MemoryRecord, *turns: StoredTurn) -> MemoryRecord:
        """Add turns; return the memory as it is then."""
        async with (
            self.locks.write_lock(record) as lock,
            self.locks.committing(lock) as (connection, stored),
        ):
            await self.repository.append(connection, stored, turns)
        return stored

    async def rewind(self, record: MemoryRecord, keep: int) -> tuple[MemoryRecord, int]:
        """Rewind; return the memory as it is then, and the first turn that changed."""
        async with (
            self.locks.write_lock(record) as lock,
            self.locks.committing(lock) as (connection, stored),
        ):
            changed = await self.repository.rewind(connection, stored, keep)
        return stored, changed

    async def delete(self, record: MemoryRecord) -> None:
        async with (
            self.locks.write_lock(record) as lock,
            self.locks.committing(lock) as (connection, stored),
        ):
            await delete_memory(connection, stored)

    async def said(self, record: MemoryRecord) -> list[str]:
        """Return the texts of the live transcript."""
        turns = await self.repository.turns(record.id, 1, record.turns)
        return [text_of(message) for turn in turns for message in turn.messages]


def user(text: str) -> Message:
    return Message(role=ROLE_USER, blocks=[Block(text=text)])


def assistant(text: str) -> Message:
    return Message(role=ROLE_ASSISTANT, blocks=[Block(text=text)])


def call(call_id: str) -> Message:
    tool = ToolUse(id=call_id, name="look", input="{}")
    return Message(role=ROLE_ASSISTANT, blocks=[Block(tool_use=tool)])


def result(call_id: str) -> Message:
    answer = ToolResult(tool_use_id=call_id, blocks=[Block(text=f"seen {call_id}")])
    return Message(role=ROLE_USER, blocks=[Block(tool_result=answer)])


def text_of(message: Message) -> str:
    block = message.blocks[0]
    return block.text or f"{block.WhichOneof('kind')} of {role_of(message)}"


def role_of(message: Message) -> str:
    return "user" if message.role == ROLE_USER else "assistant"


def turn(number: int, first: int, *messages: str | Message, at_ms: int = 1) -> StoredTurn:
    """Return a turn; of plain texts the user says the first, the assistant the others."""
    as_messages = [
        message
        if isinstance(message, Message)
        else (user(message) if place == 0 else assistant(message))
        for place, message in enumerate(messages)
    ]
    return StoredTurn(
        number=number,
        messages=tuple(as_messages),
        created_at_ms=at_ms,
        open=bool(pending_call_ids(as_messages)),
        first_message=first,
    )


def turns(count: int, first_number: int = 1, first_message: int = 0) -> list[StoredTurn]:
    """Return turns of two messages each, `q1 a1`, `q2 a2` and so on."""
    return [
        turn(first_number + place, first_message + 2 * place, f"q{place}", f"a{place}")
        for place in range(count)
    ]


async def rows_of(engine: AsyncEngine, entity_id: str) -> dict[str, int]:
    """Count what each table has of a memory."""
    counts = {
        table.name: await count_rows(
            engine, select(func.count()).select_from(table).where(table.c.entity_id == entity_id)
        )
        for table in OF_ENTITY
    }
    query = select(func.count()).select_from(memories).where(memories.c.id == entity_id)
    return {**counts, memories.name: await count_rows(engine, query)}


async def count_all(engine: AsyncEngine, table: Table) -> int:
    return await count_rows(engine, select(func.count()).select_from(table))


async def count_rows(engine: AsyncEngine, query: Select[tuple[int]]) -> int:
    async with reading(engine) as connection:
        counted: int = (await connection.execute(query)).scalar_one()
    return counted


async def until_waiting(engine: AsyncEngine, claims_there: int) -> None:
    """Wait until so many claims have been made."""
    while await count_all(engine, claims) < claims_there:
        pass


def numbers(turns: Sequence[StoredTurn]) -> list[int]:
    return [turn.number for turn in turns]


async def superseded(engine: AsyncEngine, record: MemoryRecord) -> list[list[str]]:
    """Return the texts of superseded parts, the first of the transcript first."""
    query = (
        select(parts.c.content)
        .where(parts.c.entity_id == record.id, parts.c.superseded_at_ms.is_not(None))
        .order_by(parts.c.first_message, parts.c.epoch)
    )
    async with reading(engine) as connection:
        contents = (await connection.scalars(query)).all()
    return [[text_of(message) for message in Turn.FromString(one).messages] for one in contents]

"""Limits, visitors and recorders for tests of locks."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.errors import GatewayError
from services.common.storage.database import reading, write
from services.memory.locks.claim_rows import WRITE, LockMode, add_claim
from services.memory.locks.locks import LockLimits
from services.memory.locks.opening import KnownMemory
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.tables import claims
from tests.engine_events import listening
from tests.services.memory.builders import MemoryProcess

# Leases go by the tests' clock, waiting and renewing by the real one.
LEASE_S = 20.0


PATIENT = LockLimits(wait_s=60, lease_s=LEASE_S)


HASTY = LockLimits(wait_s=0.05, lease_s=LEASE_S)


RENEWING = LockLimits(wait_s=60, lease_s=0.05)


Start = Callable[[LockLimits], MemoryProcess]


@dataclass
class Room:
    """Notes who comes in; readers stay until they are told to leave."""

    record: MemoryRecord
    entered: list[str] = field(default_factory=list)
    leave: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, process: MemoryProcess, name: str) -> None:
        async with process.locks.write_lock(self.record):
            self.entered.append(name)

    async def read(self, process: MemoryProcess, name: str) -> None:
        async with process.locks.read_lock(self.record):
            self.entered.append(name)
            await self.leave.wait()


async def add_dead_claim(process: MemoryProcess, record: MemoryRecord) -> None:
    """Add a claim of a writer that has died: nobody renews it."""
    add = partial(
        add_claim,
        claim_id="claim_dead",
        mode=LockMode(WRITE, 1),
        opening=KnownMemory(record),
        ends_at_ms=process.locks.queue.ends_at_ms,
    )
    await write(process.engine, add)


async def refusal(taking: Any) -> GatewayError:
    """Return what a lock is refused with."""
    with pytest.raises(GatewayError) as raised:
        async with taking:
            raise AssertionError("the lock was given")
    return raised.value


@contextmanager
def noted(process: MemoryProcess, name: str = "before_cursor_execute") -> Iterator[list[Any]]:
    """Note what a process does in the database."""
    notes: list[Any] = []

    def note(*arguments: Any) -> None:
        notes.append(arguments)

    with listening(process.engine, name, note):
        yield notes


async def ends_of(engine: AsyncEngine) -> list[int]:
    async with reading(engine) as connection:
        return list(await connection.scalars(select(claims.c.ends_at_ms)))

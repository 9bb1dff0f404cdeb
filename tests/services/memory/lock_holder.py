"""A process that holds a lock on a memory or writes turns to it, for other tests to kill."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from services.common.clock import Clock
from services.common.process.registry import ProcessRegistry
from services.common.settings import Storage
from services.common.storage.database import is_sqlite, open_engine
from services.memory.locks.locks import LockLimits, MemoryLocks
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.repository import MemoryRepository
from tests.forked import AsyncForkedProcess, fork
from tests.services.memory.builders import turn

OWNER = "ada"
NAME = "diary"
# Short enough to wait until a killed process has lost what it held, long enough for a
# process that has to wait for the machine.
SHORT_LEASE_S = 3.0
LONG_LEASE_S = 60.0


@asynccontextmanager
async def lock_holder_process(
    storage: Storage, name: str, lease_s: float, *todo: object
) -> AsyncIterator[AsyncForkedProcess]:
    """Start such a process; it is killed at the end, if it is still there."""
    process = await fork(
        *(sys.executable, "-m", "tests.services.memory.lock_holder"),
        *(str(storage.data_dir), storage.database_url, name, *map(str, (lease_s, *todo))),
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


class LockHolder:
    """A process that takes locks, and prints a line for each step."""

    def __init__(self, storage: Storage, name: str, lease_s: float) -> None:
        engine = open_engine(storage)
        self._repository = MemoryRepository(engine)
        clock = Clock()
        processes = ProcessRegistry.register(storage.data_dir) if is_sqlite(storage) else None
        limits = LockLimits(wait_s=60, lease_s=lease_s)
        self._locks = MemoryLocks(engine, clock, limits, processes)
        self._name = name

    async def hold(self) -> None:
        """Take the lock, and keep it until somebody kills the process."""
        async with self._locks.write_lock(await self._entity()):
            print("held", flush=True)
            await asyncio.Event().wait()

    async def write(self, calls: int) -> None:
        """Let so many calls write one turn each, all at once."""
        record = await self._entity()
        await asyncio.gather(*(self._add(record, f"{number}") for number in range(calls)))

    async def write_on(self) -> None:
        """Write turn after turn, and tell of each that is durable."""
        record = await self._entity()
        for number in count():
            await self._add(record, f"{number}")
            print(f"{self._name}/{number}", flush=True)

    async def _add(self, record: MemoryRecord, number: str) -> None:
        async with self._locks.write_lock(record) as lock:
            before = await self._repository.current(record)
            assert before is not None
            async with self._locks.committing(lock) as (connection, stored):
                assert stored == before, "two wrote at once"
                written = turn(
                    before.turns + 1, before.messages, f"{self._name}/{number}", f"{lock.ticket}"
                )
                await self._repository.append(connection, stored, [written])

    async def _entity(self) -> MemoryRecord:
        record = await self._repository.find(OWNER, NAME)
        assert record is not None
        return record


async def _main(
    data_dir: str, database_url: str, name: str, lease_s: str, todo: str, calls: str = "0"
) -> None:
    storage = Storage(data_dir=Path(data_dir), database_url=database_url)
    one = LockHolder(storage, name, float(lease_s))
    match todo:
        case "hold":
            await one.hold()
        case "write":
            await one.write(int(calls))
        case _:
            await one.write_on()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))

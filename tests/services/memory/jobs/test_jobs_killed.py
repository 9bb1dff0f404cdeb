"""`kill -9` while work is done: what was left is done by another process, once."""

import asyncio
import random
import signal
import sys
from pathlib import Path

from services.common.settings import Storage
from services.common.storage.database import open_engine
from services.common.storage.migrations.runner import migrate
from services.memory.jobs.windows import Windows
from tests.forked import AsyncForkedProcess, fork
from tests.manual_clock import ManualClock
from tests.services.memory.job_worker import (
    LEASE_S,
    MemoryWorker,
    archived_turns,
    fake_inference,
    jobs_left,
    summary_rows,
)

# Works on what is in the database, with a model that never answers or without one.
_WORK = """
import asyncio, sys
from pathlib import Path
from services.common.storage.database import open_engine
from services.common.settings import Storage
from tests.manual_clock import ManualClock
from tests.services.memory.job_worker import MemoryWorker

class HangingTasks:
    can_embed = False
    can_summarise = sys.argv[2] == "hang"
    async def summarise(self, user_id, prompt):
        print("asked", flush=True)
        await asyncio.get_running_loop().create_future()

async def main():
    clock = ManualClock()
    clock.now_s += float(sys.argv[3])
    engine = open_engine(Storage(data_dir=Path(sys.argv[1])))
    worker = MemoryWorker(engine, clock, HangingTasks(), at_once=1)
    async with worker.running_jobs():
        print("working", flush=True)
        await asyncio.get_running_loop().create_future()

asyncio.run(main())
"""


async def work(folder: Path, how: str, later_s: float) -> AsyncForkedProcess:
    process = await fork(sys.executable, "-c", _WORK, str(folder), how, str(later_s))
    assert await process.stdout.readline() == b"working\n"
    return process


async def kill(process: AsyncForkedProcess) -> None:
    process.send_signal(signal.SIGKILL)
    await process.communicate()


async def test_a_job_whose_process_was_killed_is_done_by_another(tmp_path: Path) -> None:
    engine = open_engine(Storage(data_dir=tmp_path))
    await migrate(engine)
    async with fake_inference(summarise="m") as (_, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(10)
        await worker.put(record)
        process = await work(tmp_path, "hang", 0)
        assert await process.stdout.readline() == b"asked\n"
        await kill(process)
        assert await jobs_left(engine) == [("summary", 1, 5)]
        worker.clock.now_s += LEASE_S
        await worker.jobs.run_due(record.id, 20)
    assert await summary_rows(engine) == [(1, 5, False, False)]
    await engine.dispose()


async def test_kills_leave_each_turn_summarised_and_archived_once(tmp_path: Path) -> None:
    chance = random.Random(5)
    batches = 40
    engine = open_engine(Storage(data_dir=tmp_path))
    await migrate(engine)
    async with fake_inference() as (_, tasks):
        worker = MemoryWorker(engine, ManualClock(), tasks)
        record = await worker.fill(5 * batches + 5)
        await worker.put(record)
        for life in range(4):
            process = await work(tmp_path, "extract", (life + 1) * LEASE_S)
            # Any moment is a moment to die: this is the one wait that is for nothing.
            await asyncio.sleep(chance.uniform(0, 0.15))
            await kill(process)
            done = [last for _, last, _, _ in await summary_rows(engine)]
            assert done == [5 * number for number in range(1, len(done) + 1)]
            assert await archived_turns(engine, record) == list(range(1, 5 * len(done) + 1))
            assert (await worker.now(record)).summarised == 5 * len(done)
        worker.clock.now_s += 6 * LEASE_S
        await worker.jobs.summarise_now(record, Windows(5, 5), 30)
    assert len(await summary_rows(engine)) == batches
    assert await archived_turns(engine, record) == list(range(1, 5 * batches + 1))
    assert await jobs_left(engine) == []
    await engine.dispose()

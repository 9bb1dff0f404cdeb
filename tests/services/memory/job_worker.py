"""Background work on memories that tests fill, with an inference that does what they say."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.errors.v1 import errors_pb2
from gateway.inference.v1 import inference_pb2 as pb
from gateway.inference.v1 import inference_pb2_grpc
from services.common.errors import GatewayError, invalid_api_key
from services.common.grpc.authentication import Caller, caller
from services.common.grpc.channels import open_channel
from services.common.grpc.server import Server
from services.common.settings import Roles
from services.common.storage.database import reading, writing
from services.memory.archive.archive import Archive
from services.memory.jobs.job_handlers import JobHandlers
from services.memory.jobs.job_queue import Backlog, JobKind, JobQueue
from services.memory.jobs.job_runner import JobRunner
from services.memory.jobs.stores import Stores
from services.memory.jobs.summaries import SummaryStore
from services.memory.jobs.task_client import TaskClient
from services.memory.jobs.windows import Windows
from services.memory.profile.fact_store import FactStore
from services.memory.storage.memory_records import MemoryRecord
from services.memory.storage.stored_turns import StoredTurn
from services.memory.storage.tables import archived_turns as archived
from services.memory.storage.tables import jobs as jobs_table
from services.memory.storage.tables import summaries as summaries_table
from services.sandbox.model.models import MODELS
from services.sandbox.model.vectors import embed
from tests.manual_clock import ManualClock
from tests.services.memory.builders import MemoryProcess, turn

CREDENTIAL = b"c" * 32
LEASE_S = 30.0
# What never comes fails a test after this long, rather than keep it for ever.
PATIENCE_S = 30

Act = Callable[[pb.RunTaskRequest], Awaitable[pb.RunTaskResponse]]


async def short(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
    """Answer any side job at once."""
    if request.task == pb.TASK_EMBED:
        vectors = embed(request.texts, MODELS["embed"])
        return pb.RunTaskResponse(
            model="sandbox/embed", vectors=[pb.Vector(values=vector) for vector in vectors]
        )
    return pb.RunTaskResponse(model="fake/model", text="A summary.")


async def fails(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
    raise RuntimeError("a model that fails")


async def times_out(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
    """Fail as a model does that says nothing, at a time that does not depend on the machine."""
    raise GatewayError(errors_pb2.REASON_TIMEOUT, "a model that says nothing")


async def hangs(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


def says(text: str) -> Act:
    async def act(request: pb.RunTaskRequest) -> pb.RunTaskResponse:
        return pb.RunTaskResponse(model="fake/model", text=text)

    return act


class FakeInference(inference_pb2_grpc.InferenceServiceServicer):
    """Does side jobs as a test says; notes each with the user it is for."""

    def __init__(self) -> None:
        self.act: Act = short
        self.asked: list[tuple[str, pb.RunTaskRequest]] = []
        self.called = asyncio.Event()

    async def RunTask(self, request: pb.RunTaskRequest, context: Any) -> pb.RunTaskResponse:
        self.asked.append((caller.get().user_id, request))
        self.called.set()
        return await self.act(request)


@dataclass
class RecordingJobObserver:
    """A recorder of a process's jobs."""

    backlogs: list[Backlog] = field(default_factory=list)
    outcomes: asyncio.Queue[tuple[JobKind, str]] = field(default_factory=asyncio.Queue)
    looked: asyncio.Event = field(default_factory=asyncio.Event)

    def backlog(self, backlog: Backlog) -> None:
        self.backlogs.append(backlog)
        self.looked.set()

    def ended(self, kind: JobKind, outcome: str) -> None:
        self.outcomes.put_nowait((kind, outcome))

    async def looks(self, count: int) -> None:
        """Wait until the worker has looked for jobs so often again."""
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(count):
                self.looked.clear()
                await self.looked.wait()

    async def next(self) -> tuple[str, str]:
        async with asyncio.timeout(PATIENCE_S):
            kind, outcome = await self.outcomes.get()
        return kind.value, outcome


class MemoryWorker(MemoryProcess):
    """One process's objects for memories and for the jobs on them."""

    def __init__(
        self,
        engine: AsyncEngine,
        clock: ManualClock,
        tasks: TaskClient,
        *,
        at_once: int = 4,
        lease_s: float = LEASE_S,
    ) -> None:
        super().__init__(engine, clock)
        self.clock = clock
        self.tasks = tasks
        self.observer = RecordingJobObserver()
        self.stores = Stores(
            self.repository,
            SummaryStore(engine, clock),
            Archive(engine, clock),
            FactStore(engine),
            JobQueue(engine, clock, lease_s),
        )
        self.jobs = JobRunner(
            engine,
            self.stores.queue,
            JobHandlers(engine, self.stores, tasks),
            self.observer,
            0.02,
            at_once=at_once,
            uniform=lambda low, high: high,
        )

    async def fill(
        self, count: int, memory_id: str = "diary", owner_id: str = "ada"
    ) -> MemoryRecord:
        """Make a memory with turns `fact 1`, `fact 2` and so on; nothing is put in the queue."""
        record = await self.reserve(owner_id, memory_id, 10)
        return await self.add(record, *facts_said(1, count))

    async def put(self, record: MemoryRecord, windows: Windows | None = None) -> None:
        """Put there what is due."""
        async with writing(self.engine) as connection:
            await self.jobs.put_summary(connection, record, windows or Windows(5, 5))

    async def put_facts(
        self, text: str, record: MemoryRecord | None = None, number: int = 0
    ) -> None:
        async with writing(self.engine) as connection:
            await self.jobs.put_facts(
                connection, "ada", text, record.id if record else None, number
            )

    async def rewind_to(self, record: MemoryRecord, keep_messages: int) -> MemoryRecord:
        async with (
            self.locks.write_lock(record) as lock,
            self.locks.committing(lock) as (connection, stored),
        ):
            await self.stores.rewind(connection, stored, keep_messages)
        return stored

    async def now(self, record: MemoryRecord) -> MemoryRecord:
        current = await self.repository.current(record)
        assert current is not None
        return current

    @asynccontextmanager
    async def running_jobs(self) -> AsyncIterator[None]:
        """Work in the background."""
        task = asyncio.create_task(self.jobs.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.jobs.stop()

    async def later(self, seconds: float) -> None:
        """Let the clock go on, and look for jobs."""
        self.clock.now_s += seconds
        self.jobs.wake()


def facts_said(first: int, last: int) -> list[StoredTurn]:
    return [
        turn(
            number,
            2 * (number - 1),
            f"My fact number {number} is that I own house {number}00.",
            f"Noted, house {number}00.",
        )
        for number in range(first, last + 1)
    ]


@asynccontextmanager
async def fake_inference(
    timeout_s: float = 20, **chosen: str
) -> AsyncIterator[tuple[FakeInference, TaskClient]]:
    """Serve a fake inference over gRPC; return it and a client of it."""
    fake = FakeInference()

    async def nobody(key: str) -> Caller:
        raise invalid_api_key()

    server = Server(nobody, max_message_bytes=4 << 20, service_credential=CREDENTIAL)
    server.add(
        inference_pb2_grpc.add_InferenceServiceServicer_to_server,
        fake,
        "gateway.inference.v1.InferenceService",
    )
    port = server.listen("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}", max_message_bytes=4 << 20) as channel:
        yield fake, TaskClient(channel, CREDENTIAL, Roles(**chosen), timeout_s)
    await server.stop(0)


async def rows(engine: AsyncEngine, table: Any) -> list[Any]:
    async with reading(engine) as connection:
        return list(await connection.execute(select(table)))


async def jobs_left(engine: AsyncEngine) -> list[tuple[str, int, int]]:
    """Return what is to be done, as kind, first and last turn."""
    return sorted(
        (row.kind, row.first_turn, row.last_turn) for row in await rows(engine, jobs_table)
    )


async def archived_turns(engine: AsyncEngine, record: MemoryRecord) -> list[int]:
    archived_rows = await rows(engine, archived)
    return sorted(row.turn for row in archived_rows if row.entity_id == record.id)


async def summary_rows(engine: AsyncEngine) -> list[tuple[int, int, bool, bool]]:
    """Return summaries as first and last turn, degraded, superseded."""
    return sorted(
        (row.first_turn, row.last_turn, row.degraded, row.superseded)
        for row in await rows(engine, summaries_table)
    )

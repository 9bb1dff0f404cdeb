"""Indexing the files of vector stores, over a real database of either kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import PURPOSE_ASSISTANTS, File
from gateway.memory.v1 import vector_stores_pb2 as pb
from services.common.clock import Clock
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller
from services.common.storage.database import reading
from services.files.erasure import FileErasure
from services.files.folder_blobs import FolderBlobs
from services.files.repository import FileRepository
from services.memory.archive.archive import Archive, QuestionVector
from services.memory.jobs.job_queue import MEMORY_JOBS, VECTOR_STORE_JOBS, Job, JobKind, JobQueue
from services.memory.jobs.retries import INDEX_ATTEMPTS
from services.memory.jobs.task_client import Embedding
from services.memory.storage import tables
from services.memory.vector_stores.erasure import VectorStoreErasure
from services.memory.vector_stores.file_repository import AddedFile, VectorStoreFileRepository
from services.memory.vector_stores.file_rows import FileLimits
from services.memory.vector_stores.index_repository import IndexRepository
from services.memory.vector_stores.indexing import IndexingJobs
from services.memory.vector_stores.removed_files import RemovedFiles
from services.memory.vector_stores.searching import VectorStoreSearch
from services.memory.vector_stores.store_repository import StoreRepository
from services.memory.vector_stores.tables import vector_store_files, vector_stores
from tests.manual_clock import ManualClock

LEASE_S = 30.0
ADA = Caller("usr_ada", "", PLAN_ENTERPRISE, key_id="key_ada")
# Some sixty chunks of the smallest size; the last one has a word of its own.
TEXT = " ".join(f"word{number} filler text of a sentence." for number in range(400)) + " needle"
CHUNKING = pb.ChunkingStrategy(max_chunk_tokens=100, overlap_tokens=0)
INDEX = (tables.archives, tables.archived_turns, tables.postings, tables.vectors, tables.signatures)


class KilledError(BaseException):
    """Ends a job as the death of its process does."""


class Tasks:
    """Embeds each text as two numbers.

    Attributes:
        left: number of calls until it is killed; None for never.
        failure: raised by each call, if set.
        embedded: number of texts.
    """

    can_embed = True

    def __init__(self) -> None:
        self.left: int | None = None
        self.failure: GatewayError | None = None
        self.embedded = 0

    async def embed(self, user_id: str, texts: Sequence[str], **_: Any) -> Embedding:
        if self.failure is not None:
            raise self.failure
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KilledError
        self.embedded += len(texts)
        return Embedding("m/e", [[1.0, float("needle" in text)] for text in texts])


class Process:
    """The objects of one process."""

    def __init__(
        self, engine: AsyncEngine, clock: ManualClock, texts: dict[str, str], **limits: int
    ) -> None:
        self.engine, self.tasks = engine, Tasks()
        self.queue = JobQueue(engine, clock, LEASE_S, kinds=VECTOR_STORE_JOBS)
        self.stores = StoreRepository(engine, clock, self.queue, 10)
        bounds = {"max_files": 100, "max_chunks": 1_000, "max_bytes": 10_000_000, **limits}
        limits = FileLimits(**bounds)
        self.files = VectorStoreFileRepository(engine, clock, self.queue, limits)
        self.search = VectorStoreSearch(
            self.stores, self.files, Archive(engine, clock), self._embed_question
        )

        async def read(file: Any) -> str:
            return texts[file.file_id]

        tasks: Any = self.tasks
        self.jobs = IndexingJobs(
            self.stores, IndexRepository(engine, self.queue, limits), read, tasks
        )

    async def add(self, store_id: str, *file_ids: str) -> None:
        added = [
            AddedFile(pb.NewVectorStoreFile(file_id=one, chunking=CHUNKING), f"{one}.txt")
            for one in file_ids
        ]
        await self.files.add(ADA, store_id, added, is_batch=False)

    async def claim(self) -> Job:
        [job] = await self.queue.claim(1)
        return job

    async def work(self) -> None:
        """Run jobs until none is due."""
        while jobs := await self.queue.claim(1):
            await self.jobs.run(jobs[0])

    async def found(self, store_id: str, query: str = "needle") -> list[str]:
        request = pb.SearchVectorStoresRequest(vector_store_ids=[store_id], queries=[query])
        return [chunk.text for chunk in await self.search.search(ADA.user_id, request)]

    async def state(self, store_id: str, file_id: str = "a") -> pb.VectorStoreFile:
        return await self.files.find(ADA.user_id, store_id, file_id)

    async def rows(self) -> dict[str, int]:
        """Return the numbers of rows of the index."""
        async with reading(self.engine) as connection:
            return {
                table.name: await connection.scalar(select(func.count()).select_from(table)) or 0
                for table in INDEX
            }

    async def _embed_question(self, user_id: str, question: str) -> QuestionVector:
        return QuestionVector("m/e", [0.0, 1.0])


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def create(process: Process, **fields: Any) -> str:
    return await process.stores.create(ADA.user_id, pb.CreateVectorStoreRequest(**fields))


async def test_a_killed_process_loses_and_repeats_nothing(
    engine: AsyncEngine, clock: ManualClock
) -> None:
    first, second = Process(engine, clock, {"a": TEXT}), Process(engine, clock, {"a": TEXT})
    store_id = await create(first)
    await first.add(store_id, "a")
    first.tasks.left = 2
    job = await first.claim()
    with pytest.raises(KilledError):
        await first.jobs.run(job)
    assert (await first.rows())["memory_archive_turns"] == 32
    # Nothing is found before the whole file is indexed.
    assert await second.found(store_id, "word1 needle") == []
    assert await second.queue.claim(1) == []
    clock.now_s += LEASE_S + 60
    await second.work()
    file = await second.state(store_id)
    assert file.state == pb.VECTOR_STORE_FILE_STATE_COMPLETED
    texts, has_more = await second.files.texts(ADA.user_id, store_id, "a", 0, 1_000)
    assert " ".join(texts) == TEXT and not has_more
    # The chunks that were stored are not embedded again, except for the first, for its size.
    assert second.tasks.embedded == len(texts) - 32 + 1
    assert await second.rows() == {
        "memory_archives": 1,
        "memory_archive_turns": len(texts),
        "memory_archive_postings": (await second.rows())["memory_archive_postings"],
        "memory_archive_vectors": len(texts),
        "memory_archive_signatures": 1,
    }
    assert (await second.found(store_id))[0] == texts[-1]


async def test_removed_text_is_gone_and_other_text_stays(
    engine: AsyncEngine, clock: ManualClock
) -> None:
    texts = {"a": TEXT, "b": "A needle of another file.", "c": "Something else."}
    process = Process(engine, clock, texts)
    store_id = await create(process)
    await process.add(store_id, "b")
    await process.work()
    before = await process.rows()
    await process.add(store_id, "a")
    await process.work()
    assert len(await process.found(store_id)) == 10
    await process.files.remove(ADA.user_id, store_id, "a")
    assert await process.found(store_id) == [texts["b"]]
    await process.work()
    assert await process.rows() == before
    # As many turns as before, so that only the number of removals says that they have changed.
    await process.add(store_id, "c")
    await process.work()
    assert await process.found(store_id, "something") == [texts["c"], texts["b"]]
    await process.stores.delete(ADA.user_id, store_id)
    await process.work()
    assert not any((await process.rows()).values())
    async with reading(engine) as connection:
        assert await connection.scalar(select(func.count()).select_from(vector_stores)) == 0


async def test_removal_while_a_file_is_indexed_ends_it(
    engine: AsyncEngine, clock: ManualClock
) -> None:
    process = Process(engine, clock, {"a": TEXT})
    store_id = await create(process)
    await process.add(store_id, "a")
    embed = process.tasks.embed

    async def embed_and_remove(user_id: str, texts: Sequence[str], **options: Any) -> Embedding:
        if process.tasks.embedded > 32:
            await process.files.remove(user_id, store_id, "a")
        return await embed(user_id, texts, **options)

    process.tasks.embed = embed_and_remove  # type: ignore[method-assign]  # of one object
    await process.work()
    rows = await process.rows()
    assert (rows.pop("memory_archives"), any(rows.values())) == (1, False)
    async with reading(engine) as connection:
        assert await connection.scalar(select(func.count()).select_from(vector_store_files)) == 0


async def test_failures_are_repeated_and_then_shown(
    engine: AsyncEngine, clock: ManualClock
) -> None:
    process = Process(engine, clock, {"a": TEXT, "b": TEXT}, max_chunks=100)
    store_id = await create(process)
    await process.add(store_id, "a")
    process.tasks.failure = GatewayError(errors_pb2.REASON_UNAVAILABLE, "the model is away")
    for failures in range(1, 4):
        job = await process.claim()
        with pytest.raises(GatewayError):
            await process.jobs.run(job)
        await process.queue.release(job, 0, failed=True)
        assert (await process.claim()).attempts == failures
        clock.now_s += LEASE_S + 60
    # Words have to do without the model.
    await process.work()
    assert (await process.state(store_id)).state == pb.VECTOR_STORE_FILE_STATE_COMPLETED
    assert (await process.rows())["memory_archive_vectors"] == 0
    process.tasks.failure = None
    await process.add(store_id, "b")
    await process.work()
    file = await process.state(store_id, "b")
    assert (file.error_code, "at most 100 chunks" in file.error_message) == ("invalid_file", True)
    assert file.usage_bytes == 0


async def test_the_last_attempt_marks_a_file_as_failed(
    engine: AsyncEngine, clock: ManualClock
) -> None:
    process = Process(engine, clock, {})
    store_id = await create(process)
    await process.add(store_id, "a")

    async def read(file: Any) -> str:
        raise GatewayError(errors_pb2.REASON_STORAGE_UNAVAILABLE, "the disk is away")

    process.jobs._read = read
    for _ in range(INDEX_ATTEMPTS - 1):
        job = await process.claim()
        with pytest.raises(GatewayError):
            await process.jobs.run(job)
        await process.queue.release(job, 0, failed=True)
    await process.work()
    assert (await process.state(store_id)).error_code == "server_error"


async def test_an_expired_vector_store_is_emptied(engine: AsyncEngine, clock: ManualClock) -> None:
    process = Process(engine, clock, {"a": TEXT})
    store_id = await create(process, expires_after_days=1)
    await process.add(store_id, "a")
    await process.work()
    clock.now_s += 86_000
    assert await process.found(store_id)  # which is an activity
    clock.now_s += 86_000
    assert await process.stores.empty_expired() == 0
    clock.now_s += 1_000
    with pytest.raises(GatewayError, match="has expired"):
        await process.found(store_id)
    assert (await process.stores.empty_expired(), await process.stores.empty_expired()) == (1, 0)
    await process.work()
    assert not any((await process.rows()).values())
    [store] = await process.stores.find(ADA.user_id, [store_id])
    assert store.has_expired and store.usage_bytes == 0


async def test_a_deleted_file_is_in_no_vector_store(
    engine: AsyncEngine, clock: ManualClock, tmp_path: Path
) -> None:
    texts = {"file-" + letter * 26: TEXT for letter in "ABCD"}
    deleted, expired, erased, kept = texts
    process = Process(engine, clock, texts)
    first, second = await create(process), await create(process)
    for store_id in (first, second):
        await process.add(store_id, *texts)
    for _ in range(7):
        await process.jobs.run(await process.claim())
    # The last file of the second vector store is half indexed.
    half, process.tasks.left = await process.claim(), 1
    with pytest.raises(KilledError):
        await process.jobs.run(half)
    process.tasks.left = None
    removed = RemovedFiles(process.queue)
    files = FileRepository(engine, Clock(clock.now), removed)
    now_s = int(clock.now())
    for file_id, seconds in ((deleted, 90), (expired, 10), (erased, 90), (kept, 90)):
        file = File(
            id=file_id,
            filename="a.txt",
            purpose=PURPOSE_ASSISTANTS,
            size_bytes=1,
            mime_type="text/plain",
            created_at=now_s,
            expires_at=now_s + seconds,
            sha256="0" * 64,
        )
        owner_id = "usr_bob" if file_id == erased else ADA.user_id
        await files.add(owner_id, file, 100, lambda: True)

    async def names(store_id: str) -> set[str]:
        request = pb.SearchVectorStoresRequest(
            vector_store_ids=[store_id], queries=["needle"], max_results=50
        )
        chunks = await process.search.search(ADA.user_id, request)
        return {chunk.file_id for chunk in chunks if "needle" in chunk.text}

    assert (await names(first), await names(second)) == (set(texts), set(texts) - {kept})
    await files.remove(ADA.user_id, deleted)
    assert await names(first) == {expired, erased, kept}
    [store] = await process.stores.find(ADA.user_id, [first])
    assert (store.file_counts.total, store.file_counts.completed) == (3, 3)
    with pytest.raises(GatewayError, match="no such file"):
        await process.state(second, deleted)
    clock.now_s += 20
    assert await files.remove_expired(10) == [expired]
    assert await names(second) == {erased}

    async def count(*_: Any) -> None:
        pass

    await FileErasure(engine, FolderBlobs.at(tmp_path), removed)("usr_bob", count)
    assert (await names(first), await names(second)) == ({kept}, set())
    # Also while it is indexed.
    await files.remove(ADA.user_id, kept)
    clock.now_s += LEASE_S + 1
    await process.work()
    rows = await process.rows()
    assert rows.pop("memory_archives") == 2
    assert not any(rows.values())


async def test_erasure_leaves_nothing_of_a_user(engine: AsyncEngine, clock: ManualClock) -> None:
    process = Process(engine, clock, {"a": TEXT, "b": TEXT})
    deleted, kept = await create(process), await create(process)
    await process.add(deleted, "a")
    await process.add(kept, "b")
    await process.work()
    await process.stores.delete(ADA.user_id, deleted)  # its job has not run
    counted: list[tuple[str, int]] = []

    async def count(_: Any, kind: str, items: int, size_bytes: int = 0) -> None:
        counted.append((kind, items))

    erasure = VectorStoreErasure(engine)
    while await erasure(ADA.user_id, count):
        pass
    assert counted == [("vector_stores", 1)] * 2
    assert not any((await process.rows()).values())


async def test_jobs_of_files_are_not_those_of_memories(
    engine: AsyncEngine, clock: ManualClock
) -> None:
    process = Process(engine, clock, {"a": TEXT})
    await process.add(await create(process), "a")
    memories = JobQueue(engine, clock, LEASE_S, kinds=MEMORY_JOBS)
    assert await memories.claim(1) == [] and (await memories.backlog()).jobs == 0
    assert (await process.claim()).kind is JobKind.INDEX

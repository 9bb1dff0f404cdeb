"""Uploads that go wrong: whatever stops one, nothing of it stays."""

import asyncio
import resource
from collections.abc import AsyncIterator, Callable

import pytest
from prometheus_client import CollectorRegistry

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE, PLAN_PERSONAL_FREE
from gateway.files.v1.files_pb2 import (
    PURPOSE_BATCH,
    CreateFileRequest,
    File,
    FileHeader,
    FileTrailer,
    GetStorageResponse,
)
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller
from services.common.settings import Limits, Storage, StorageLimits
from services.files.blob_errors import storage_unavailable
from services.files.creation import FileCreator
from services.files.metrics import FileMetrics
from services.files.repository import FileRepository, FileTotals
from tests.services.files.running_file_store import MIB, Bucket, RunningFileStore, reason_of

ADA = Caller("user_ada", "", PLAN_ENTERPRISE)
# More than one part of an S3 upload.
LARGE = b"x" * 7 * MIB
NOTHING = FileTotals(0, 0)


@pytest.fixture
def body_idle_s() -> float:
    """Tests of stalls override this; others may be as slow as the machine."""
    return 60


@pytest.fixture
def limits(body_idle_s: float) -> Limits:
    return Limits(
        max_file_bytes=8 * MIB,
        body_idle_s=body_idle_s,
        storage=StorageLimits(personal_free=10_000, enterprise=20 * MIB),
    )


async def coming(
    content: bytes, then: Callable[[], AsyncIterator[CreateFileRequest]] | None = None
) -> AsyncIterator[CreateFileRequest]:
    """Return the messages of an upload; `then` comes in the place of its end."""
    yield CreateFileRequest(header=FileHeader(filename="a.bin"))
    for start in range(0, len(content), MIB):
        yield CreateFileRequest(chunk=content[start : start + MIB])
    if then is None:
        yield CreateFileRequest(trailer=FileTrailer(purpose=PURPOSE_BATCH))
        return
    async for message in then():
        yield message


async def stalling() -> AsyncIterator[CreateFileRequest]:
    await asyncio.Event().wait()
    yield CreateFileRequest()


async def assert_nothing_stays(file_store: RunningFileStore) -> None:
    assert await file_store.keys() == []
    assert await file_store.repository.usage(ADA.user_id) == NOTHING


@pytest.mark.parametrize("body_idle_s", [0.2])
async def test_an_upload_that_stalls_is_ended_and_frees_everything(
    file_store: RunningFileStore, place: Storage, s3: Bucket
) -> None:
    with pytest.raises(GatewayError) as raised:
        await file_store.creator.receive(ADA, coming(LARGE, stalling))
    assert (reason_of(raised), raised.value.param) == ("timeout", "file")
    await assert_nothing_stays(file_store)
    if place.blob_url:
        assert s3.unfinished() == 0


async def test_an_upload_whose_caller_leaves_frees_everything(file_store: RunningFileStore) -> None:
    reached = asyncio.Event()

    async def leaving() -> AsyncIterator[CreateFileRequest]:
        reached.set()
        await asyncio.Event().wait()
        yield CreateFileRequest()

    receiving = asyncio.create_task(file_store.creator.receive(ADA, coming(LARGE, leaving)))
    await reached.wait()
    receiving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receiving
    await assert_nothing_stays(file_store)


@pytest.mark.parametrize("body_idle_s", [0.2])
async def test_a_stall_is_reported_over_grpc(file_store: RunningFileStore) -> None:
    call = file_store.client().open_upload()
    await call.write(CreateFileRequest(header=FileHeader(filename="a")))
    assert (await call.code()).name == "DEADLINE_EXCEEDED"
    assert await file_store.keys() == []


@pytest.mark.parametrize("place", ["s3"], indirect=True)
async def test_an_upload_that_a_bucket_refused_leaves_no_hidden_parts(
    file_store: RunningFileStore, place: Storage, s3: Bucket
) -> None:
    with pytest.raises(GatewayError) as raised:
        await file_store.creator.receive(ADA, coming(LARGE + LARGE))
    assert reason_of(raised) == "too_large"
    assert s3.unfinished() == 0


class SlowRepository(FileRepository):
    """Adds when it is told to, and afterwards fails where it is told to."""

    def __init__(self, file_store: RunningFileStore, failure: Exception | None = None) -> None:
        super().__init__(file_store.engine, file_store.clock)
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self._failure = failure

    async def add(self, owner_id: str, file: File, quota: int, in_time: Callable[[], bool]) -> None:
        self.asked.set()
        await self.go_on.wait()
        await super().add(owner_id, file, quota, in_time)
        if self._failure:
            raise self._failure


def creator_with(file_store: RunningFileStore, repository: FileRepository) -> FileCreator:
    return FileCreator(
        repository,
        file_store.blobs,
        file_store.limits,
        file_store.clock,
        FileMetrics(CollectorRegistry()),
        file_store.disk.reserve,
    )


async def test_a_caller_who_leaves_during_the_commit_leaves_no_file(
    file_store: RunningFileStore,
) -> None:
    repository = SlowRepository(file_store)
    receiving = asyncio.create_task(
        creator_with(file_store, repository).receive(ADA, coming(b"short"))
    )
    await repository.asked.wait()
    receiving.cancel()
    repository.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await receiving
    await assert_nothing_stays(file_store)


async def test_bytes_stay_when_nobody_knows_whether_the_row_is_there(
    file_store: RunningFileStore,
) -> None:
    repository = SlowRepository(file_store, failure=storage_unavailable())
    repository.go_on.set()
    with pytest.raises(GatewayError):
        await creator_with(file_store, repository).receive(ADA, coming(b"short"))
    [file_id] = await file_store.client().ids()
    assert await file_store.client().content(file_id) == b"short"


async def test_an_upload_that_commits_after_the_sweeper_is_refused(
    file_store: RunningFileStore,
) -> None:
    repository = SlowRepository(file_store)
    receiving = asyncio.create_task(
        creator_with(file_store, repository).receive(ADA, coming(b"short"))
    )
    await repository.asked.wait()
    file_store.clock.now_s += file_store.limits.orphan_grace_s / 2
    repository.go_on.set()
    with pytest.raises(GatewayError) as raised:
        await receiving
    assert reason_of(raised) == "storage_unavailable"
    assert await file_store.repository.usage(ADA.user_id) == NOTHING


async def test_a_file_fits_the_quota_exactly_or_is_refused(file_store: RunningFileStore) -> None:
    bob = file_store.client("bob", plan=PLAN_PERSONAL_FREE)
    await bob.create(b"x" * 9_000)
    with pytest.raises(GatewayError) as raised:
        await bob.create(b"x" * 1_001)
    assert (reason_of(raised), raised.value.param) == ("storage_quota_exceeded", "file")
    assert "10000" in raised.value.message
    last = await bob.create(b"x" * 1_000)
    with pytest.raises(GatewayError):
        await bob.create(b"x")
    await bob.create(b"")
    await bob.delete(last.id)
    await bob.create(b"x" * 1_000)
    assert await file_store.repository.usage("user_bob") == FileTotals(3, 10_000)
    assert len(await file_store.keys()) == 3


async def test_callers_are_told_what_they_store_and_may(file_store: RunningFileStore) -> None:
    bob = file_store.client("bob", plan=PLAN_PERSONAL_FREE)
    assert await bob.storage() == GetStorageResponse(quota_bytes=10_000)
    await file_store.client("ada", plan=PLAN_PERSONAL_FREE).create(b"x" * 70)
    kept = [await bob.create(b"x" * size) for size in (300, 4)]
    assert await bob.storage() == GetStorageResponse(files=2, used_bytes=304, quota_bytes=10_000)
    await bob.delete(kept[0].id)
    assert await bob.storage() == GetStorageResponse(files=1, used_bytes=4, quota_bytes=10_000)


async def test_uploads_at_once_never_pass_the_quota(file_store: RunningFileStore) -> None:
    team = [file_store.client(f"user{n}", "math", PLAN_PERSONAL_FREE) for n in range(10)]
    outcomes = await asyncio.gather(
        *(team[n % 10].create(b"x" * 330) for n in range(100)), return_exceptions=True
    )
    kept = [outcome.id for outcome in outcomes if isinstance(outcome, File)]
    refused = [outcome for outcome in outcomes if not isinstance(outcome, File)]
    assert len(kept) == 30
    for error in refused:
        assert isinstance(error, GatewayError)
        assert error.code == "storage_quota_exceeded"
    assert await file_store.repository.usage("team_math") == FileTotals(30, 9_900)
    assert await file_store.keys() == sorted(kept)
    assert sorted(await team[0].ids()) == sorted(kept)


@pytest.mark.parametrize("place", ["folder"], indirect=True)
async def test_a_full_disk_is_reported_until_there_is_room(
    file_store: RunningFileStore, place: Storage
) -> None:
    ada = file_store.client()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * MIB, hard))
    try:
        with pytest.raises(GatewayError) as raised:
            await ada.create(LARGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert reason_of(raised) == "storage_unavailable"
    assert raised.value.retry_after_s
    await assert_nothing_stays(file_store)
    file = await ada.create(LARGE)
    assert await ada.content(file.id) == LARGE


@pytest.mark.parametrize("content", [b"short", LARGE])
@pytest.mark.parametrize("place", ["s3"], indirect=True)
async def test_a_bucket_that_is_down_is_an_error_until_it_is_back(
    file_store: RunningFileStore, place: Storage, s3: Bucket, content: bytes
) -> None:
    ada = file_store.client()
    before = await ada.create(b"before")
    s3.stop()
    try:
        for call in (lambda: ada.create(content), lambda: ada.content(before.id)):
            with pytest.raises(GatewayError) as raised:
                await call()
            assert reason_of(raised) == "storage_unavailable"
            assert raised.value.retry_after_s
        # A file can be deleted all the same; its bytes are for the sweeper.
        await ada.delete(before.id)
    finally:
        s3.start()
    assert await file_store.keys() == [before.id]
    file = await ada.create(content)
    assert await ada.content(file.id) == content
    assert await file_store.repository.usage("user_ada") == FileTotals(1, len(content))

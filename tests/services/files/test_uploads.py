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
)
from services.common.authentication import Caller
from services.common.errors import GatewayError
from services.common.settings import Limits, Storage, StorageLimits
from services.files.blob_errors import storage_unavailable
from services.files.metrics import Metrics
from services.files.repository import FileRepository, Usage
from services.files.uploads import Uploads
from tests.services.files.filing import MIB, Bucket, Filing, reason_of

ADA = Caller("user_ada", "", PLAN_ENTERPRISE)
# More than one part of an S3 upload.
LARGE = b"x" * 7 * MIB
NOTHING = Usage(0, 0)


@pytest.fixture
def limits() -> Limits:
    return Limits(
        max_file_bytes=8 * MIB,
        body_idle_s=0.2,
        storage=StorageLimits(personal_free=10_000, enterprise=20 * MIB),
    )


async def coming(
    content: bytes, then: Callable[[], AsyncIterator[CreateFileRequest]] | None = None
) -> AsyncIterator[CreateFileRequest]:
    """Give the messages of an upload; `then` comes in the place of its end."""
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


async def assert_nothing_stays(filing: Filing) -> None:
    assert await filing.keys() == []
    assert await filing.repository.usage(ADA.user_id) == NOTHING


async def test_an_upload_that_stalls_is_ended_and_frees_everything(
    filing: Filing, place: Storage, s3: Bucket
) -> None:
    with pytest.raises(GatewayError) as raised:
        await filing.uploads.receive(ADA, coming(LARGE, stalling))
    assert (reason_of(raised), raised.value.param) == ("timeout", "file")
    await assert_nothing_stays(filing)
    if place.blob_url:
        assert s3.unfinished() == 0


async def test_an_upload_whose_caller_leaves_frees_everything(filing: Filing) -> None:
    reached = asyncio.Event()

    async def leaving() -> AsyncIterator[CreateFileRequest]:
        reached.set()
        await asyncio.Event().wait()
        yield CreateFileRequest()

    receiving = asyncio.create_task(filing.uploads.receive(ADA, coming(LARGE, leaving)))
    await reached.wait()
    receiving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receiving
    await assert_nothing_stays(filing)


async def test_a_stall_is_told_over_grpc(filing: Filing) -> None:
    call = filing.client().open_upload()
    await call.write(CreateFileRequest(header=FileHeader(filename="a")))
    assert (await call.code()).name == "DEADLINE_EXCEEDED"
    assert await filing.keys() == []


@pytest.mark.parametrize("place", ["s3"], indirect=True)
async def test_an_upload_that_a_bucket_refused_leaves_no_hidden_parts(
    filing: Filing, place: Storage, s3: Bucket
) -> None:
    with pytest.raises(GatewayError) as raised:
        await filing.uploads.receive(ADA, coming(LARGE + LARGE))
    assert reason_of(raised) == "too_large"
    assert s3.unfinished() == 0


class SlowRepository(FileRepository):
    """Adds when it is told to, and afterwards fails where it is told to."""

    def __init__(self, filing: Filing, failure: Exception | None = None) -> None:
        super().__init__(filing.engine, filing.source)
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self._failure = failure

    async def add(self, owner_id: str, file: File, quota: int, in_time: Callable[[], bool]) -> None:
        self.asked.set()
        await self.go_on.wait()
        await super().add(owner_id, file, quota, in_time)
        if self._failure:
            raise self._failure


def uploads_with(filing: Filing, repository: FileRepository) -> Uploads:
    return Uploads(
        repository,
        filing.blobs,
        filing.limits,
        filing.source,
        Metrics(CollectorRegistry()),
        filing.disk.reserve,
    )


async def test_a_caller_who_leaves_during_the_commit_leaves_no_file(filing: Filing) -> None:
    repository = SlowRepository(filing)
    receiving = asyncio.create_task(uploads_with(filing, repository).receive(ADA, coming(b"short")))
    await repository.asked.wait()
    receiving.cancel()
    repository.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await receiving
    await assert_nothing_stays(filing)


async def test_bytes_stay_when_nobody_knows_whether_the_row_is_there(filing: Filing) -> None:
    repository = SlowRepository(filing, failure=storage_unavailable())
    repository.go_on.set()
    with pytest.raises(GatewayError):
        await uploads_with(filing, repository).receive(ADA, coming(b"short"))
    [file_id] = await filing.client().ids()
    assert await filing.client().content(file_id) == b"short"


async def test_an_upload_that_commits_after_the_sweeper_is_refused(filing: Filing) -> None:
    repository = SlowRepository(filing)
    receiving = asyncio.create_task(uploads_with(filing, repository).receive(ADA, coming(b"short")))
    await repository.asked.wait()
    filing.clock.now_s += filing.limits.orphan_grace_s / 2
    repository.go_on.set()
    with pytest.raises(GatewayError) as raised:
        await receiving
    assert reason_of(raised) == "storage_unavailable"
    assert await filing.repository.usage(ADA.user_id) == NOTHING


async def test_a_file_fits_the_quota_exactly_or_is_refused(filing: Filing) -> None:
    bob = filing.client("bob", plan=PLAN_PERSONAL_FREE)
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
    assert await filing.repository.usage("user_bob") == Usage(3, 10_000)
    assert len(await filing.keys()) == 3


async def test_uploads_at_once_never_pass_the_quota(filing: Filing) -> None:
    team = [filing.client(f"user{n}", "math", PLAN_PERSONAL_FREE) for n in range(10)]
    outcomes = await asyncio.gather(
        *(team[n % 10].create(b"x" * 330) for n in range(100)), return_exceptions=True
    )
    kept = [outcome.id for outcome in outcomes if isinstance(outcome, File)]
    refused = [outcome for outcome in outcomes if not isinstance(outcome, File)]
    assert len(kept) == 30
    for error in refused:
        assert isinstance(error, GatewayError)
        assert error.code == "storage_quota_exceeded"
    assert await filing.repository.usage("team_math") == Usage(30, 9_900)
    assert await filing.keys() == sorted(kept)
    assert sorted(await team[0].ids()) == sorted(kept)


@pytest.mark.parametrize("place", ["folder"], indirect=True)
async def test_a_full_disk_is_told_and_forgotten_once_there_is_room(
    filing: Filing, place: Storage
) -> None:
    ada = filing.client()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * MIB, hard))
    try:
        with pytest.raises(GatewayError) as raised:
            await ada.create(LARGE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert reason_of(raised) == "storage_unavailable"
    assert raised.value.retry_after_s
    await assert_nothing_stays(filing)
    file = await ada.create(LARGE)
    assert await ada.content(file.id) == LARGE


@pytest.mark.parametrize("content", [b"short", LARGE])
@pytest.mark.parametrize("place", ["s3"], indirect=True)
async def test_a_bucket_that_is_down_is_an_error_until_it_is_back(
    filing: Filing, place: Storage, s3: Bucket, content: bytes
) -> None:
    ada = filing.client()
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
    assert await filing.keys() == [before.id]
    file = await ada.create(content)
    assert await ada.content(file.id) == content
    assert await filing.repository.usage("user_ada") == Usage(1, len(content))

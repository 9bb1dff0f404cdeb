"""Uploads in parts: any process takes any part, one file comes of them, and nothing else stays."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence

import pytest
from prometheus_client import CollectorRegistry

from gateway.accounts.v1.accounts_pb2 import PLAN_ENTERPRISE
from gateway.files.v1.files_pb2 import (
    PURPOSE_BATCH,
    UPLOAD_STATUS_COMPLETED,
    AddUploadPartRequest,
    CompleteUploadRequest,
    CreateUploadRequest,
    File,
    FileHeader,
    FileTrailer,
    Upload,
    UploadPartHeader,
    UploadPartOrder,
    UploadPartTrailer,
)
from services.common.errors import GatewayError
from services.common.grpc.authentication import Caller
from services.common.settings import Limits, StorageLimits
from services.common.storage.removed_files import keep_nothing
from services.files import upload_repository
from services.files.erasure import FileErasure
from services.files.metrics import FileMetrics
from services.files.repository import FileTotals
from services.files.upload_repository import UploadRepository
from services.files.uploads import Uploads
from tests.grid import Grid
from tests.services.files.running_file_store import MIB, RunningFileStore, reason_of

ADA = Caller("user_ada", "", PLAN_ENTERPRISE)
BOB = Caller("user_bob", "", PLAN_ENTERPRISE)
NOTHING = FileTotals(0, 0)
# More than one part of an S3 upload.
LARGE = bytes(range(256)) * (6 * MIB // 256)


@pytest.fixture
def limits() -> Limits:
    return Limits(max_file_bytes=8 * MIB, storage=StorageLimits(enterprise=20 * MIB))


def another_process(file_store: RunningFileStore) -> Uploads:
    """Return the uploads of another process over the same database and store."""
    return Uploads(
        UploadRepository(file_store.engine, file_store.clock),
        file_store.repository,
        file_store.blobs,
        file_store.limits,
        file_store.clock,
        FileMetrics(CollectorRegistry()),
        file_store.disk.reserve,
    )


async def begin(
    uploads: Uploads, size: int | None, share: bytes = b"", caller: Caller = ADA
) -> str:
    request = CreateUploadRequest(
        header=FileHeader(filename="a/b.txt", mime_type="application/x-notes"),
        trailer=FileTrailer(purpose=PURPOSE_BATCH, expires_after_s=60),
        size_bytes=size,
        key_share=share,
    )
    return (await uploads.create(caller, request)).id


async def add(
    uploads: Uploads,
    upload_id: str,
    content: bytes,
    offset: int | None = None,
    caller: Caller = ADA,
) -> str:
    async def messages() -> AsyncIterator[AddUploadPartRequest]:
        header = UploadPartHeader(upload_id=upload_id, offset=offset)
        yield AddUploadPartRequest(header=header)
        for start in range(0, len(content), MIB):
            yield AddUploadPartRequest(chunk=content[start : start + MIB])
        yield AddUploadPartRequest(trailer=UploadPartTrailer())

    return (await uploads.add_part(caller, messages())).id


async def complete(
    uploads: Uploads, upload_id: str, part_ids: Sequence[str] | None = None, md5: str = ""
) -> Upload:
    order = None if part_ids is None else UploadPartOrder(part_ids=part_ids)
    return await uploads.complete(ADA, CompleteUploadRequest(id=upload_id, order=order, md5=md5))


async def test_any_process_takes_any_part(file_store: RunningFileStore) -> None:
    first, second = file_store.uploads, another_process(file_store)
    pieces = LARGE[: 3 * MIB], LARGE[3 * MIB :], b"left out"
    upload_id = await begin(first, len(LARGE))
    ids = await asyncio.gather(
        add(second, upload_id, pieces[1]),
        add(first, upload_id, pieces[0]),
        add(second, upload_id, pieces[2]),
    )
    assert (await file_store.repository.usage(ADA.user_id)).size_bytes == len(LARGE) + 8
    file_store.clock.now_s += 10
    order, md5 = [ids[1], ids[0]], hashlib.md5(LARGE).hexdigest()
    made = await asyncio.gather(
        *(complete(uploads, upload_id, order, md5) for uploads in (first, second, first))
    )
    file = made[0].file
    assert {upload.file.id for upload in made} == {file.id}
    assert {upload.status for upload in made} == {UPLOAD_STATUS_COMPLETED}
    assert (file.filename, file.mime_type, file.sha256) == (
        "b.txt",
        "application/x-notes",
        hashlib.sha256(LARGE).hexdigest(),
    )
    assert (file.created_at, file.expires_at) == (file_store.clock.now_s, file.created_at + 60)
    assert await file_store.client().content(file.id) == LARGE
    assert await file_store.repository.usage(ADA.user_id) == FileTotals(1, len(LARGE))
    assert await file_store.keys() == [file.id]
    with pytest.raises(GatewayError) as raised:
        await complete(first, upload_id, order[::-1])
    assert raised.value.message.startswith("order: this upload was completed with other parts")
    await file_store.client().delete(file.id)
    assert not (await complete(first, upload_id, order)).HasField("file")


async def test_content_in_order_continues_where_it_ended(file_store: RunningFileStore) -> None:
    first, second = file_store.uploads, another_process(file_store)
    upload_id = await begin(first, None)
    outcomes = await asyncio.gather(
        *(add(uploads, upload_id, b"abc", 0) for uploads in (first, second)),
        return_exceptions=True,
    )
    refusals = [one for one in outcomes if isinstance(one, GatewayError)]
    assert [(one.code, one.message) for one in refusals] == [
        ("conflict", "offset: must be 3, the bytes received so far")
    ]
    await add(second, upload_id, b"de", 3)
    assert (await first.get(ADA, upload_id)).received_bytes == 5
    file = (await complete(first, upload_id)).file
    assert await file_store.client().content(file.id) == b"abcde"
    assert (await complete(second, upload_id)).file == file
    empty = await complete(first, await begin(first, 0))
    assert await file_store.client().content(empty.file.id) == b""
    assert await file_store.keys() == sorted([file.id, empty.file.id])


async def test_a_part_that_comes_meanwhile_is_not_lost(file_store: RunningFileStore) -> None:
    class Interrupted(Uploads):
        async def _keep(self, upload: object, file: File, *arguments: object) -> bool:
            await add(file_store.uploads, upload_id, b"more")
            return await super()._keep(upload, file, *arguments)  # type: ignore[arg-type]  # passed on

    upload_id = await begin(file_store.uploads, None)
    await add(file_store.uploads, upload_id, b"some")
    uploads = another_process(file_store)
    uploads.__class__ = Interrupted
    with pytest.raises(GatewayError) as raised:
        await complete(uploads, upload_id)
    assert reason_of(raised) == "conflict"
    file = (await complete(file_store.uploads, upload_id)).file
    assert await file_store.client().content(file.id) == b"somemore"
    assert await file_store.keys() == [file.id]


async def test_an_upload_that_ends_frees_everything(file_store: RunningFileStore) -> None:
    uploads, users = file_store.uploads, {"cancelled": ADA, "expired": ADA, "erased": ADA}
    upload_ids = {name: await begin(uploads, None) for name in users}
    for upload_id in upload_ids.values():
        await add(uploads, upload_id, LARGE)
    assert await file_store.repository.usage(ADA.user_id) == FileTotals(0, 3 * len(LARGE))
    for _ in range(2):
        await uploads.cancel(ADA, upload_ids["cancelled"])
    assert await file_store.repository.usage(ADA.user_id) == FileTotals(0, 2 * len(LARGE))
    assert len(await file_store.keys()) == 2
    file_store.clock.now_s += file_store.limits.upload_lifetime_s
    late = await begin(uploads, None)
    await add(uploads, late, b"late")
    with pytest.raises(GatewayError) as raised:
        await complete(uploads, upload_ids["expired"])
    assert reason_of(raised) == "not_found"
    assert await file_store.sweeper().sweep()
    assert await file_store.repository.usage(ADA.user_id) == FileTotals(0, 4)
    assert len(await file_store.keys()) == 1
    erase = FileErasure(file_store.engine, file_store.blobs, keep_nothing)

    async def count(*_: object) -> None:
        """Nothing is counted of uploads."""

    assert [await erase(ADA.user_id, count) for _ in range(2)] == [1, 0]
    assert await file_store.repository.usage(ADA.user_id) == NOTHING
    assert await file_store.keys() == []


async def test_what_is_refused_changes_nothing(
    file_store: RunningFileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = file_store.uploads
    upload_id, other = await begin(uploads, 4), await begin(uploads, None)
    part_id, foreign = await add(uploads, upload_id, b"1234"), await add(uploads, other, b"1")
    ended = await begin(uploads, None)
    await uploads.cancel(ADA, ended)
    full = await begin(uploads, None)
    await add(uploads, full, LARGE)
    await add(uploads, full, LARGE)
    await add(uploads, full, LARGE)
    usage, keys = await file_store.repository.usage(ADA.user_id), await file_store.keys()
    monkeypatch.setattr(upload_repository, "MAX_PENDING", 3)
    monkeypatch.setattr(upload_repository, "MAX_PARTS", 3)
    with Grid() as grid:
        for action, code, begins in (
            (add(uploads, upload_id, b"12345"), "invalid_request", "chunk: the upload was begun"),
            (add(uploads, upload_id, b"1", 3), "conflict", "offset: must be 4"),
            (add(uploads, upload_id, b""), "invalid_request", "chunk: a part must not be empty"),
            (add(uploads, upload_id, b"1", caller=BOB), "not_found", "upload_id: no such upload"),
            (add(uploads, "upload_1", b"1"), "not_found", "upload_id: no such upload"),
            (add(uploads, ended, b"1"), "invalid_request", "upload_id: this upload is cancelled"),
            (add(uploads, full, b"1"), "invalid_request", "upload_id: this upload has 3 parts"),
            (add(uploads, other, LARGE), "storage_quota_exceeded", "file: your plan allows"),
            (add(uploads, other, bytes(9 * MIB)), "storage_quota_exceeded", "file: your plan"),
            (begin(uploads, 9 * MIB), "too_large", "file: must have at most"),
            (uploads.set_size(ADA, upload_id, 5), "invalid_request", "size_bytes: must be 4"),
            (uploads.set_size(ADA, other, 0), "invalid_request", "size_bytes: must be at least 1"),
            (uploads.set_size(BOB, other, 9), "not_found", "upload_id: no such upload"),
            (uploads.set_size(ADA, ended, 9), "invalid_request", "size_bytes: must be at least 0"),
            (begin(uploads, 7 * MIB), "storage_quota_exceeded", "file: your plan allows"),
            (begin(uploads, None), "rate_limited", "3 of your uploads are pending"),
            (begin(uploads, None, bytes(65)), "invalid_request", "key_share: must have at most"),
            (complete(uploads, upload_id, [foreign]), "invalid_request", "order.part_ids[0]: is n"),
            (
                complete(uploads, upload_id, [part_id, part_id]),
                "invalid_request",
                "order.part_ids[1]: is named twice",
            ),
            (complete(uploads, upload_id, []), "invalid_request", "size_bytes: the parts have 0"),
            (complete(uploads, upload_id, [part_id], "x"), "invalid_request", "md5: must be"),
            (
                complete(uploads, upload_id, [part_id], "0" * 32),
                "invalid_request",
                "md5: the parts have the digest 81dc9bdb52d04dc20036dbd8313ed055",
            ),
            (complete(uploads, ended), "invalid_request", "upload_id: this upload is cancelled"),
            (uploads.key_share(upload_id), "not_found", "upload_id: no such upload"),
        ):
            with grid.row(begins):
                with pytest.raises(GatewayError) as raised:
                    await action
                assert (raised.value.code, raised.value.message[: len(begins)]) == (code, begins)
                assert await file_store.repository.usage(ADA.user_id) == usage
                assert await file_store.keys() == keys
    await complete(uploads, upload_id, [part_id])
    with pytest.raises(GatewayError) as raised:
        await uploads.cancel(ADA, upload_id)
    assert raised.value.message.startswith("upload_id: this upload is completed")
    assert await uploads.key_share(await begin(uploads, None, b"share")) == b"share"

"""A real process that serves files and is killed, and what must hold whenever it was."""

import asyncio
import hashlib
import os
import random
import signal
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.files.v1.files_pb2 import (
    PURPOSE_BATCH,
    AddUploadPartRequest,
    CompleteUploadRequest,
    CreateFileRequest,
    CreateUploadRequest,
    DeleteFileRequest,
    FileHeader,
    FileTrailer,
    UploadPartHeader,
    UploadPartOrder,
    UploadPartTrailer,
)
from gateway.files.v1.files_pb2_grpc import FileStoreServiceStub
from services.common.grpc.authentication import call_metadata
from services.common.grpc.channels import Metadata, open_channel
from services.common.storage.database import reading
from services.files.blobs import FOLDER
from services.files.repository import files, usage
from services.files.upload_rows import PENDING, upload_parts, uploads
from tests.forked import AsyncForkedProcess
from tests.services.processes import serving
from tests.waiting import until

_PIECE = 256 << 10
SHORT_LIFETIME_S = 1
# Short enough that every life of the process sweeps, long enough for a slow machine.
_SETTINGS = """\
[limits]
sweep_every_s = 0.05
orphan_grace_s = 4
"""


@dataclass
class AcknowledgedFiles:
    """The files that were acknowledged to callers.

    Attributes:
        kept: SHA-256 of each file that was acknowledged and that nobody asked to delete.
        deleted: files whose deletion was acknowledged.
        parts: the acknowledged parts of each upload that is not known to be completed.
        answered: calls that were answered, in all.
        once_more: set whenever one was.
    """

    kept: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    parts: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)
    answered: int = 0
    once_more: asyncio.Event = field(default_factory=asyncio.Event)

    def note_answer(self) -> None:
        self.answered += 1
        self.once_more.set()


def file_store_process(
    folder: Path,
) -> AbstractAsyncContextManager[tuple[AsyncForkedProcess, str]]:
    """Run the services on the folder's data; give the process and its address."""
    return serving(folder, ("accounts", "files"), settings=_SETTINGS)


async def work_until_killed(
    address: str,
    process: AsyncForkedProcess,
    key: str,
    acknowledged: AcknowledgedFiles,
    chance: random.Random,
) -> None:
    """Upload and delete from several callers, and kill the process at some moment."""
    async with open_channel(address, max_message_bytes=4 << 20) as channel:
        stub = FileStoreServiceStub(channel)
        callers = [
            asyncio.create_task(
                _call(stub, key, acknowledged, random.Random(chance.random()), in_parts=not number)
            )
            for number in range(3)
        ]
        due = acknowledged.answered + chance.randrange(12)
        async with asyncio.timeout(60):
            # Else there may be nothing to lose, or to come back.
            while acknowledged.answered < due or not (acknowledged.kept and acknowledged.deleted):
                acknowledged.once_more.clear()
                await acknowledged.once_more.wait()
        # Any moment is a moment to die: this is the one wait that is for nothing.
        await asyncio.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        await process.wait()
        for outcome in await asyncio.gather(*callers, return_exceptions=True):
            # A call whose connection breaks while it half-closes is told by gRPC that it was
            # cancelled.
            expected = (grpc.aio.AioRpcError, asyncio.CancelledError)
            assert isinstance(outcome, expected), repr(outcome)


async def _call(
    stub: FileStoreServiceStub,
    key: str,
    acknowledged: AcknowledgedFiles,
    chance: random.Random,
    *,
    in_parts: bool,
) -> None:
    metadata = call_metadata(key, "req_kill")
    while True:
        # One is always kept.
        if len(acknowledged.kept) > 1 and chance.random() < 0.3:
            file_id = chance.choice(list(acknowledged.kept))
            # From here on nobody can say whether it is still there.
            del acknowledged.kept[file_id]
            await stub.DeleteFile(DeleteFileRequest(id=file_id), metadata=metadata)
            acknowledged.deleted.add(file_id)
        elif in_parts and chance.random() < 0.7:
            await _upload_in_parts(stub, metadata, acknowledged, chance)
        else:
            content = chance.randbytes(chance.choice([0, 10, _PIECE, 5 * _PIECE]))
            lifetime_s = chance.choice([None, None, SHORT_LIFETIME_S])
            answer = await stub.CreateFile(_messages(content, lifetime_s), metadata=metadata)
            if lifetime_s is None:
                acknowledged.kept[answer.file.id] = hashlib.sha256(content).hexdigest()
        acknowledged.note_answer()


async def _upload_in_parts(
    stub: FileStoreServiceStub,
    metadata: Metadata,
    acknowledged: AcknowledgedFiles,
    chance: random.Random,
) -> None:
    """Add a part to an upload that an earlier life may have begun, or complete it."""
    if not acknowledged.parts:
        request = CreateUploadRequest(
            header=FileHeader(filename="a.bin"), trailer=FileTrailer(purpose=PURPOSE_BATCH)
        )
        answer = await stub.CreateUpload(request, metadata=metadata)
        acknowledged.parts[answer.upload.id] = []
        return
    (upload_id, parts), *_ = acknowledged.parts.items()
    if len(parts) < 3:
        content = chance.randbytes(chance.choice([10, _PIECE]))
        part = (await stub.AddUploadPart(_part(upload_id, content), metadata=metadata)).part
        parts.append((part.id, content))
        return
    order = UploadPartOrder(part_ids=[part_id for part_id, _ in parts])
    request = CompleteUploadRequest(id=upload_id, order=order)
    # An earlier life may have completed it, without an answer.
    file = (await stub.CompleteUpload(request, metadata=metadata)).upload.file
    del acknowledged.parts[upload_id]
    content = b"".join(content for _, content in parts)
    acknowledged.kept[file.id] = hashlib.sha256(content).hexdigest()


def _part(upload_id: str, content: bytes) -> list[AddUploadPartRequest]:
    return [
        AddUploadPartRequest(header=UploadPartHeader(upload_id=upload_id)),
        AddUploadPartRequest(chunk=content),
        AddUploadPartRequest(trailer=UploadPartTrailer()),
    ]


def _messages(content: bytes, lifetime_s: int | None) -> list[CreateFileRequest]:
    return [
        CreateFileRequest(header=FileHeader(filename="a.bin")),
        *(
            CreateFileRequest(chunk=content[start : start + _PIECE])
            for start in range(0, len(content), _PIECE)
        ),
        CreateFileRequest(trailer=FileTrailer(purpose=PURPOSE_BATCH, expires_after_s=lifetime_s)),
    ]


async def assert_consistent(
    engine: AsyncEngine, folder: Path, acknowledged: AcknowledgedFiles
) -> set[str]:
    """Check rows, bytes and account against each other and against `known`; give the ids."""
    async with reading(engine) as connection:
        rows = (await connection.execute(select(files))).all()
        account = (
            await connection.execute(select(usage.c.files, usage.c.size_bytes))
        ).one_or_none()
        sums = select(func.count(), func.coalesce(func.sum(files.c.size_bytes), 0))
        count, size = (await connection.execute(sums.select_from(files))).one()
        parts = (await connection.execute(select(upload_parts))).all()
        query = select(uploads.c.id).where(uploads.c.status == PENDING)
        pending = set(await connection.scalars(query))
    assert tuple(account or (0, 0)) == (count, size + sum(part.size_bytes for part in parts))
    part_ids = {part.id for part in parts}
    assert all((folder / FOLDER / part_id).exists() for part_id in part_ids)
    for upload_id in acknowledged.parts.keys() & pending:
        acknowledged_ids = {part_id for part_id, _ in acknowledged.parts[upload_id]}
        assert acknowledged_ids <= part_ids, "an acknowledged part is lost"
    by_id = {row.id: row for row in rows}
    assert set(acknowledged.kept) <= set(by_id), "an acknowledged file is lost"
    assert not acknowledged.deleted & set(by_id), "an acknowledged deletion is undone"
    for file_id, row in by_id.items():
        content = (folder / FOLDER / file_id).read_bytes()
        assert (
            hashlib.sha256(content).hexdigest()
            == row.sha256
            == acknowledged.kept.get(file_id, row.sha256)
        )
    return set(by_id) | part_ids


async def until_swept(
    engine: AsyncEngine, folder: Path, acknowledged: AcknowledgedFiles, within_s: float
) -> None:
    """Wait until a running process has left nothing but the files that stay, and check those."""
    await until(lambda: _is_swept(engine, folder), within_s=within_s, every_s=0.1)
    assert set(os.listdir(folder / FOLDER)) == await assert_consistent(engine, folder, acknowledged)


async def _is_swept(engine: AsyncEngine, folder: Path) -> bool:
    async with reading(engine) as connection:
        rows = (await connection.execute(select(files))).all()
        part_ids = set(await connection.scalars(select(upload_parts.c.id)))
    # While a file still has its end before it, rows and bytes are going under our eyes.
    if any(row.expires_at_s - row.created_at_s == SHORT_LIFETIME_S for row in rows):
        return False
    return set(os.listdir(folder / FOLDER)) == {row.id for row in rows} | part_ids

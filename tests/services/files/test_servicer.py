"""The acceptance suite: what files.proto promises, on every pair of places."""

import hashlib
import os

import pytest

from gateway.files.v1 import files_pb2
from gateway.files.v1.files_pb2 import CreateFileRequest, FileHeader, FileTrailer
from services.common.errors import GatewayError
from services.files.repository import FileTotals
from tests.services.files.running_file_store import MIB, RunningFileStore, reason_of

LIMIT = 50 * MIB


@pytest.mark.parametrize("size", [0, 1, MIB, MIB + 1, 6 * MIB])
async def test_what_is_read_is_what_was_kept(file_store: RunningFileStore, size: int) -> None:
    ada = file_store.client()
    content = os.urandom(size)
    file = await ada.create(content, "données.bin", mime_type="application/x-mine")
    assert (file.filename, file.size_bytes) == ("données.bin", size)
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert file.created_at == 1_700_000_000
    assert file.expires_at == file.created_at + 2_592_000
    assert await ada.get(file.id) == file
    opening, pieces = await ada.read(file.id)
    assert (opening.file, opening.first, opening.length) == (file, 0, size)
    assert b"".join(pieces) == content
    assert all(1 <= len(piece) <= MIB for piece in pieces)
    assert await file_store.keys() == [file.id]
    assert await file_store.repository.usage("user_ada") == FileTotals(1, size)


async def test_the_largest_file_is_stored_and_one_byte_more_is_not(
    file_store: RunningFileStore,
) -> None:
    ada = file_store.client()
    content = os.urandom(MIB) * 50
    file = await ada.create(content)
    assert await ada.content(file.id) == content
    with pytest.raises(GatewayError) as raised:
        await ada.create(content + b"x")
    assert (reason_of(raised), raised.value.param) == ("too_large", "file")
    assert await file_store.keys() == [file.id]
    assert await ada.ids() == [file.id]
    assert await file_store.repository.usage("user_ada") == FileTotals(1, LIMIT)


@pytest.mark.parametrize(
    ("wanted", "begin", "end"),
    [
        ({"first": 0}, 0, 10),
        ({"first": 4}, 4, 10),
        ({"first": 2, "last": 2}, 2, 3),
        ({"first": 2, "last": 99}, 2, 10),
        ({"last": 3}, 0, 4),
        ({"suffix": 3}, 7, 10),
        ({"suffix": 99}, 0, 10),
    ],
)
async def test_a_range_is_read(
    file_store: RunningFileStore, wanted: dict[str, int], begin: int, end: int
) -> None:
    ada = file_store.client()
    file = await ada.create(b"0123456789")
    opening, pieces = await ada.read(file.id, **wanted)
    assert (opening.first, opening.length) == (begin, end - begin)
    assert b"".join(pieces) == b"0123456789"[begin:end]


async def test_a_range_across_pieces_is_read(file_store: RunningFileStore) -> None:
    ada = file_store.client()
    content = os.urandom(3 * MIB)
    file = await ada.create(content)
    _, pieces = await ada.read(file.id, first=MIB - 1, last=2 * MIB)
    assert b"".join(pieces) == content[MIB - 1 : 2 * MIB + 1]


async def test_a_range_behind_the_end_is_refused(file_store: RunningFileStore) -> None:
    ada = file_store.client()
    file = await ada.create(b"0123456789")
    with pytest.raises(GatewayError) as raised:
        await ada.read(file.id, first=10)
    assert reason_of(raised) == "range_not_satisfiable"


async def test_a_deleted_file_is_gone(file_store: RunningFileStore) -> None:
    ada = file_store.client()
    kept, gone = await ada.create(b"kept"), await ada.create(b"gone")
    await ada.delete(gone.id)
    for call in (ada.get, ada.read, ada.delete):
        with pytest.raises(GatewayError) as raised:
            await call(gone.id)
        assert reason_of(raised) == "not_found"
    assert await file_store.keys() == [kept.id]
    assert await file_store.repository.usage("user_ada") == FileTotals(1, 4)


async def test_a_read_that_has_begun_outlives_the_file(file_store: RunningFileStore) -> None:
    ada = file_store.client()
    content = os.urandom(4 * MIB)
    file = await ada.create(content)
    async with file_store.blobs.reading(file.id, 0, len(content)) as pieces:
        read = await anext(pieces)
        await ada.delete(file.id)
        async for piece in pieces:
            read += piece
    assert read == content


async def test_all_ids_of_files_that_cannot_be_read_look_alike(
    file_store: RunningFileStore,
) -> None:
    ada, bob = file_store.client("ada"), file_store.client("bob")
    adas = await ada.create(b"a")
    expired = await bob.create(b"b", expires_after_s=1)
    deleted = await bob.create(b"c")
    await bob.delete(deleted.id)
    file_store.clock.now_s += 1
    strange = ["", "file-", adas.id + "\0", adas.id.lower(), "../" + adas.id, "x" * 10_000]
    for file_id in (adas.id, expired.id, deleted.id, "file-" + "0" * 26, *strange):
        for call in (bob.get, bob.read, bob.delete):
            with pytest.raises(GatewayError) as raised:
                await call(file_id)
            assert (reason_of(raised), raised.value.param) == ("not_found", "file_id")
            if file_id not in strange:
                assert raised.value.message == f"file_id: no such file {file_id!r}"
    assert await ada.get(adas.id) == adas


async def test_a_team_shares_its_files_and_its_account(file_store: RunningFileStore) -> None:
    ada, bob = file_store.client("ada", "math"), file_store.client("bob", "math")
    file = await ada.create(b"theorem")
    assert await bob.get(file.id) == file
    assert await bob.ids() == [file.id]
    assert await file_store.repository.usage("team_math") == FileTotals(1, 7)
    await bob.delete(file.id)
    assert await ada.ids() == []


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([], "header"),
        ([CreateFileRequest(chunk=b"x")], "header"),
        ([CreateFileRequest(header=FileHeader(filename="a"))] * 2, "chunk"),
        ([CreateFileRequest(header=FileHeader(filename="a"))], "file"),
        (
            [
                CreateFileRequest(header=FileHeader(filename="a")),
                CreateFileRequest(chunk=b"x" * 3),
                CreateFileRequest(chunk=b""),
            ],
            "chunk",
        ),
        (
            [
                CreateFileRequest(header=FileHeader(filename="a")),
                CreateFileRequest(chunk=b"x" * (MIB + 1)),
            ],
            "chunk",
        ),
        (
            [
                CreateFileRequest(header=FileHeader(filename="a")),
                CreateFileRequest(trailer=FileTrailer()),
            ],
            "purpose",
        ),
        ([CreateFileRequest(header=FileHeader(filename="../"))], "file"),
    ],
)
async def test_an_upload_out_of_order_is_refused_and_leaves_nothing(
    file_store: RunningFileStore, messages: list[CreateFileRequest], named: str
) -> None:
    ada = file_store.client()
    with pytest.raises(GatewayError) as raised:
        await ada.send(messages)
    assert (reason_of(raised), raised.value.param) == ("invalid_request", named)
    assert named in raised.value.message
    assert await file_store.keys() == []
    assert await file_store.repository.usage("user_ada") == FileTotals(0, 0)


@pytest.mark.parametrize("seconds", [0, 31_536_001])
async def test_a_lifetime_out_of_range_is_refused_and_leaves_nothing(
    file_store: RunningFileStore, seconds: int
) -> None:
    with pytest.raises(GatewayError) as raised:
        await file_store.client().create(b"x" * 3 * MIB, expires_after_s=seconds)
    assert "31536000" in raised.value.message
    assert await file_store.keys() == []


@pytest.mark.parametrize("seconds", [1, 31_536_000])
async def test_a_file_lives_as_long_as_asked(file_store: RunningFileStore, seconds: int) -> None:
    ada = file_store.client()
    file = await ada.create(b"x", expires_after_s=seconds)
    file_store.clock.now_s += seconds - 1
    assert await ada.get(file.id) == file
    file_store.clock.now_s += 1
    assert await ada.ids() == []
    with pytest.raises(GatewayError):
        await ada.get(file.id)


async def test_purposes_are_kept(file_store: RunningFileStore) -> None:
    ada = file_store.client()
    for purpose in files_pb2.Purpose.values()[1:]:
        assert (await ada.create(b"", purpose=purpose)).purpose == purpose

"""Uploads over HTTP: what is kept, what is refused, and that a bad client leaves nothing."""

import asyncio
import gzip
import io
from collections.abc import AsyncIterator
from urllib.parse import quote

import aiohttp
import orjson
import pytest
import pytest_asyncio

from gateway.errors.v1 import errors_pb2
from gateway.files.v1 import files_pb2
from services.common.errors import GatewayError
from tests.facade.file_store import ANTHROPIC, CREATED_AT, KEY, A, B, file_facade

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILES = "/beta/v1/files"
MAX_FILE = 3 << 20
IDLE_S = 0.3
BOUNDARY = "gateway-test"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
PURPOSE = b'Content-Disposition: form-data; name="purpose"\r\n\r\nbatch'
FILE = b'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\ncontent'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_facade():
    async with file_facade({"max_file_bytes": MAX_FILE, "body_idle_s": IDLE_S}) as facade:
        yield facade


@pytest.fixture
def facade(shared_facade):
    shared_facade.store.clear()
    return shared_facade


def form(content=b"content", filename="a.txt", **fields):
    data = aiohttp.FormData()
    data.add_field("file", io.BytesIO(content), filename=filename)
    for name, value in fields.items():
        data.add_field(name, value)
    return data


def write(*parts):
    edge = f"--{BOUNDARY}".encode()
    return b"".join(edge + b"\r\n" + part + b"\r\n" for part in parts) + edge + b"--\r\n"


async def upload(facade, data, headers=A):
    answer, body = await facade.ask("POST", FILES, data=data, headers=headers)
    return answer, orjson.loads(body)


async def post(facade, body, headers=A, content_type=FORM):
    return await upload(facade, body, {**headers, **content_type})


def request_head(length=None):
    lines = [f"POST {FILES} HTTP/1.1", "Host: gateway"]
    lines += [f"{name}: {value}" for name, value in {**A, **FORM}.items()]
    lines.append("Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


async def exchange(facade, sent, length):
    """Send a request by hand; give all that comes back until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", facade.port)
    writer.write(request_head(length) + sent)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_an_upload_is_kept_in_both_formats(facade):
    answer, body = await upload(facade, form(purpose="batch"))
    assert answer.status == 200
    assert (body["object"], body["bytes"], body["purpose"]) == ("file", 7, "batch")
    answer, body = await upload(facade, form(purpose="fine-tune"), B)
    assert answer.status == 200
    assert (body["type"], body["size_bytes"]) == ("file", 7)
    answer, body = await upload(facade, form(expires_in_seconds="60"), ANTHROPIC)
    assert answer.status == 200
    assert body["expires_at"] == "2026-09-21T14:14:20Z"
    assert [content for _, content in facade.store.kept.values()] == [b"content"] * 3
    assert [closing.purpose for closing in facade.store.closings] == [
        files_pb2.PURPOSE_BATCH,
        files_pb2.PURPOSE_FINE_TUNE,
        files_pb2.PURPOSE_ASSISTANTS,
    ]


@pytest.mark.parametrize("size", [0, 1, (1 << 18) + 1, MAX_FILE])
async def test_the_bytes_are_kept_as_they_came(facade, size):
    content = bytes(range(251)) * (size // 251 + 1)
    answer, body = await upload(facade, form(content[:size], purpose="batch"))
    assert (answer.status, body["bytes"]) == (200, size)
    ((_, kept),) = facade.store.kept.values()
    assert kept == content[:size]
    assert all(chunk >= 1 << 18 for chunk in facade.store.chunks[:-1])


async def test_the_purpose_may_stand_on_either_side(facade):
    for parts in ((PURPOSE, FILE), (FILE, PURPOSE)):
        answer, _ = await post(facade, write(*parts))
        assert answer.status == 200


async def test_an_expiry_reaches_the_store(facade):
    _, body = await upload(
        facade, form(purpose="batch", expires_after='{"anchor":"created_at","seconds":60}')
    )
    assert body["expires_at"] == CREATED_AT + 60


async def chunked(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_a_body_of_unknown_length_is_read_as_it_comes(facade):
    body = write(PURPOSE, FILE)
    pieces = [body[index : index + 1] for index in range(len(body))]
    answer, _ = await post(facade, chunked(*pieces))
    assert answer.status == 200


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("size", [MAX_FILE + 1, 3 * MAX_FILE])
async def test_a_file_that_is_too_large_is_413_and_kept_nowhere(facade, size, streamed):
    body = write(PURPOSE, FILE.replace(b"content", bytes(size)))
    for headers, kind in ((A, "invalid_request_error"), (B, "request_too_large")):
        answer, answer_body = await post(
            facade, chunked(body) if streamed else io.BytesIO(body), headers
        )
        assert answer.status == 413
        assert (answer_body["error"]["type"], answer_body["error"]["param"]) == (kind, "file")
    assert not facade.store.kept


async def test_a_body_that_announces_too_much_is_refused_unread(facade):
    reader, writer = await asyncio.open_connection("127.0.0.1", facade.port)
    writer.write(request_head(length=1 << 40))
    async with asyncio.timeout(IDLE_S):
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    writer.close()


BAD = {
    "no parts": (b"--gateway-test--", "file"),
    "nothing": (b"", "body"),
    "no boundary in it": (b"content", "body"),
    "truncated": (write(PURPOSE, FILE)[:-20], "file"),
    "without its last boundary": (write(PURPOSE, FILE).replace(b"test--", b"test"), "body"),
    "two files": (write(PURPOSE, FILE, FILE), "file"),
    "another file": (write(PURPOSE, FILE, FILE.replace(b'"file"', b'"mask"')), "mask"),
    "file as text": (write(PURPOSE, FILE.replace(b'; filename="a.txt"', b"")), "file"),
    "no file": (write(PURPOSE), "file"),
    "no purpose": (write(FILE), "purpose"),
    "wrong purpose": (write(FILE, PURPOSE.replace(b"batch", b"other")), "purpose"),
    "two purposes": (write(PURPOSE, FILE, PURPOSE), "purpose"),
    "10,000 parts": (write(*[FILE.replace(b"file", b"x", 1)] * 1, *[PURPOSE] * 10_000), None),
    "10,000 unknown parts": (write(FILE, *[PURPOSE.replace(b"purpose", b"x")] * 10_000), None),
    "long header": (write(b"X: " + b"x" * 100_000 + b"\r\n" + FILE), "body"),
    "many headers": (write(b"X: 1\r\n" * 100_000 + FILE), "body"),
    "long text": (write(FILE, PURPOSE + b"x" * 100_000), "purpose"),
    "long preamble": (b"x" * 100_000 + write(PURPOSE, FILE), "body"),
    "long epilogue": (write(PURPOSE, FILE) + b"x" * 100_000, "body"),
    "base64": (write(b"Content-Transfer-Encoding: base64\r\n" + FILE), "file"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_form_is_refused_and_nothing_is_stored(facade, name):
    body, param = BAD[name]
    for headers in (A, B):
        answer, answer_body = await post(facade, body, headers)
        assert answer.status == 400
        assert ("type" in answer_body) is (headers is B)
        if param is not None:
            assert answer_body["error"]["param"] == param
            assert answer_body["error"]["message"].startswith(f"{param}: ")
    assert not facade.store.kept


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/mixed; boundary=x", 415),
        ("text/plain", 415),
        ("multipart/form-data", 400),
        (f"multipart/form-data; boundary={'x' * 100}", 400),
    ],
)
async def test_another_content_type_is_refused_by_name(facade, content_type, status):
    body = write(PURPOSE, FILE)
    answer, answer_body = await post(facade, body, content_type={"Content-Type": content_type})
    assert (answer.status, answer_body["error"]["param"]) == (status, "Content-Type")


def as_browsers(filename):
    escaped = filename.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    return f'filename="{escaped}"'


def as_rfc_8187(filename):
    return f"filename*=UTF-8''{quote(filename, '')}"


@pytest.mark.parametrize(
    "filename",
    ["../../etc/passwd", "a\0b", "a\r\nX: 1", "x" * 1000, "\u202egnp.exe", "π", "", 'a"b', "C:\\a"],
)
@pytest.mark.parametrize("spell", [as_browsers, as_rfc_8187])
async def test_a_name_reaches_the_store_as_it_was_written(facade, filename, spell):
    part = FILE.replace(b'filename="a.txt"', spell(filename).encode())
    answer, _ = await post(facade, write(PURPOSE, part))
    assert answer.status == 200
    assert facade.store.headers[-1].filename == filename


async def test_the_store_refuses_during_the_upload(facade):
    facade.store.refuse_after = 1 << 18
    refusals = [
        (errors_pb2.REASON_STORAGE_QUOTA_EXCEEDED, 403, "permission_error", "permission_error"),
        (errors_pb2.REASON_STORAGE_UNAVAILABLE, 503, "server_error", "overloaded_error"),
    ]
    for reason, status, kind_a, kind_b in refusals:
        facade.store.refusal = GatewayError(reason, "no", retry_after_s=3)
        for headers, kind in ((A, kind_a), (B, kind_b)):
            answer, body = await upload(facade, form(bytes(MAX_FILE), purpose="batch"), headers)
            assert (answer.status, body["error"]["type"]) == (status, kind)
            assert answer.headers["Retry-After"] == "3"
    assert not facade.store.kept


async def test_a_store_that_dies_midway_is_reported_as_unavailable():
    async with file_facade({}) as facade:

        async def body():
            yield write(PURPOSE, FILE).partition(b"content")[0]
            await facade.store.begun.acquire()
            await facade.server.stop(0)
            yield bytes(MAX_FILE)

        answer, answer_body = await post(facade, body())
        assert (answer.status, answer_body["error"]["code"]) == (503, "unavailable")


async def test_the_facade_refuses_during_the_upload(facade):
    headers = {"Authorization": f"Bearer {KEY[:-1]}x"}
    for data in (form(bytes(MAX_FILE), purpose="batch"), form(bytes(8 * MAX_FILE))):
        answer, body = await upload(facade, data, headers)
        assert (answer.status, body["error"]["type"]) == (401, "authentication_error")
    assert not facade.store.headers


@pytest.mark.parametrize("sent", [0, 60, 190])
async def test_a_client_that_stalls_is_cut_and_leaves_nothing(facade, sent):
    body = write(PURPOSE, FILE.replace(b"content", b"c" * 1000))
    async with asyncio.timeout(5):
        answer = await exchange(facade, body[:sent], length=len(body))
        if sent == 190:
            await facade.store.dropped.acquire()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"upload_stalled"' in answer
    assert not facade.store.kept


async def test_a_form_that_ends_before_its_body_is_not_stored(facade):
    body = write(PURPOSE, FILE)
    async with asyncio.timeout(5):
        answer = await exchange(facade, body, length=len(body) + 10)
        await facade.store.dropped.acquire()
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_client_that_leaves_in_the_middle_leaves_nothing(facade):
    body = write(PURPOSE, FILE.replace(b"content", bytes(1 << 20)))
    _, writer = await asyncio.open_connection("127.0.0.1", facade.port)
    writer.write(request_head(len(body)) + body[: 1 << 19])
    async with asyncio.timeout(5):
        await facade.store.begun.acquire()
        writer.close()
        await facade.store.dropped.acquire()
    assert not facade.store.kept


async def test_a_body_whose_framing_breaks_is_kept_nowhere(facade):
    body = write(PURPOSE, FILE)
    reader, writer = await asyncio.open_connection("127.0.0.1", facade.port)
    async with asyncio.timeout(5):
        writer.write(request_head() + b"%x\r\n%b\r\n" % (len(body), body))
        await facade.store.begun.acquire()
        writer.write(b"not a length\r\n")
        answer = await reader.read()
        await facade.store.dropped.acquire()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 4")
    assert not facade.store.kept


async def test_a_compressed_body_is_refused(facade):
    body = gzip.compress(write(PURPOSE, FILE))
    answer, answer_body = await post(facade, io.BytesIO(body), {**A, "Content-Encoding": "gzip"})
    assert (answer.status, answer_body["error"]["param"]) == (415, "Content-Encoding")
    assert not facade.store.kept


async def test_concurrent_uploads_stay_separate(facade):
    async def one(number):
        content = bytes([number]) * (1 << 19)
        answer, body = await upload(facade, form(content, f"{number}", purpose="batch"))
        assert answer.status == 200
        assert facade.store.kept[body["id"]][1] == content

    await asyncio.gather(*(one(number) for number in range(10)))
    assert len(facade.store.kept) == 10

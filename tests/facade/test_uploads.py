"""Uploads in parts over HTTP: OpenAI's, by its own client, and those of the tus protocol."""

import base64
import hashlib
import io
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import openai
import orjson
import pytest
import pytest_asyncio

from tests.gateway_in_process import Gateway, running_gateway
from tests.grid import Grid
from tests.manual_clock import ManualClock
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1 << 20
# More than the pieces in which content of tus is stored.
CONTENT = bytes(range(256)) * (5 * MIB // 256)
TUS = "/v1/uploads/tus"
OVERRIDE = "X-HTTP-Method-Override"
RESUMABLE = {"Tus-Resumable": "1.0.0"}


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    tmp_path_factory: pytest.TempPathFactory, clock: ManualClock
) -> AsyncIterator[Gateway]:
    limits = {"max_file_bytes": 6 * MIB}
    folder = tmp_path_factory.mktemp("gateway")
    async with running_gateway(folder, clock=clock, limits=limits) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway: Gateway) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0
    ) as opened:
        yield opened


async def used_bytes(gateway: Gateway) -> int:
    async with gateway.http.get(f"{gateway.url}/v1/storage", headers=gateway.bearer()) as answer:
        return int((await answer.json())["used_bytes"])


async def ask(
    gateway: Gateway, method: str, url: str, data: Any = None, **headers: str
) -> tuple[int, Mapping[str, str], bytes]:
    """Send a request of the tus protocol; return status, headers and body."""
    sent = {**gateway.bearer(), **RESUMABLE, **headers}
    async with gateway.http.request(method, url, data=data, headers=sent) as answer:
        return answer.status, answer.headers, await answer.read()


async def patch(
    gateway: Gateway, url: str, data: Any, offset: int, **headers: str
) -> tuple[int, Mapping[str, str], bytes]:
    sent = {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
    return await ask(gateway, "PATCH", url, data, **sent, **headers)


def metadata(**fields: str) -> str:
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in fields.items()}
    return ",".join(f"{key} {text}" for key, text in encoded.items())


def form(name: str, content: bytes) -> aiohttp.FormData:
    data = aiohttp.FormData(default_to_multipart=True)
    data.add_field(name, io.BytesIO(content), filename="part")
    return data


async def test_openais_client_uploads_in_parts(client: openai.AsyncOpenAI) -> None:
    made = await client.uploads.upload_file_chunked(
        file=CONTENT,
        filename="grüße.bin",
        bytes=len(CONTENT),
        mime_type="application/x-notes",
        purpose="batch",
        part_size=2 * MIB,
        md5=hashlib.md5(CONTENT).hexdigest(),
    )
    assert (made.status, made.bytes, made.purpose) == ("completed", len(CONTENT), "batch")
    assert made.file is not None
    assert await client.files.retrieve(made.file.id) == made.file
    assert (await client.files.content(made.file.id)).content == CONTENT
    await client.files.delete(made.file.id)


async def test_the_caller_names_the_order_of_parts(
    gateway: Gateway, client: openai.AsyncOpenAI, clock: ManualClock
) -> None:
    before = await used_bytes(gateway)
    expiry: Any = {"anchor": "created_at", "seconds": 7200}
    begun = await client.uploads.create(
        bytes=6, filename="a.txt", mime_type="text/plain", purpose="vision", expires_after=expiry
    )
    assert (begun.object, begun.status, begun.file) == ("upload", "pending", None)
    assert begun.expires_at == begun.created_at + 3600
    parts = [
        await client.uploads.parts.create(begun.id, data=one) for one in (b"def", b"x", b"abc")
    ]
    assert {(one.object, one.upload_id) for one in parts} == {("upload.part", begun.id)}
    assert await used_bytes(gateway) == before + 7
    with Grid() as grid:
        for part_ids, md5, param in (
            ([parts[1].id], openai.omit, "part_ids"),
            ([parts[0].id, parts[0].id], openai.omit, "part_ids[1]"),
            ([parts[0].id, "part_none"], openai.omit, "part_ids[1]"),
            ([parts[2].id, parts[0].id], "0" * 32, "md5"),
        ):
            with grid.row(param), pytest.raises(openai.BadRequestError) as refused:
                await client.uploads.complete(begun.id, part_ids=part_ids, md5=md5)
            with grid.row((param, "named")):
                assert (refused.value.param, refused.value.code) == (param, "invalid_request")
    clock.now_s += 5
    order = [parts[2].id, parts[0].id]
    made = await client.uploads.complete(begun.id, part_ids=order)
    assert await client.uploads.complete(begun.id, part_ids=order) == made
    file = made.file
    assert file is not None and file.expires_at == file.created_at + 7200
    assert file.created_at == begun.created_at + 5
    assert (await client.files.content(file.id)).content == b"abcdef"
    assert await used_bytes(gateway) == before + 6
    for refusal in (
        client.uploads.complete(begun.id, part_ids=order[:1]),
        client.uploads.parts.create(begun.id, data=b"x"),
        client.uploads.cancel(begun.id),
    ):
        with pytest.raises(openai.BadRequestError):
            await refusal


async def test_a_cancelled_or_expired_upload_frees_its_bytes(
    gateway: Gateway, client: openai.AsyncOpenAI, clock: ManualClock
) -> None:
    before = await used_bytes(gateway)
    begun = await client.uploads.create(
        bytes=10, filename="a", mime_type="text/plain", purpose="assistants"
    )
    await client.uploads.parts.create(begun.id, data=b"0123456789")
    assert await used_bytes(gateway) == before + 10
    assert (await client.uploads.cancel(begun.id)).status == "cancelled"
    assert await used_bytes(gateway) == before
    with pytest.raises(openai.BadRequestError, match="this upload is cancelled"):
        await client.uploads.parts.create(begun.id, data=b"x")
    clock.now_s += 3600
    with pytest.raises(openai.NotFoundError, match="it may have expired"):
        await client.uploads.parts.create(begun.id, data=b"x")


async def test_bad_requests_name_the_field(gateway: Gateway, client: openai.AsyncOpenAI) -> None:
    good = {"bytes": 3, "filename": "a", "mime_type": "text/plain", "purpose": "batch"}
    begun = await client.uploads.create(**good)  # type: ignore[arg-type]  # as a row is
    parts = f"/beta/v1/uploads/{begun.id}/parts"
    with Grid() as grid:
        for path, body, status, param in (
            ("/beta/v1/uploads", {**good, "bytes": 7 * MIB}, 413, "bytes"),
            ("/uploads", {**good, "bytes": -1}, 400, "bytes"),
            ("/v1/uploads", {**good, "purpose": "fun"}, 400, "purpose"),
            ("/v1/uploads", {**good, "filename": "a\n"}, 400, "filename"),
            ("/v1/uploads", {**good, "expires_after": {"anchor": "now"}}, 400, "expires_after.an"),
            ("/v1/uploads", {"bytes": 3}, 400, "filename"),
            (f"/v1/uploads/{begun.id}/complete", {}, 400, "part_ids"),
            ("/v1/uploads/upload_1/complete", {"part_ids": []}, 404, "upload_id"),
            (parts, {"data": "x"}, 415, "Content-Type"),
            (parts, form("file", b"xyz"), 400, "data"),
            (parts, form("data", b"wxyz"), 400, "data"),
            (parts, form("data", bytes(7 * MIB)), 413, "data"),
            (parts, form("other", bytes(9000)), 400, "other"),
        ):
            with grid.row((path, param)):
                is_form = isinstance(body, aiohttp.FormData)
                sent: Any = {"data": body} if is_form else {"json": body}
                async with gateway.http.post(
                    gateway.url + path, headers=gateway.bearer(), **sent
                ) as answer:
                    error = (await answer.json())["error"]
                    assert (answer.status, error["param"][: len(param)]) == (status, param), error
                    assert error["message"].startswith(error["param"])


async def test_content_of_tus_continues_where_it_ended(gateway: Gateway) -> None:
    sent = metadata(filename="notes.bin", filetype="application/x-notes", purpose="batch", own="1")
    status, headers, _ = await ask(
        gateway,
        "POST",
        gateway.url + TUS,
        **{"Upload-Length": str(len(CONTENT)), "Upload-Metadata": sent},
    )
    assert (status, headers["Upload-Offset"]) == (201, "0")
    url = headers["Location"]
    assert url.startswith(f"{gateway.url}{TUS}/upload_")

    async def cut_off() -> AsyncIterator[bytes]:
        yield CONTENT[: 4 * MIB + 5]
        await until(received, within_s=60)
        raise ConnectionResetError

    async def received() -> bool:
        return (await ask(gateway, "HEAD", url))[1]["Upload-Offset"] == str(4 * MIB)

    with pytest.raises(aiohttp.ClientError):
        await patch(gateway, url, cut_off(), 0)
    status, headers, _ = await ask(gateway, "HEAD", url)
    assert (status, headers["Upload-Offset"], headers["Upload-Length"]) == (
        200,
        str(4 * MIB),
        str(len(CONTENT)),
    )
    assert (headers["Upload-Metadata"], headers["Cache-Control"]) == (sent, "no-store")
    rest = CONTENT[4 * MIB :]
    wrong = "sha1 " + base64.b64encode(bytes(20)).decode()
    right = "sha1 " + base64.b64encode(hashlib.sha1(rest).digest()).decode()
    status, _, body = await patch(gateway, url, rest, 4 * MIB, **{"Upload-Checksum": wrong})
    assert (status, orjson.loads(body)["error"]["code"]) == (460, "checksum_mismatch")
    status, _, body = await patch(gateway, url, rest, 0)
    error = orjson.loads(body)["error"]
    assert (status, error["param"]) == (409, "Upload-Offset"), error
    status, headers, _ = await patch(gateway, url, rest, 4 * MIB, **{"Upload-Checksum": right})
    assert (status, headers["Upload-Offset"]) == (204, str(len(CONTENT)))
    file_id = headers["x-gateway-file-id"]
    _, headers, _ = await ask(gateway, "HEAD", url)
    assert headers["x-gateway-file-id"] == file_id
    _, _, content = await ask(gateway, "GET", f"{gateway.url}/v1/files/{file_id}/content")
    assert content == CONTENT
    _, _, body = await ask(gateway, "GET", f"{gateway.url}/v1/files/{file_id}")
    file = orjson.loads(body)
    assert (file["filename"], file["purpose"]) == ("notes.bin", "batch")


async def test_the_size_of_an_upload_of_tus_may_come_last(gateway: Gateway) -> None:
    deferred = {"Upload-Defer-Length": "1"}
    _, headers, _ = await ask(gateway, "POST", gateway.url + TUS, **deferred)
    url = headers["Location"]
    assert (await patch(gateway, url, b"abc", 0))[0] == 204
    _, headers, _ = await ask(gateway, "HEAD", url)
    assert (headers["Upload-Offset"], headers["Upload-Defer-Length"]) == ("3", "1")
    assert "Upload-Length" not in headers
    for length, status in (("2", 400), (str(7 * MIB), 413), ("some", 400)):
        assert (await patch(gateway, url, b"d", 3, **{"Upload-Length": length}))[0] == status
    assert (await patch(gateway, url, b"d", 3, **{"Upload-Length": "5"}))[0] == 204
    assert (await patch(gateway, url, b"e", 4, **{"Upload-Length": "6"}))[0] == 400
    _, headers, _ = await ask(gateway, "HEAD", url)
    assert (headers["Upload-Offset"], headers["Upload-Length"]) == ("4", "5")
    status, headers, _ = await patch(gateway, url, b"e", 4)
    file = f"{gateway.url}/v1/files/{headers['x-gateway-file-id']}/content"
    assert (status, (await ask(gateway, "GET", file))[2]) == (204, b"abcde")


async def test_a_finished_upload_of_tus_is_deleted(gateway: Gateway) -> None:
    content = {"Content-Type": "application/offset+octet-stream"}
    _, headers, _ = await ask(gateway, "POST", gateway.url + TUS, **{"Upload-Length": "3"})
    url = headers["Location"]
    sent = {**content, "Upload-Offset": "0", OVERRIDE: "PATCH"}
    status, headers, _ = await ask(gateway, "POST", url, b"abc", **sent)
    assert (status, headers["Upload-Offset"]) == (204, "3")
    file = f"{gateway.url}/v1/files/{headers['x-gateway-file-id']}"
    status, _, _ = await ask(gateway, "POST", url, **{OVERRIDE: "DELETE"})
    assert (status, (await ask(gateway, "GET", file))[0]) == (204, 404)
    assert (await ask(gateway, "HEAD", url))[0] == 410
    assert (await ask(gateway, "DELETE", url))[0] == 204


async def test_tus_has_its_own_statuses(gateway: Gateway) -> None:
    length, content = {"Upload-Length": "3"}, {"Content-Type": "application/offset+octet-stream"}
    url = gateway.url + TUS
    status, headers, _ = await ask(gateway, "OPTIONS", url)
    assert (status, headers["Tus-Version"], headers["Tus-Max-Size"]) == (204, "1.0.0", str(6 * MIB))
    status, headers, _ = await ask(gateway, "POST", url, b"abc", **length, **content)
    assert (status, headers["Upload-Offset"]) == (201, "3") and headers["x-gateway-file-id"]
    status, headers, _ = await ask(gateway, "POST", url, **{"Upload-Length": "0"})
    assert (status, headers["Upload-Offset"]) == (201, "0") and headers["x-gateway-file-id"]
    _, headers, _ = await ask(gateway, "POST", url, **length)
    upload = headers["Location"]
    with Grid() as grid:
        for method, address, sent, expected in (
            ("POST", url, {**length, "Tus-Resumable": "0.2"}, 412),
            ("POST", url, {}, 400),
            ("POST", url, {"Upload-Length": str(7 * MIB)}, 413),
            ("POST", url, {"Upload-Length": str(1 << 40)}, 413),
            ("POST", url, {**length, "Upload-Metadata": "filename ?"}, 400),
            ("POST", url, {**length, "Upload-Metadata": metadata(purpose="fun")}, 400),
            ("POST", url, {**length, "Upload-Concat": "partial"}, 400),
            ("POST", url, {**length, "Upload-Defer-Length": "1"}, 400),
            ("POST", url, {"Upload-Defer-Length": "2"}, 400),
            ("PATCH", upload, {"Upload-Offset": "0"}, 415),
            ("PATCH", upload, content, 400),
            (
                "PATCH",
                upload,
                {**content, "Upload-Offset": "0", "Upload-Checksum": "crc32 AA"},
                400,
            ),
            ("HEAD", f"{url}/upload_1", {}, 404),
            ("POST", upload, {}, 400),
            ("POST", upload, {OVERRIDE: "GET"}, 400),
            ("POST", upload, {OVERRIDE: "HEAD"}, 200),
            ("DELETE", upload, {}, 204),
            ("HEAD", upload, {}, 410),
            ("PATCH", upload, {**content, "Upload-Offset": "0"}, 410),
        ):
            with grid.row((method, address, sent)):
                status, headers, body = await ask(gateway, method, address, **sent)
                assert (status, headers["Tus-Resumable"]) == (expected, "1.0.0"), body
    async with gateway.http.head(upload, headers=RESUMABLE) as answer:
        assert answer.status == 401

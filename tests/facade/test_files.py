"""Files over HTTP, in both formats: describing, listing, deleting, downloading."""

import asyncio
import hashlib

import aiohttp
import orjson
import pytest
import pytest_asyncio

from gateway.errors.v1 import errors_pb2
from gateway.files.v1 import files_pb2
from services.common.errors import GatewayError
from tests.facade.file_store import ANTHROPIC, CREATED_AT, A, B, file_facade

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILES = "/beta/v1/files"
CONTENT = bytes(range(256)) * 1000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_facade():
    async with file_facade({}) as facade:
        yield facade


@pytest.fixture
def facade(shared_facade):
    shared_facade.store.clear()
    return shared_facade


def ids(body):
    return [file["id"] for file in orjson.loads(body)["data"]]


def error(body):
    return orjson.loads(body)["error"]


async def test_a_file_in_format_a(facade):
    file = facade.store.add(b"content", purpose=files_pb2.PURPOSE_FINE_TUNE)
    answer, body = await facade.ask("GET", f"{FILES}/{file.id}")
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert orjson.loads(body) == {
        "object": "file",
        "id": file.id,
        "bytes": 7,
        "created_at": CREATED_AT,
        "expires_at": CREATED_AT + 60,
        "filename": "a.txt",
        "purpose": "fine-tune",
        "status": "processed",
    }


@pytest.mark.parametrize("headers", [B, ANTHROPIC])
async def test_a_file_in_format_b(facade, headers):
    file = facade.store.add(b"content")
    _, body = await facade.ask("GET", f"{FILES}/{file.id}", headers=headers)
    assert orjson.loads(body) == {
        "id": file.id,
        "type": "file",
        "filename": "a.txt",
        "created_at": "2026-09-21T14:13:20Z",
        "mime_type": "text/plain",
        "size_bytes": 7,
        "downloadable": True,
        "expires_at": "2026-09-21T14:14:20Z",
    }


async def test_a_deleted_file_in_both_formats(facade):
    one, two = facade.store.add(b""), facade.store.add(b"")
    _, body = await facade.ask("DELETE", f"{FILES}/{one.id}")
    assert orjson.loads(body) == {"object": "file", "id": one.id, "deleted": True}
    typed = {**B, "Content-Type": "application/json"}
    _, body = await facade.ask("DELETE", f"{FILES}/{two.id}", headers=typed)
    assert orjson.loads(body) == {"id": two.id, "type": "file_deleted"}
    assert not facade.store.kept


@pytest.mark.parametrize(
    "file_id", ["file-none", "..%2Fa", "%00", "%ff", "a%0d%0ab", "x" * 5000, "%E2%80%AE", "%25"]
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("DELETE", ""), ("GET", "/content"), ("HEAD", "/content")]
)
async def test_an_id_that_names_nothing_is_not_found(facade, method, path, file_id):
    url = f"{FILES}/{file_id}{path}"
    answer, body = await facade.ask(method, url)
    assert answer.status == 404
    if method != "HEAD":
        assert error(body)["type"] == "invalid_request_error"
        assert error(body)["code"] == "not_found"
        _, body = await facade.ask(method, url, headers=B)
        assert error(body)["type"] == "not_found_error"


class TestLists:
    async def test_an_empty_list_has_no_first_and_last(self, facade):
        empty = {"data": [], "first_id": None, "last_id": None, "has_more": False}
        for headers, more in ((A, {"object": "list"}), (B, {}), (ANTHROPIC, {"next_page": None})):
            _, body = await facade.ask("GET", FILES, headers=headers)
            assert orjson.loads(body) == {**empty, **more}

    async def test_a_page_names_its_first_and_last(self, facade):
        names = [facade.store.add(b"").id for _ in range(5)]
        for headers in (A, B):
            _, body = await facade.ask("GET", f"{FILES}?limit=2", headers=headers)
            page = orjson.loads(body)
            assert ids(body) == [names[4], names[3]]
            assert (page["first_id"], page["last_id"]) == (names[4], names[3])
            assert page["has_more"] is True
            assert "next_page" not in page

    async def test_format_a_pages_in_either_order(self, facade):
        names = [facade.store.add(b"").id for _ in range(5)]
        _, body = await facade.ask("GET", f"{FILES}?order=asc&after={names[1]}&limit=2")
        assert ids(body) == names[2:4]
        _, body = await facade.ask("GET", f"{FILES}?order=desc&after={names[1]}")
        assert ids(body) == [names[0]]
        assert orjson.loads(body)["has_more"] is False

    async def test_format_a_lists_one_purpose(self, facade):
        facade.store.add(b"")
        batch = facade.store.add(b"", purpose=files_pb2.PURPOSE_BATCH)
        _, body = await facade.ask("GET", f"{FILES}?purpose=batch")
        assert ids(body) == [batch.id]

    async def test_format_b_pages_before_and_after(self, facade):
        names = [facade.store.add(b"").id for _ in range(6)][::-1]
        _, body = await facade.ask("GET", f"{FILES}?limit=2&after_id={names[1]}", headers=B)
        assert ids(body) == names[2:4]
        _, body = await facade.ask("GET", f"{FILES}?limit=2&before_id={names[3]}", headers=B)
        assert ids(body) == names[1:3]
        assert orjson.loads(body)["has_more"] is True

    async def test_anthropics_clients_follow_next_page(self, facade):
        names = [facade.store.add(b"").id for _ in range(5)][::-1]
        found, query = [], {"limit": "2"}
        while True:
            _, body = await facade.ask("GET", FILES, params=query, headers=ANTHROPIC)
            found += ids(body)
            page = orjson.loads(body)["next_page"]
            if page is None:
                break
            query["page"] = page
        assert found == names

    @pytest.mark.parametrize(("headers", "limit"), [(A, 10_000), (B, 20), (ANTHROPIC, 20)])
    async def test_each_format_has_its_default_limit(self, facade, headers, limit):
        await facade.ask("GET", FILES, headers=headers)
        assert facade.store.lists[-1] == files_pb2.ListFilesRequest(limit=limit)

    @pytest.mark.parametrize(("headers", "largest"), [(A, 10_000), (B, 1000)])
    async def test_each_format_has_its_largest_limit(self, facade, headers, largest):
        answer, _ = await facade.ask("GET", f"{FILES}?limit={largest}", headers=headers)
        assert answer.status == 200
        for wrong in (largest + 1, 0, -1, "", "x", "1.5", "9" * 5000):
            answer, body = await facade.ask("GET", f"{FILES}?limit={wrong}", headers=headers)
            assert (answer.status, error(body)["param"]) == (400, "limit")

    @pytest.mark.parametrize(
        ("headers", "query"),
        [
            (A, "before_id=x&after_id=y&page=z"),
            (B, "after=x&order=sideways&purpose=none&page=z"),
        ],
    )
    async def test_parameters_of_the_other_format_are_ignored(self, facade, headers, query):
        answer, _ = await facade.ask("GET", f"{FILES}?{query}", headers=headers)
        assert answer.status == 200
        plain = facade.store.lists[-1]
        assert not (plain.after_id or plain.before_id or plain.purpose or plain.ascending)

    @pytest.mark.parametrize(
        ("headers", "query", "param"),
        [
            (A, "order=up", "order"),
            (A, "purpose=other", "purpose"),
            (A, "after=file-none", "after"),
            (A, "after=", "after"),
            (A, "after=%ff", "after"),
            (A, "after=%00", "after"),
            (B, "after_id=file-none", "after_id"),
            (B, "before_id=file-none", "before_id"),
            (B, "before_id=", "before_id"),
            (B, "before_id=a&after_id=b", "before_id"),
            (ANTHROPIC, "page=page_none", "page"),
            (ANTHROPIC, "page=file-none", "page"),
            (ANTHROPIC, "page=page_", "page"),
            (ANTHROPIC, "page=page_%ff", "page"),
            (ANTHROPIC, "page=page_a&after_id=b", "page"),
        ],
    )
    async def test_a_wrong_parameter_is_refused_by_its_name(self, facade, headers, query, param):
        answer, body = await facade.ask("GET", f"{FILES}?{query}", headers=headers)
        assert (answer.status, error(body)["param"]) == (400, param)
        assert error(body)["message"].startswith(f"{param}: ")

    @pytest.mark.parametrize("page", ["", "%ff", "page_", "page_%ff"])
    async def test_a_wrong_page_is_told_where_pages_come_from(self, facade, page):
        answer, body = await facade.ask("GET", f"{FILES}?page={page}", headers=ANTHROPIC)
        assert answer.status == 400
        assert "next_page of a previous page" in error(body)["message"]


class TestDownloads:
    @pytest.mark.parametrize("size", [0, 1, len(CONTENT)])
    async def test_the_bytes_come_back_as_they_went_in(self, facade, size):
        file = facade.store.add(CONTENT[:size])
        headers = {**A, "Accept": "application/binary"}
        answer, body = await facade.ask("GET", f"{FILES}/{file.id}/content", headers=headers)
        assert answer.status == 200
        assert body == CONTENT[:size]
        assert answer.headers["Content-Length"] == str(size)
        assert answer.headers["Content-Type"] == "text/plain"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="a.txt"'
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Accept-Ranges"] == "bytes"
        assert answer.headers["ETag"] == f'"{hashlib.sha256(CONTENT[:size]).hexdigest()}"'
        assert answer.headers["x-request-id"]

    @pytest.mark.parametrize(
        "filename", ['a"b', "a\r\nSet-Cookie: x=1", "a\\b", "π\u202e.exe", "a;b", "x" * 255]
    )
    async def test_no_name_breaks_a_header(self, facade, filename):
        file = facade.store.add(b"1", filename=filename)
        answer, body = await facade.ask("GET", f"{FILES}/{file.id}/content")
        assert (answer.status, body) == (200, b"1")
        assert "Set-Cookie" not in answer.headers
        assert answer.headers["Content-Disposition"].startswith('attachment; filename="')

    @pytest.mark.parametrize(
        ("wanted", "first", "last"),
        [
            ("bytes=0-0", 0, 0),
            ("bytes=5-9", 5, 9),
            ("bytes=99-", 99, 99),
            ("bytes=90-500", 90, 99),
            ("bytes=-10", 90, 99),
            ("bytes=-500", 0, 99),
        ],
    )
    async def test_a_range_is_answered_with_its_part(self, facade, wanted, first, last):
        file = facade.store.add(CONTENT[:100])
        headers = {**A, "Range": wanted}
        answer, body = await facade.ask("GET", f"{FILES}/{file.id}/content", headers=headers)
        assert answer.status == 206
        assert body == CONTENT[first : last + 1]
        assert answer.headers["Content-Range"] == f"bytes {first}-{last}/100"
        assert answer.headers["Content-Length"] == str(last - first + 1)

    @pytest.mark.parametrize(
        ("wanted", "size"), [("bytes=0-1,4-5", 100), ("items=0-1", 100), ("bytes=-5", 0)]
    )
    async def test_what_is_no_single_range_gets_the_whole_file(self, facade, wanted, size):
        file = facade.store.add(CONTENT[:size])
        headers = {**A, "Range": wanted}
        answer, body = await facade.ask("GET", f"{FILES}/{file.id}/content", headers=headers)
        assert (answer.status, body) == (200, CONTENT[:size])
        assert "Content-Range" not in answer.headers

    @pytest.mark.parametrize("wanted", ["bytes=100-", "bytes=100-200", "bytes=-0"])
    async def test_a_range_behind_the_end_is_not_satisfiable(self, facade, wanted):
        file = facade.store.add(CONTENT[:100])
        for headers in (A, B):
            answer, body = await facade.ask(
                "GET", f"{FILES}/{file.id}/content", headers={**headers, "Range": wanted}
            )
            assert answer.status == 416
            assert answer.headers["Content-Range"] == "bytes */100"
            assert error(body)["code"] == "range_not_satisfiable"
            assert error(body)["type"] == "invalid_request_error"

    async def test_a_range_for_another_version_gets_the_whole_file(self, facade):
        file = facade.store.add(CONTENT[:100])
        for tag, status in ((f'"{file.sha256}"', 206), ('"other"', 200)):
            headers = {**A, "Range": "bytes=0-9", "If-Range": tag}
            answer, body = await facade.ask("GET", f"{FILES}/{file.id}/content", headers=headers)
            assert (answer.status, len(body)) == (status, 10 if status == 206 else 100)

    async def test_a_file_the_caller_has_is_not_sent_again(self, facade):
        file = facade.store.add(b"content")
        for tag, status in ((f'W/"{file.sha256}"', 304), ('"other"', 200)):
            headers = {**A, "If-None-Match": tag, "Range": "bytes=0-0"}
            if status == 200:
                del headers["Range"]
            answer, body = await facade.ask("GET", f"{FILES}/{file.id}/content", headers=headers)
            assert answer.status == status
            assert answer.headers["ETag"] == f'"{file.sha256}"'
            assert body == (b"" if status == 304 else b"content")

    async def test_head_has_the_headers_of_get(self, facade):
        file = facade.store.add(CONTENT)
        answer, body = await facade.ask("HEAD", f"{FILES}/{file.id}/content")
        assert (answer.status, body) == (200, b"")
        assert answer.headers["Content-Length"] == str(len(CONTENT))
        assert answer.headers["ETag"] == f'"{file.sha256}"'
        assert not facade.store.reads

    async def test_a_download_that_breaks_off_is_never_taken_for_whole(self, facade):
        file = facade.store.add(CONTENT)
        facade.store.break_after = 1 << 17
        url = f"{facade.url}{FILES}/{file.id}/content"
        async with asyncio.timeout(20), facade.http.get(url, headers=A) as answer:
            assert answer.status == 200
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.read()

    async def test_a_store_that_is_away_is_reported_before_any_byte(self, facade):
        file = facade.store.add(CONTENT)
        facade.store.fail = GatewayError(
            errors_pb2.REASON_STORAGE_UNAVAILABLE, "away", retry_after_s=7
        )
        for headers, kind in ((A, "server_error"), (B, "overloaded_error")):
            answer, body = await facade.ask("GET", f"{FILES}/{file.id}/content", headers=headers)
            assert (answer.status, answer.headers["Retry-After"]) == (503, "7")
            assert (error(body)["code"], error(body)["type"]) == ("storage_unavailable", kind)


@pytest.mark.parametrize(("headers", "kind"), [(A, "object"), (B, "type"), (ANTHROPIC, "type")])
async def test_storage_is_told_in_both_formats(facade, headers, kind):
    facade.store.add(b"content")
    answer, body = await facade.ask("GET", "/beta/v1/storage", headers=headers)
    assert answer.status == 200
    expected = {kind: "storage", "files": 1, "used_bytes": 7, "quota_bytes": 1_000}
    assert orjson.loads(body) == expected

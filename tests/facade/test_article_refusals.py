"""Document editing over HTTP: refused requests, their codes and their envelope."""

import asyncio
import gzip
import io
import itertools
import json

import grpc
import orjson
import pytest
import pytest_asyncio

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from tests.facade.article_service import HEADERS, JSON, KEY, PREFIX, article_facade
from tests.grid import Grid

pytestmark = pytest.mark.asyncio(loop_scope="module")

S = {"sessionId": "s"}
B = {**S, "blockId": "b"}
GOOD = {
    "session/create": {"docId": "17"},
    "session/destroy": S,
    "doc/create": {},
    "doc/delete": {"docId": "17"},
    "doc/read": S,
    "doc/read-block": B,
    "doc/read-blocks": {**S, "blockIds": ["b"]},
    "doc/changes": S,
    "block/insert": {**S, "path": [0], "blocks": [{"type": "h1"}]},
    "block/delete": B,
    "block/text/replace": {**B, "children": "x"},
    "block/text/append": {**B, "text": "x"},
    "block/cite": {**B, "cite": "r"},
    "reference/add": {**S, "reference": {}},
    "reference/update": {**S, "reference": {"id": "r"}},
    "reference/delete": {**S, "referenceId": "r"},
    "block/style": {**B, "indent": True},
    "style/leaf": {**B, "bold": True},
    "style/article": {**S, "style": {}},
}
EDITS = [path for path in GOOD if path.startswith(("block/", "reference/", "style/"))]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_facade():
    async with article_facade() as facade:
        yield facade


@pytest.fixture
def facade(shared_facade):
    shared_facade.service.clear()
    return shared_facade


# What the service can tell is missing, it tells itself.
OPTIONAL = {
    ("block/text/replace", "children"),
    ("block/cite", "blockId"),
    ("block/cite", "cite"),
    ("block/style", "indent"),
    ("style/leaf", "blockId"),
    ("style/leaf", "bold"),
}
NEEDED = [(path, name) for path, body in GOOD.items() for name in body]
NEEDED = [row for row in NEEDED if row not in OPTIONAL]


async def test_a_required_field_that_is_missing(facade):
    with Grid() as grid:
        for path, name in NEEDED:
            body = {key: value for key, value in GOOD[path].items() if key != name}
            with grid.row(path, name):
                code, message = await facade.refused(path, body)
                assert code == 40004
                assert name in message


TEXTS = [
    (path, name)
    for path, body in GOOD.items()
    for name in ("docId", "sessionId", "blockId", "referenceId")
    if name in body
]


async def test_a_string_field_of_another_type(facade):
    rows = itertools.product([*TEXTS, ("doc/create", "name")], [1, 0, True, 1.5, [], ["s"], {}])
    with Grid() as grid:
        for (path, name), value in rows:
            with grid.row(path, name, value):
                refusal = await facade.refused(path, {**GOOD[path], name: value})
                assert refusal == (40003, f"/{name}: must be a string")


async def test_null_is_no_session(facade):
    with Grid() as grid:
        for path, name in TEXTS:
            if name == "sessionId":
                with grid.row(path):
                    refusal = await facade.refused(path, {**GOOD[path], name: None})
                    assert refusal == (40003, "/sessionId: must be a string")


async def test_an_invalid_revision(facade):
    values = ["1", -1, 1.0, True, [], {}, 2**63, 10**30]
    with Grid() as grid:
        for path, value in itertools.product(EDITS, values):
            # `json` writes numbers that `orjson` does not.
            body = json.dumps({**GOOD[path], "ifRevision": value}).encode()
            with grid.row(path, value):
                answer, answer_body = await facade.ask("POST", PREFIX + path, data=body)
                code, message = facade.told(answer.status, answer_body)
                assert code == 40003
                assert message.startswith("/ifRevision: must be ")


@pytest.mark.parametrize("value", ["0", 1.0, True, [], {}, 2**63, -(2**63) - 1])
async def test_an_invalid_group(facade, value):
    code, message = await facade.refused("doc/create", {"group": value})
    assert code == 40003
    assert message.startswith("/group: must be ")


BAD_PATHS = [
    [],
    [-1],
    [0, -1],
    [True],
    [0.0],
    [1.5],
    ["0"],
    [None],
    [[0]],
    [{}],
    "0",
    0,
    {},
    {"0": 0},
    False,
]


@pytest.mark.parametrize(
    ("path", "name", "others"),
    [
        ("block/insert", "path", {"blocks": []}),
        ("block/cite", "leafPath", {"cite": "r"}),
        ("style/leaf", "leafPath", {"bold": True}),
    ],
)
async def test_an_invalid_path(facade, path, name, others):
    with Grid() as grid:
        for value in BAD_PATHS:
            with grid.row(value):
                code, message = await facade.refused(path, {**S, **others, name: value})
                assert code == 40002
                assert message.startswith(f"/{name}")


async def test_an_insert_at_a_null_path(facade):
    code, _ = await facade.refused("block/insert", {**GOOD["block/insert"], "path": None})
    assert code == 40002


@pytest.mark.parametrize("path", ["block/cite", "style/leaf"])
async def test_an_empty_path_is_invalid_even_beside_a_block_id(facade, path):
    code, _ = await facade.refused(path, {**GOOD[path], "leafPath": []})
    assert code == 40002


class TestSessions:
    @pytest.mark.parametrize("path", ["doc/read-block", *EDITS])
    async def test_a_refused_request_keeps_its_session_alive(self, facade, path):
        body = {**GOOD[path], "sessionId": "mine", "blockId": 1, "ifRevision": -1}
        await facade.refused(path, body)
        assert facade.service.kept == ["mine"]

    @pytest.mark.parametrize("session_id", [None, 1, ["s"], {}])
    async def test_a_request_without_a_session_keeps_none_alive(self, facade, session_id):
        await facade.refused("block/delete", {"sessionId": session_id, "blockId": 1})
        await facade.refused("block/delete", {"blockId": 1})
        await facade.refused("session/create", {"docId": 1})
        assert not facade.service.kept

    @pytest.mark.parametrize(
        ("reason", "status", "code"),
        [
            (errors_pb2.REASON_NOT_FOUND, 404, 40401),
            (errors_pb2.REASON_GONE, 410, 41001),
            (errors_pb2.REASON_GONE, 410, 41002),
        ],
    )
    async def test_an_ended_session_is_reported_first(self, facade, reason, status, code):
        facade.service.session_failure = GatewayError(reason, "/sessionId: no", article_code=code)
        assert await facade.refused("block/delete", {**S, "blockId": 1}) == (code, "/sessionId: no")

    async def test_an_unavailable_service_is_reported_first(self, facade):
        facade.service.session_failure = GatewayError(errors_pb2.REASON_UNAVAILABLE, "not now")
        assert await facade.refused("block/delete", {**S, "blockId": 1}) == (50301, "not now")


@pytest.mark.parametrize("name", ["unknown", "blockId", "a/b~c", "x" * 100_000])
async def test_an_unknown_field_of_style_article(facade, name):
    code, message = await facade.refused("style/article", {**S, "style": {}, name: 1})
    assert code == 40003
    assert message.startswith("/" + name.replace("~", "~0").replace("/", "~1")[:100])
    assert len(message) < 300


@pytest.mark.parametrize("path", ["doc/list", "doc/read", "block/insert", "style/leaf"])
class TestBodies:
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b" ",
            b"{",
            b"[]",
            b"null",
            b'"x"',
            b"1",
            b'{"sessionId":"s",}',
            b"{'sessionId':'s'}",
            b"\xff\xfe",
            b'{"sessionId":"\xff"}',
            b"{}{}",
            b'{"a":NaN}',
            b'{"a":1e999}',
            b'{"a":Infinity}',
            b"\xef\xbb\xbf{}",
            b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        ],
    )
    async def test_a_body_that_is_not_a_json_object(self, facade, path, body):
        answer, answer_body = await facade.ask("POST", PREFIX + path, data=body)
        code, message = facade.told(answer.status, answer_body)
        assert (answer.status, code) == (400, 40001)
        assert message.startswith("the body: ")

    @pytest.mark.parametrize(
        "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
    )
    async def test_another_content_type(self, facade, path, content_type):
        headers = {**HEADERS, "Content-Type": content_type}
        answer, body = await facade.ask("POST", PREFIX + path, data=b"{}", headers=headers)
        code, message = facade.told(answer.status, body)
        assert (answer.status, code) == (400, 40001)
        assert "application/json" in message

    @pytest.mark.parametrize("size", [(2 << 20) + 1, 8 << 20])
    async def test_a_body_over_the_limit(self, facade, path, size):
        data = io.BytesIO(b" " * size)
        answer, body = await facade.ask("POST", PREFIX + path, data=data, headers=JSON)
        assert (answer.status, facade.told(answer.status, body)[0]) == (413, 41301)

    async def test_an_encoded_body(self, facade, path):
        headers = {**JSON, "Content-Encoding": "gzip"}
        data = gzip.compress(b"{}")
        answer, body = await facade.ask("POST", PREFIX + path, data=data, headers=headers)
        code, message = facade.told(answer.status, body)
        assert (answer.status, code) == (415, 41501)
        assert "Content-Encoding" in message


@pytest.mark.parametrize(
    ("written", "place"),
    [
        (rb'{"sessionId":"\ud800"}', "/sessionId"),
        (rb'{"sessionId":"s","blocks":[1,{"a/b":["x\udc00y"]}]}', "/blocks/1/a~1b/0"),
        (rb'{"\udfff":1}', ""),
        (rb'{"a":{"\udfff":1}}', "/a"),
    ],
)
async def test_a_lone_surrogate_is_refused_with_its_pointer(facade, written, place):
    answer, body = await facade.ask("POST", PREFIX + "doc/read", data=written)
    code, message = facade.told(answer.status, body)
    assert code == 40003
    assert message.startswith(f"{place or 'the body'}: ")


@pytest.mark.parametrize("written", [rb'{"a":"\ud800"', rb'{"a":"\ud800","b":NaN}'])
async def test_a_lone_surrogate_in_invalid_json_is_invalid_json(facade, written):
    answer, body = await facade.ask("POST", PREFIX + "doc/read", data=written)
    assert facade.told(answer.status, body)[0] == 40001


@pytest.mark.parametrize("depth", [300, 1000])
async def test_blocks_nested_too_deeply(facade, depth):
    deep = b'{"sessionId":"s","path":[0],"blocks":' + b"[" * depth + b"]" * depth + b"}"
    answer, body = await facade.ask("POST", PREFIX + "block/insert", data=deep)
    assert facade.told(answer.status, body) == (40003, "/blocks: is nested too deeply")


BOTH = {"x-api-key": KEY, "Authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize("path", ["doc/list", "block/insert"])
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 40101),
        ({"Authorization": f"Bearer {KEY}"}, 40101),
        ({"Authorization": "nonsense"}, 40101),
        ({"x-api-key": ""}, 40102),
        ({"x-api-key": "sk-other"}, 40102),
        ({"x-api-key": KEY[:-1] + "x"}, 40102),
        ({"x-api-key": f"Bearer {KEY}"}, 40102),
        (BOTH, 40001),
        ({**HEADERS, "compat-version": "2020-01-01"}, 40001),
    ],
)
async def test_a_missing_or_invalid_key(facade, path, headers, code):
    for data in (b"{}", b"not JSON", io.BytesIO(b" " * (3 << 20))):
        answer, body = await facade.ask("POST", PREFIX + path, data=data, headers=headers)
        found, message = facade.told(answer.status, body)
        assert (answer.status, found) == (code // 100, code)
        assert KEY[3:] not in message


@pytest.mark.parametrize("headers", [{}, HEADERS, {"Authorization": f"Bearer {KEY}"}])
@pytest.mark.parametrize("path", ["", "nothing", "doc/list/", "doc//list", "session", "../v1/x%00"])
async def test_an_unknown_url_path(facade, path, headers):
    answer, body = await facade.ask("POST", PREFIX + path, headers=headers)
    assert (answer.status, facade.told(answer.status, body)[0]) == (404, 40400)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_a_method_other_than_post(facade, method):
    answer, body = await facade.ask(method, PREFIX + "doc/list")
    code, message = facade.told(answer.status, body)
    assert (answer.status, code) == (405, 40501)
    assert "POST" in message


def failed(reason, **fields):
    return GatewayError(reason, "/path: is wrong", param="/path", **fields)


class Unforeseen(Exception):
    """An unexpected error."""


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (failed(errors_pb2.REASON_INVALID_REQUEST, article_code=40003), 400, 40003),
        (failed(errors_pb2.REASON_PERMISSION_DENIED, article_code=40302), 403, 40302),
        (failed(errors_pb2.REASON_NOT_FOUND, article_code=40405), 404, 40405),
        (failed(errors_pb2.REASON_CONFLICT, article_code=40902), 409, 40902),
        (failed(errors_pb2.REASON_GONE, article_code=41002), 410, 41002),
        (failed(errors_pb2.REASON_INVALID_REQUEST), 400, 40001),
        (failed(errors_pb2.REASON_INVALID_API_KEY), 401, 40102),
        (failed(errors_pb2.REASON_PERMISSION_DENIED), 403, 40301),
        (failed(errors_pb2.REASON_NOT_FOUND), 404, 40400),
        (failed(errors_pb2.REASON_CONFLICT), 409, 40901),
        (failed(errors_pb2.REASON_GONE), 410, 41001),
        (failed(errors_pb2.REASON_TOO_LARGE), 413, 41301),
        (failed(errors_pb2.REASON_RATE_LIMITED, retry_after_s=9), 429, 42901),
        (failed(errors_pb2.REASON_INTERNAL), 500, 50001),
        (Unforeseen("a secret"), 500, 50001),
        (failed(errors_pb2.REASON_NOT_IMPLEMENTED), 501, 50101),
        (failed(errors_pb2.REASON_UNAVAILABLE), 503, 50301),
        (failed(errors_pb2.REASON_TIMEOUT), 504, 50401),
    ],
)
async def test_an_error_of_the_service_keeps_its_code(facade, failure, status, code):
    facade.service.failure = failure
    answer, body = await facade.ask("POST", PREFIX + "block/delete", json=B)
    assert (answer.status, body["code"], body["data"]) == (status, code, {})
    assert "a secret" not in body["message"]
    assert (answer.headers.get("Retry-After", "").isdigit()) is (status in (429, 503))
    if isinstance(failure, GatewayError):
        assert body["message"] == "/path: is wrong"
    if code == 42901:
        assert answer.headers["Retry-After"] == "9"


async def test_an_unexpected_answer_is_an_internal_error(facade, caplog):
    # A permission that this facade has no word for.
    answer, body = await facade.ask("POST", PREFIX + "doc/create", json={})
    assert (answer.status, body["code"], body["data"]) == (500, 50001, {})


async def test_an_unreachable_service_is_unavailable():
    async with article_facade() as facade:
        await facade.ask("POST", PREFIX + "doc/list", json={})
        await facade.server.stop(0)
        answer, body = await facade.ask("POST", PREFIX + "doc/list", json={})
        assert (answer.status, body["code"]) == (503, 50301)
        assert answer.headers["Retry-After"].isdigit()


async def test_a_service_without_the_rpc(facade):
    facade.service.failure = grpc.aio.AioRpcError(
        grpc.StatusCode.UNIMPLEMENTED, grpc.aio.Metadata(), grpc.aio.Metadata(), "secret"
    )
    answer, body = await facade.ask("POST", PREFIX + "doc/list", json={})
    assert (answer.status, body["code"]) == (501, 50101)
    assert "secret" not in body["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("block/cite", {**S, "leafPath": [-1] * 500_000}),
        ("style/article", {**S, "style": {}, **dict.fromkeys(map(str, range(100_000)), 1)}),
    ],
)
async def test_a_hundred_thousand_errors_take_as_long_as_one(facade, path, body):
    data = io.BytesIO(orjson.dumps(body))
    async with asyncio.timeout(20):
        answer, answer_body = await facade.ask("POST", PREFIX + path, data=data)
    code, message = facade.told(answer.status, answer_body)
    assert code in (40002, 40003)
    assert len(message) < 200

"""Document editing over HTTP: calls of the service, and answers."""

import io
import threading

import orjson
import pytest
import pytest_asyncio

from facade.dialects import articles
from facade.routes.articles import ENDPOINTS, image
from gateway.articles.v1 import articles_pb2 as pb
from gateway.articles.v1 import edits_pb2
from tests.facade.article_calls import ROWS, STRICT, B, S
from tests.facade.article_service import JSON, PREFIX, RPCS, article_facade

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_facade():
    async with article_facade() as facade:
        yield facade


@pytest.fixture
def facade(shared_facade):
    shared_facade.service.clear()
    return shared_facade


@pytest.mark.parametrize(("path", "body", "call", "answer", "data"), ROWS)
async def test_requests_become_calls_and_responses_answers(facade, path, body, call, answer, data):
    facade.service.answer = answer
    assert await facade.post(path, body) == (200, {"code": 1, "data": data})
    assert facade.service.calls == [call]


@pytest.mark.parametrize(("blocks", "is_apart"), [(501, True), (500, False)])
async def test_a_long_document_is_rendered_in_a_thread(facade, monkeypatch, blocks, is_apart):
    threads = []

    def noting(data):
        threads.append(threading.get_ident())
        return render(data)

    render = articles.render
    monkeypatch.setattr(articles, "render", noting)
    summary = pb.BlockSummary(id="b", type="code", text="x")
    facade.service.answer = pb.ReadArticleResponse(
        blocks=[summary] * blocks, style=b"{}", references=b"[]"
    )
    status, _ = await facade.post("doc/read", S)
    assert (status, threads == [threading.get_ident()]) == (200, not is_apart)


async def test_every_endpoint_and_every_call_has_a_row():
    assert {f"/article/v1/{row[0]}" for row in ROWS} == {
        each.path for each in ENDPOINTS if each is not image.ENDPOINT
    }
    called = {type(row[2]).__name__.removesuffix("Request") for row in ROWS}
    # ReadImage answers with bytes: tests/facade/test_article_images.py.
    assert called == set(RPCS) - {"KeepSessionAlive", "ReadImage"}
    applied = [row[2].edit for row in ROWS if isinstance(row[2], pb.ApplyEditRequest)]
    edits = {edit.WhichOneof("kind") for edit in applied}
    assert edits == {field.name for field in edits_pb2.Edit.DESCRIPTOR.fields}
    assert len(ENDPOINTS) == 57


@pytest.mark.parametrize("row", [row for row in ROWS if row[0] not in STRICT])
async def test_unknown_fields_are_ignored(facade, row):
    path, body, call, answer, _ = row
    facade.service.answer = answer
    unknown = {"unknown": 1, "session_id": "x", "style ": {}, "__proto__": None, "": []}
    status, _ = await facade.post(path, {**unknown, **body})
    assert (status, facade.service.calls) == (200, [call])


HOSTILE = [
    "",
    "\0",
    "' OR 1=1 --",
    "../../etc/passwd",
    "\u202eevil\u202c",
    "\ufffe\uffff",
    "👩‍👩‍👧‍👦",
    "%s%n{}{0}",
    "<script>alert(1)</script>",
    "\r\nX-Injected: 1",
    "x" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_any_text_reaches_the_service_unharmed(facade, text):
    await facade.post("block/delete", {"sessionId": text, "blockId": text})
    await facade.post("reference/add", {**S, "reference": {"title": text, text: [text]}})
    await facade.post("block/style", {**B, text + "!": text})
    deleted, added, styled = facade.service.calls
    assert (deleted.session_id, deleted.edit.delete_block.block_id) == (text, text)
    assert orjson.loads(added.edit.add_reference.reference) == {"title": text, text: [text]}
    assert orjson.loads(styled.edit.set_block_style.properties) == {text + "!": text}


@pytest.mark.parametrize("text", HOSTILE)
async def test_any_text_reaches_the_caller_unharmed(facade, text):
    block = orjson.dumps({"id": text})
    facade.service.answer = pb.ReadBlockResponse(block=block, style=b"{}", text=text)
    _, body = await facade.post("doc/read-block", B)
    assert (body["data"]["text"], body["data"]["block"]) == (text, {"id": text})


async def test_numbers_in_styles_keep_their_kind(facade):
    given = {"a": 1, "b": 1.0, "c": 1e300, "d": -0.0, "e": 2**64 - 1}
    await facade.post("style/article", {**S, "style": given})
    assert repr(orjson.loads(facade.service.calls[0].edit.set_article_style.style)) == repr(given)


async def test_a_body_of_the_limit_passes_and_its_blocks_arrive(facade):
    frame = b'{"sessionId":"s","path":[0],"blocks":["%s"]}'
    body = frame % (b"x" * ((2 << 20) - len(frame) + 2))
    assert len(body) == 2 << 20
    answer, _ = await facade.ask(
        "POST", PREFIX + "block/insert", data=io.BytesIO(body), headers=JSON
    )
    assert answer.status == 200
    assert len(facade.service.calls[0].edit.insert_blocks.blocks) > (2 << 20) - 100


async def test_no_version_is_needed_and_a_charset_may_be_named(facade):
    headers = {"x-api-key": "gw-" + "k" * 43, "Content-Type": "application/json; charset=utf-8"}
    answer, _ = await facade.ask("POST", PREFIX + "doc/list", data=b"{}", headers=headers)
    assert answer.status == 200

"""Document editing against the real service: what is refused, with which number, and that it
changes nothing."""

import copy

import orjson
import pytest
import pytest_asyncio

from services.accounts.repository import AccountRepository
from services.common.clock import Clock
from services.common.settings import parse
from services.common.storage.database import open_engine
from tests.facade.article_editor import Editor
from tests.gateway_in_process import running_gateway
from tests.grid import each_row
from tests.manual_clock import ManualClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOWHERE = "nowhere"


BLOCKS = [
    {"type": "title", "children": [{"text": "Title"}]},
    {"type": "paragraph", "children": [{"text": "one "}, {"text": "two", "bold": True}]},
    {"type": "equation", "equation": "x"},
    {"type": "code", "code": "x"},
    {"type": "list", "children": [{"type": "list-item", "children": [{"text": "item"}]}]},
    {
        "type": "table",
        "children": [
            {
                "type": "table-row",
                "children": [{"type": "table-cell", "children": [{"text": "cell"}]}],
            }
        ],
    },
    {"type": "label", "children": [{"type": "label-item", "name": "n"}]},
    {"type": "image", "image": [{"url": "https://example.org/a.png"}]},
    {"type": "author", "author": [{"name": "Ada"}]},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editors(tmp_path_factory):
    """Return an editor with an open document, and a stranger with another."""
    folder = tmp_path_factory.mktemp("gateway")
    clock = ManualClock(1_790_000_000)
    async with running_gateway(folder, clock=Clock(now=clock.now)) as gateway:
        database = open_engine(parse({"storage": {"data_dir": str(folder)}}, "the test").storage)
        stranger = Editor(gateway, await AccountRepository(database).create_key("stranger"))
        await database.dispose()
        editor = Editor(gateway, gateway.key)
        editor.clock = clock
        for one in (editor, stranger):
            one.document = (await one.done("doc/create"))["article"]["outer_id"]
            one.session = (await one.done("session/create", docId=one.document))["sessionId"]
        ids = (await editor.done("block/insert", path=[0], blocks=BLOCKS))["ids"]
        editor.ids = {block["type"]: block_id for block, block_id in zip(BLOCKS, ids, strict=True)}
        await editor.done("reference/add", reference={"id": "r", "title": "t"})
        yield editor, stranger


H1 = {"type": "h1"}
TITLE, TEXT, TABLE = "<title>", "<paragraph>", "<table>"
CELL = {"text": "x"}

# path, the body but for its session, the code; <type> is the id of that block.
WRONG = [
    # Places in the tree.
    ("block/insert", {"path": [10], "blocks": [H1]}, 40002),
    ("block/insert", {"path": [2**40], "blocks": [H1]}, 40002),
    ("block/insert", {"path": [], "blocks": [H1]}, 40002),
    ("block/insert", {"path": [True], "blocks": [H1]}, 40002),
    ("block/insert", {"path": [0.0], "blocks": [H1]}, 40002),
    ("block/insert", {"path": [-1], "blocks": [H1]}, 40002),
    ("block/insert", {"path": "0", "blocks": [H1]}, 40002),
    ("block/insert", {"blocks": [H1]}, 40004),
    ("block/cite", {"leafPath": [0], "cite": "r"}, 40002),
    ("block/cite", {"leafPath": [4, 0], "cite": "r"}, 40002),
    ("block/cite", {"leafPath": [99, 0], "cite": "r"}, 40405),
    ("block/cite", {"leafPath": [2**40, 0], "cite": "r"}, 40405),
    ("block/cite", {"leafPath": [0, 7], "cite": "r"}, 40405),
    ("style/leaf", {"leafPath": [], "bold": True}, 40002),
    ("style/leaf", {"leafPath": [1, 9], "bold": True}, 40405),
    # Blocks.
    ("block/insert", {"path": [0]}, 40004),
    ("block/insert", {"path": [0], "blocks": []}, 40003),
    ("block/insert", {"path": [0], "blocks": H1}, 40003),
    ("block/insert", {"path": [0], "blocks": None}, 40003),
    ("block/insert", {"path": [0], "blocks": [H1] * 501}, 40003),
    ("block/insert", {"path": [0], "blocks": [H1, {"type": "h7"}]}, 40003),
    ("block/insert", {"path": [0], "blocks": [{"type": "h1", "unknown": 1}]}, 40003),
    ("block/insert", {"path": [0], "blocks": [{"text": "a leaf"}]}, 40003),
    ("block/insert", {"path": [0], "blocks": [{"type": "list-item"}]}, 40003),
    ("block/insert", {"path": [4, 0], "blocks": [H1]}, 40003),
    ("block/insert", {"path": [0], "blocks": [{"type": "code", "children": [CELL]}]}, 40003),
    ("block/insert", {"path": [0], "blocks": [{**H1, "children": [{"text": "\0"}]}]}, 40003),
    ("block/insert", {"path": [0], "blocks": [{**H1, "style": {"indent": True}}]}, 40003),
    ("block/delete", {}, 40004),
    ("block/delete", {"blockId": 7}, 40003),
    ("block/delete", {"blockId": NOWHERE}, 40403),
    ("block/delete", {"blockId": ""}, 40403),
    ("doc/read-block", {"blockId": NOWHERE}, 40403),
    ("doc/read-blocks", {}, 40004),
    ("doc/read-blocks", {"blockIds": []}, 40003),
    ("doc/read-blocks", {"blockIds": [7]}, 40003),
    ("doc/read-blocks", {"blockIds": [NOWHERE] * 501}, 40003),
    ("doc/changes", {"since": -1}, 40003),
    ("doc/changes", {"since": "1"}, 40003),
    # Text.
    ("block/text/replace", {"blockId": TITLE}, 40004),
    ("block/text/replace", {"blockId": TITLE, "text": "x"}, 40004),
    ("block/text/replace", {"blockId": TITLE, "equation": "x"}, 40003),
    ("block/text/replace", {"blockId": TITLE, "children": 7}, 40003),
    ("block/text/replace", {"blockId": "<code>", "children": "x"}, 40003),
    ("block/text/replace", {"blockId": NOWHERE, "children": "x"}, 40403),
    ("block/text/append", {"blockId": TITLE}, 40004),
    ("block/text/append", {"blockId": TITLE, "text": None}, 40003),
    ("block/text/append", {"blockId": TABLE, "text": "x"}, 40003),
    ("block/text/append", {"blockId": "<list>", "text": "x"}, 40003),
    ("block/text/append", {"blockId": NOWHERE, "text": "x"}, 40403),
    # Citations and references.
    ("block/cite", {"cite": "r"}, 40004),
    ("block/cite", {"blockId": TITLE, "leafPath": [0, 0], "cite": "r"}, 40004),
    ("block/cite", {"blockId": TITLE, "cite": NOWHERE}, 40404),
    ("block/cite", {"blockId": TITLE, "cite": ""}, 40404),
    ("block/cite", {"blockId": TITLE, "cite": 7}, 40003),
    ("block/cite", {"blockId": NOWHERE, "cite": "r"}, 40403),
    ("block/cite", {"blockId": "<code>", "cite": "r"}, 40003),
    ("reference/add", {}, 40004),
    ("reference/add", {"reference": []}, 40003),
    ("reference/add", {"reference": {"id": None}}, 40003),
    ("reference/add", {"reference": {"id": "r"}}, 40902),
    ("reference/add", {"reference": {"a b": "x"}}, 40003),
    ("reference/add", {"reference": {"author": "one"}}, 40003),
    ("reference/update", {"reference": {"title": "x"}}, 40004),
    ("reference/update", {"reference": {"id": None}}, 40003),
    ("reference/update", {"reference": {"id": NOWHERE, "title": "x"}}, 40404),
    ("reference/delete", {}, 40004),
    ("reference/delete", {"referenceId": NOWHERE}, 40404),
    # Styles.
    ("block/style", {"indent": True}, 40004),
    ("block/style", {"blockId": TITLE, "indent": True}, 40003),
    ("block/style", {"blockId": TEXT, "indent": "yes"}, 40003),
    ("block/style", {"blockId": TEXT, "unknown": None}, 40003),
    ("block/style", {"blockId": TEXT, "style": {"unknown": 1}}, 40003),
    ("block/style", {"blockId": TABLE, "textAlign": "left"}, 40003),
    ("block/style", {"blockId": NOWHERE, "isTemplate": True}, 40403),
    ("style/leaf", {"bold": True}, 40004),
    ("style/leaf", {"blockId": TEXT}, 40004),
    ("style/leaf", {"blockId": TEXT, "leafPath": [1, 0], "bold": True}, 40004),
    ("style/leaf", {"blockId": TEXT, "bold": 1}, 40003),
    ("style/leaf", {"blockId": TEXT, "bold": True, "unknown": 1}, 40003),
    ("style/leaf", {"blockId": TEXT, "textDecoration": "blink"}, 40003),
    ("style/leaf", {"blockId": TEXT, "color": "red;background:url(x)"}, 40003),
    ("style/leaf", {"blockId": NOWHERE, "bold": True}, 40403),
    ("style/article", {}, 40004),
    ("style/article", {"style": None}, 40003),
    ("style/article", {"style": {"unknown": {}}}, 40003),
    ("style/article", {"style": {"global": {"paperSize": "A6"}}}, 40003),
    ("style/article", {"style": {}, "unknown": 1}, 40003),
    # Revisions.
    ("block/cite", {"blockId": TITLE, "cite": [{"id": ""}, {"id": "x"}]}, 40404),
    ("block/cite", {"blockId": TITLE, "cite": ["x"]}, 40003),
    ("block/delete", {"blockId": TITLE, "ifRevision": 1}, 40901),
    ("block/delete", {"blockId": TITLE, "ifRevision": 2**63 - 1}, 40901),
    ("block/delete", {"blockId": TITLE, "ifRevision": -1}, 40003),
    ("reference/delete", {"referenceId": "r", "ifRevision": 0}, 40901),
]


def with_ids(body, ids):
    made = copy.deepcopy(body)
    block_id = made.get("blockId")
    if isinstance(block_id, str) and block_id.startswith("<"):
        made["blockId"] = ids[block_id[1:-1]]
    return made


@each_row(("path", "body", "code"), WRONG)
async def test_an_invalid_call_has_its_code_and_changes_nothing(editors, path, body, code):
    editor, _ = editors
    before = await editor.read()
    answer = await editor.call(path, {"sessionId": editor.session, **with_ids(body, editor.ids)})
    assert (answer["code"], answer["data"]) == (code, {})
    assert await editor.read() == before


SESSION_CALLS = {
    "doc/read": {},
    "doc/read-block": {"blockId": TITLE},
    "doc/read-blocks": {"blockIds": [TITLE]},
    "doc/changes": {},
    **{path: body for path, body, _ in WRONG},
    "session/destroy": {},
}


@each_row("path", SESSION_CALLS)
async def test_a_foreign_session_is_answered_as_an_unknown_one(editors, path):
    editor, stranger = editors
    for body in (SESSION_CALLS[path], {**SESSION_CALLS[path], "ifRevision": -1}):
        told = [
            await stranger.call(path, {**with_ids(body, editor.ids), "sessionId": session})
            for session in (editor.session, NOWHERE)
        ]
        assert told[0] == told[1]
        assert told[0]["code"] == 40401


async def test_a_foreign_document_is_answered_as_an_unknown_one(editors):
    editor, stranger = editors
    for path in ("session/create", "doc/delete"):
        told = [await stranger.call(path, {"docId": one}) for one in (editor.document, "17")]
        assert told[0] == told[1]
        assert told[0]["code"] == 40402


@pytest.mark.parametrize("text", ["\0", "' OR 1=1 --", "x" * 100_000, "🙂", "-1", "1e5", ""])
async def test_hostile_ids_name_nothing(editors, text):
    editor, _ = editors
    for path, body, code in (
        ("session/create", {"docId": text}, 40402),
        ("doc/delete", {"docId": text}, 40402),
        ("doc/read", {"sessionId": text}, 40401),
        ("session/destroy", {"sessionId": text}, 40401),
        ("block/delete", {"sessionId": editor.session, "blockId": text}, 40403),
        ("reference/delete", {"sessionId": editor.session, "referenceId": text}, 40404),
    ):
        answer = await editor.call(path, body)
        assert answer["code"] == code, path
        assert len(answer["message"]) < 1000


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"group": 1}, 40406),
        ({"group": -1}, 40406),
        ({"group": 2**62}, 40406),
        ({"group": "0"}, 40003),
        ({"name": "x" * 201}, 40003),
        ({"name": "a\0b"}, 40003),
        ({"name": 7}, 40003),
    ],
)
async def test_an_invalid_document_is_not_created(editors, body, code):
    editor, _ = editors
    assert (await editor.call("doc/create", body))["code"] == code


async def test_the_callers_documents_are_theirs_alone(editors):
    editor, stranger = editors
    for one, other in ((editor, stranger), (stranger, editor)):
        (group,) = (await one.done("doc/list"))["articles"]
        listed = [article["outer_id"] for article in group["articles"]]
        assert one.document in listed
        assert other.document not in listed


async def test_a_deleted_document_and_an_ended_session(editors):
    editor, _ = editors
    document = (await editor.done("doc/create", name="short"))["article"]["outer_id"]
    session = (await editor.done("session/create", docId=document))["sessionId"]
    again = await editor.done("session/create", docId=document)
    assert (again["sessionId"], again["reused"]) == (session, True)
    assert await editor.done("session/destroy", sessionId=session) == {"ok": True}
    assert (await editor.call("doc/read", {"sessionId": session}))["code"] == 40401
    new = (await editor.done("session/create", docId=document))["sessionId"]
    assert new != session
    assert await editor.done("doc/delete", docId=document) == {"article": document}
    for body in ({"sessionId": new}, {"sessionId": new, "blockId": 1}):
        assert (await editor.call("doc/read-block", {"blockId": "b", **body}))["code"] == 41002
    assert (await editor.call("doc/delete", {"docId": document}))["code"] == 40402


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("doc/read", {}, 1),
        ("block/delete", {"blockId": NOWHERE}, 40403),
        ("block/cite", {"cite": "r"}, 40004),
        ("block/cite", {"leafPath": [True]}, 40002),
        ("style/article", {"style": {}, "unknown": 1}, 40003),
    ],
)
async def test_every_call_that_names_a_session_keeps_it_alive(editors, path, body, code):
    editor, _ = editors
    document = (await editor.done("doc/create"))["article"]["outer_id"]
    session = {"sessionId": (await editor.done("session/create", docId=document))["sessionId"]}
    for _ in range(2):
        editor.clock.now_s += 599
        assert (await editor.call(path, {**session, **body}))["code"] == code
    editor.clock.now_s += 601
    assert (await editor.call(path, {**session, **body}))["code"] == 41001
    for one in editors:
        one.session = (await one.done("session/create", docId=one.document))["sessionId"]


async def test_revisions_count_edits_and_a_fresh_one_passes(editors):
    _, stranger = editors
    revision = (await stranger.read())["revision"]
    inserted = await stranger.done("block/insert", path=[0], blocks=[H1], ifRevision=revision)
    assert inserted["revision"] == revision + 1
    deleted = await stranger.done(
        "block/delete", blockId=inserted["ids"][0], ifRevision=revision + 1
    )
    assert deleted == {"ok": True, "revision": revision + 2}


async def test_numbers_of_a_style_are_returned_as_sent(editors):
    _, stranger = editors
    style = {"global": {"lineHeight": 1.5, "fontSize": 12, "fontWeight": "bold"}}
    await stranger.done("style/article", style=style)
    assert orjson.dumps((await stranger.read())["style"]) == orjson.dumps(style)

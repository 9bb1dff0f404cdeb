"""What editors and agents ask of documents beyond single edits of blocks."""

import asyncio
from functools import partial

import pytest
import pytest_asyncio

from tests.facade.article_editor import Editor
from tests.gateway_in_process import running_gateway
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


def text(words, kind="paragraph"):
    return {"type": kind, "children": [{"text": words}]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(tmp_path_factory):
    async with running_gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        yield Editor(gateway, gateway.key)


async def test_a_document_is_read_in_parts(editor):
    await editor.open_new()
    ids = await editor.insert(*(text(f"block {n}") for n in range(5)))
    whole = await editor.read()
    for part, positions in (
        ({"from": 3}, [3, 4]),
        ({"limit": 2}, [0, 1]),
        ({"from": 1, "limit": 2}, [1, 2]),
        ({"from": 4, "limit": 9}, [4]),
        ({"from": 5, "limit": 1}, []),
        ({"from": 2**32 - 1}, []),
        ({"blockIds": [ids[4], "nowhere", ids[0]]}, [4, 0]),
    ):
        read = await editor.done("doc/read", **part)
        blocks = [whole["blocks"][position] for position in positions]
        text_of_part = "\n\n".join(block["text"] for block in blocks)
        assert read == {**whole, "blocks": blocks, "text": text_of_part}, part


async def test_a_wrong_part_is_refused(editor):
    await editor.open_new()
    for part, code, pointer in (
        ({"from": -1}, 40003, "/from"),
        ({"limit": 0}, 40003, "/limit"),
        ({"blockIds": ["b"], "limit": 1}, 40004, "/blockIds"),
        ({"blockIds": ["b"] * 501}, 40003, "/blockIds"),
        ({"images": "some"}, 40003, "/images"),
    ):
        refused = await editor.refused("doc/read", **part)
        assert (refused[0], refused[1].startswith(f"{pointer}: ")) == (code, True), refused


async def test_pictures_in_the_document_are_named_or_left_out(editor):
    await editor.open_new()
    pictures = [
        {"url": "https://a.org/b.png"},
        {"url": "data:image/gif;base64,R0lGODlh", "alt": "B"},
    ]
    figure, _ = await editor.insert({"type": "image", "image": pictures}, text("below"))
    address = f"/article/v1/doc/image?blockId={figure}&index=1"
    shown = f"![](https://a.org/b.png)\n![B]({address})\n\nbelow"
    assert (await editor.read())["text"] == shown
    assert (await editor.done("doc/read", images="none"))["text"] == "below"


async def test_an_edit_that_changes_nothing_makes_no_revision(editor):
    await editor.open_new()
    (block,) = await editor.insert(text("same"))
    for path, body in (
        ("block/text/replace", {"children": "same"}),
        ("block/text/append", {"text": ""}),
        ("style/leaf", {"bold": None}),
        ("block/style", {"indent": None}),
        ("block/cite", {"cite": None}),
    ):
        assert await editor.done(path, blockId=block, **body) == {"ok": True, "revision": 1}
    assert (await editor.done("style/article", style={}))["revision"] == 1
    assert (await editor.done("block/text/append", blockId=block, text="!"))["revision"] == 2


async def test_only_a_change_of_the_block_conflicts(editor):
    await editor.open_new()
    mine, other = await editor.insert(text("mine"), text("other"))
    await editor.done("block/text/append", blockId=other, text="!")
    edited = await editor.done("block/text/append", blockId=mine, text="!", ifBlockRevision=1)
    assert edited["revision"] == 3
    for path, body in (
        ("block/text/append", {"blockId": mine, "text": "?"}),
        ("block/delete", {"blockId": mine}),
        ("style/leaf", {"anchorId": mine, "leafPath": [0], "bold": True}),
    ):
        code, message = await editor.refused(path, **body, ifBlockRevision=2)
        assert (code, message[:17]) == (40901, "/ifBlockRevision:")
    code, _ = await editor.refused("block/delete", blockId=mine, ifBlockRevision=99)
    assert code == 40901
    code, _ = await editor.refused("block/cite", leafPath=[0, 0], ifBlockRevision=3)
    assert code == 40004
    await editor.done("block/delete", blockId=mine, ifBlockRevision=3)
    code, _ = await editor.refused("block/delete", blockId=mine, ifBlockRevision=3)
    assert code == 40403


async def test_a_path_from_a_block_is_not_moved_by_others(editor):
    await editor.open_new()
    (block,) = await editor.insert(text("mine"))
    await editor.done("block/insert", path=[0], blocks=[text("another's")])
    await editor.done("style/leaf", anchorId=block, leafPath=[0], bold=True)
    assert (await editor.read())["text"] == "another's\n\n**mine**"
    for body, code in (
        ({"anchorId": "nowhere", "leafPath": [0]}, 40403),
        ({"anchorId": block, "leafPath": [1]}, 40405),
        ({"anchorId": block, "blockId": block}, 40004),
        ({"anchorId": block}, 40004),
    ):
        assert (await editor.refused("style/leaf", **body, bold=None))[0] == code, body


async def test_a_block_keeps_its_type(editor):
    await editor.open_new()
    (block,) = await editor.insert(text("mine"))
    body = {"blockId": block, "type": "h1", "children": "x"}
    code, message = await editor.refused("block/text/replace", **body)
    assert (code, message[:6]) == (40003, "/type:")


async def test_a_wrong_method_names_the_right_one(editor):
    async with editor.gateway.http.get(f"{editor.gateway.url}/article/v1/doc/read") as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_a_term_is_renamed_in_one_call(editor):
    await editor.open_new()
    ids = await editor.insert(*(text(f"the moon {n}") for n in range(63)), text("the sun"))
    renaming = {"edits": [{"old": "moon", "new": "Moon", "all": True}]}
    tried = await editor.done("block/text/edit", **renaming, dryRun=True)
    assert tried == {"changed": ids[:63], "revision": 1}
    assert await editor.done("block/text/edit", **renaming) == {**tried, "revision": 2}
    assert (await editor.read())["text"].count("Moon") == 63
    code, message = await editor.refused("block/text/edit", edits=[{"old": "Moon", "new": ""}])
    assert code == 40005 and "occurs 63 times" in message and ids[9] in message
    code, _ = await editor.refused("block/text/edit", edits=[])
    assert code == 40003


async def test_edits_are_applied_together_or_not_at_all(editor):
    await editor.open_new()
    moved, stays = await editor.insert(text("moved"), text("stays"))
    edits = [
        {"endpoint": "block/delete", "blockId": moved},
        {"endpoint": "block/insert", "path": [1], "blocks": [text("moved"), text("new")]},
        {"endpoint": "block/text/append", "blockId": "$1.1", "text": "!"},
        {"endpoint": "reference/add", "reference": {"id": "r"}},
        {"endpoint": "style/leaf", "anchorId": "$1.0", "leafPath": [0], "bold": True},
        {"endpoint": "block/cite", "blockId": stays, "cite": "r"},
        {"endpoint": "block/text/edit", "edits": [{"old": "new", "new": "newest"}]},
    ]
    applied = await editor.done("edits/apply", edits=edits)
    inserted = applied["results"][1]["ids"]
    done = {"ok": True}
    results = [done, {"ids": inserted}, done, {"id": "r"}, done, done, {"changed": [inserted[1]]}]
    assert applied == {"results": results, "revision": 2}
    read = await editor.read()
    assert [block["id"] for block in read["blocks"]] == [stays, *inserted]
    assert read["text"] == "stays[1]\n\n**moved**\n\nnewest!"
    edits = [
        {"endpoint": "block/insert", "path": [0], "blocks": [text("a"), text("b"), text("c")]},
        {"endpoint": "block/move", "blockId": "$0.2", "beforeId": "$0.0"},
        {"endpoint": "block/convert", "blockIds": ["$0.0", "$0.1"], "type": "list"},
    ]
    results = (await editor.done("edits/apply", edits=edits))["results"]
    assert (await editor.read())["text"].startswith("c\n\n- a\n- b\n"), results
    await editor.done("history/undo")
    for wrong, code, pointer in (
        (
            {"endpoint": "block/convert", "blockIds": [stays, "$0.0"], "type": "list"},
            40403,
            "/edits/1/blockIds/1: ",
        ),
        ({"endpoint": "block/delete", "blockId": "nowhere"}, 40403, "/edits/1/blockId: "),
        ({"endpoint": "block/delete", "blockId": "$0.1"}, 40403, "/edits/1/blockId: "),
        ({"endpoint": "block/delete", "blockId": "$1.0"}, 40403, "/edits/1/blockId: "),
        ({"endpoint": "block/delete"}, 40004, "/edits/1/blockId: "),
        ({"endpoint": "block/insert", "path": [0]}, 40004, "/edits/1/blocks: "),
        ({"endpoint": "block/text/append", "blockId": stays, "text": 1}, 40003, "/edits/1/text: "),
        ({"endpoint": "edits/apply", "edits": []}, 40003, "/edits/1/endpoint: "),
        ({"endpoint": "block/delete", "ifRevision": 1}, 40003, "/edits/1/ifRevision: "),
        ({}, 40003, "/edits/1/endpoint: "),
    ):
        body = {"edits": [{"endpoint": "block/delete", "blockId": stays}, wrong]}
        refused = await editor.refused("edits/apply", **body)
        assert (refused[0], refused[1].startswith(pointer)) == (code, True), (wrong, refused)
    search = {"endpoint": "block/text/edit", "edits": [{"old": "stays", "new": "stays"}]}
    for edits in ([], [search] * 11):
        assert (await editor.refused("edits/apply", edits=edits))[0] == 40003


async def test_headings_are_listed_with_the_words_below(editor):
    await editor.open_new()
    listing = {"type": "code", "code": "one two"}
    ids = await editor.insert(
        text("not below any"),
        text("A", "h1"),
        text("one two"),
        text("Long\n heading", "h2"),
        {"type": "list", "children": [text("one", "list-item"), text("two three", "list-item")]},
        listing,
    )
    outline = await editor.done("doc/outline")
    assert outline["headings"] == [
        {"id": ids[1], "path": [1], "type": "h1", "text": "A", "words": 2},
        {"id": ids[3], "path": [3], "type": "h2", "text": "Long heading", "words": 5},
    ]


async def test_a_text_is_found_in_all_blocks(editor):
    await editor.open_new()
    items = [text("a tide", "list-item"), text("b", "list-item")]
    first, listed, last = await editor.insert(
        text("x" * 100 + "Tide" + "y" * 100 + " tide"),
        {"type": "list", "children": items},
        {"type": "equation", "equation": "tide."},
    )
    item = (await editor.done("doc/read-block", blockId=listed))["block"]["children"][0]["id"]
    matches = await editor.done("doc/find", query="TIDE")
    shown = [(place["blockId"], place["offset"]) for place in matches["places"]]
    assert shown == [(first, 100), (first, 205), (item, 2), (last, 0)]
    assert matches["places"][0]["snippet"] == f"…{'x' * 30}Tide{'y' * 30}…"
    matches = await editor.done("doc/find", query="tide", limit=3)
    assert (len(matches["places"]), matches["hasMore"]) == (3, True)
    matches = await editor.done("doc/find", query=r"^B$|t.de\.$", regex=True)
    shown = [(place["blockId"], place["offset"]) for place in matches["places"]]
    assert [at for _, at in shown] == [0, 0] and shown[1][0] == last
    for expression in ("(a", r"(a)\1", "((a{99}){99}){99}"):
        refused = await editor.refused("doc/find", query=expression, regex=True)
        assert (refused[0], refused[1].startswith("/query: ")) == (40003, True)
    # No character has a meaning of its own.
    matches = await editor.done("doc/find", query=".")
    assert [place["blockId"] for place in matches["places"]] == [last]
    for wrong, pointer in (({"query": ""}, "/query"), ({"query": "a", "limit": 501}, "/limit")):
        refused = await editor.refused("doc/find", **wrong)
        assert (refused[0], refused[1].startswith(pointer)) == (40003, True)


async def test_a_call_waits_for_a_change_and_others_are_listed(editor):
    await editor.open_new()
    [first] = await editor.insert(text("a"))
    waiting = asyncio.create_task(editor.done("doc/changes", since=1, waitSeconds=30))
    assert await editor.done("doc/changes", since=1) == {"revision": 1}
    await editor.done("block/text/append", blockId=first, text="b")
    assert (await waiting)["changed"] == [first]
    code, message = await editor.refused("doc/changes", since=1, waitSeconds=31)
    assert (code, message.startswith("/waitSeconds: ")) == (40003, True)
    await editor.done("session/create", docId=editor.document, clientId="other")
    [this, other] = (await editor.done("session/list"))["sessions"]
    assert (this["this"], this["own"], this["name"]) == (True, True, "tester")
    assert (other["this"], other["own"], other["clientId"]) == (False, True, "other")


async def test_a_call_that_waits_is_answered_when_the_process_stops(tmp_path):
    async with running_gateway(tmp_path, limits={"drain_s": 3}) as gateway:
        editor = Editor(gateway, gateway.key)
        await editor.open_new()
        await editor.insert(text("a"))
        waiting = asyncio.create_task(editor.done("doc/changes", since=1, waitSeconds=30))
        requests = partial(gateway.counters.get_sample_value, "gateway_http_live_requests")
        await until(lambda: requests() == 1)
    # Otherwise it would be refused after `drain_s`.
    assert await waiting == {"revision": 1}


async def test_copies_in_one_request_are_bounded(editor):
    await editor.open_new()
    (heading, _) = await editor.insert(text("A", "h1"), {"type": "code", "code": "x" * 200_000})
    double = {"endpoint": "block/duplicate", "blockId": heading, "section": True, "path": [0]}
    code, message = await editor.refused("edits/apply", edits=[double] * 21)
    assert (code, "characters again" in message) == (40003, True)
    await editor.done("edits/apply", edits=[double] * 15)
    assert len((await editor.read())["blocks"]) == 32


async def test_an_edit_without_an_answer_is_sent_again(editor):
    await editor.open_new()
    body = {"path": [0], "blocks": [text("a")], "requestId": "0d1f"}
    answer = await editor.done("block/insert", **body)
    await editor.done("block/text/append", blockId=answer["ids"][0], text="!")
    assert await editor.done("block/insert", **body) == answer
    for _ in range(2):
        await editor.done("history/undo", requestId="undone")
    assert (await editor.read())["text"] == "a"
    for wrong, code in (({**body, "path": [1]}, 40905), ({**body, "requestId": ""}, 40003)):
        refused = await editor.refused("block/insert", **wrong)
        assert (refused[0], refused[1].startswith("/requestId: ")) == (code, True)
    inner = {"endpoint": "block/insert", **body}
    assert (await editor.refused("edits/apply", edits=[inner]))[0] == 40003


async def test_a_section_is_moved_and_a_table_changed_over_http(editor):
    await editor.open_new()
    blocks = [text("A", "h1"), text("a"), text("B", "h1"), text("b")]
    ids = await editor.insert(*blocks, {"type": "table", "children": []})
    await editor.done("block/move", blockId=ids[2], section=True, beforeId=ids[0])
    edits = [
        {"endpoint": "table/edit", "blockId": ids[4], "action": "insert-rows", "rows": 2},
        {"endpoint": "block/convert", "blockIds": [ids[1]], "type": "list"},
    ]
    results = (await editor.done("edits/apply", edits=edits))["results"]
    assert [len(result["ids"]) for result in results] == [2, 1]
    order = [block["id"] for block in (await editor.read())["blocks"]]
    assert order == [ids[2], ids[3], ids[4], ids[0], *results[1]["ids"]]
    for body, code, pointer in (
        ({"blockId": ids[0]}, 40004, "exactly one"),
        ({"blockId": ids[0], "path": []}, 40002, "/path: "),
        ({"blockId": ids[0], "beforeId": "nowhere"}, 40403, "/beforeId: "),
    ):
        refused = await editor.refused("block/move", **body)
        assert (refused[0], refused[1].startswith(pointer)) == (code, True), refused
    refused = await editor.refused("table/edit", blockId=ids[4], action="paint")
    assert (refused[0], refused[1].startswith("/action: ")) == (40003, True)


async def test_a_bibliography_is_imported_cited_and_exported(editor):
    await editor.open_new()
    (claim,) = await editor.insert(text("The moon pulls."))
    await editor.done("reference/add", reference={"id": "a:1", "title": "Mine"})
    entries = "".join(f"@book{{a:{number}, title = {{T{number}}}}}\n" for number in range(71))
    added = await editor.done("reference/import", format="bibtex", text=entries + "@book{b")
    assert added["ids"] == [f"a:{number}" for number in range(71) if number != 1]
    assert [skipped["place"] for skipped in added["skipped"]] == ["b", "a:1"]
    await editor.done("block/cite", blockId=claim, cite="a:70")
    read = await editor.read()
    assert (read["text"], len(read["reference"])) == ("The moon pulls.[1]", 71)
    exported = await editor.done("reference/export", format="biblatex", referenceIds=["a:70"])
    assert exported["text"] == "@book{a:70,\n  title = {T70},\n}\n"
    code, _ = await editor.refused("reference/export", format="ris", referenceIds=["nowhere"])
    assert code == 40404
    for wrong, pointer in (
        ({"format": "docx", "text": ""}, "/format"),
        ({"format": "csl-json", "text": "{"}, "/text"),
        ({"format": "bibtex", "text": "@a{" * 200}, "/text"),
    ):
        refused = await editor.refused("reference/import", **wrong)
        assert (refused[0], refused[1].startswith(f"{pointer}: ")) == (40003, True), refused
    many = "".join(f"@a{{m{number},}}" for number in range(1_930))
    assert (await editor.refused("reference/import", format="bibtex", text=many))[0] == 40003
    # As one edit, with others, and undone in one.
    importing = {"endpoint": "reference/import", "format": "bibtex", "text": "@a{z,}@a{z,}"}
    applied = await editor.done("edits/apply", edits=[importing])
    assert applied["results"] == [
        {"ids": ["z"], "skipped": [{"place": "z", "reason": "another entry has this id"}]}
    ]
    for expected in (71, 71, 1):
        await editor.done("history/undo")
        assert len((await editor.read())["reference"]) == expected


async def test_a_text_in_markdown_is_written_as_one_edit(editor):
    await editor.open_new()
    await editor.done("reference/add", reference={"id": "newton"})
    before = await editor.read()
    markdown = (
        "---\ntitle: On tides\nauthor: Ada\ndate: today\n---\n# Moon\n\nIt *pulls* [@newton, p. 3]"
        " and [@nobody].[^1]\n\n[^1]: Weakly.\n\n$$\nF = ma\n$$\n\n1. one\n2. two\n\n"
        "|a|b|\n|-|-|\n|$x$|`y`|\n\n***\n\n#### Deep"
    )
    written = await editor.done("doc/write", markdown=markdown, requestId="once")
    assert written == await editor.done("doc/write", markdown=markdown, requestId="once")
    assert (await editor.read())["text"] == (
        "# On tides\n\nAda\n\n# Moon\n\nIt *pulls* [1, p. 3] and \\[\\@nobody\\].^[Weakly.]\n\n"
        "$$\nF = ma\n$$\n\n1. one\n2. two\n\n"
        "| a | b |\n| --- | --- |\n| $x$ | `y` |\n\n#### Deep"
    )
    places = [one["place"] for one in written["lost"]]
    assert places == ["line 23", "@nobody"], written["lost"]
    refused = await editor.refused("doc/write", markdown="a", ifRevision=before["revision"])
    assert refused[0] == 40901
    await editor.done("history/undo")
    assert (await editor.read())["text"] == before["text"]
    wrapped = await editor.done("doc/write", markdown="a\nb\n\n- c\n\n<!-- -->\n\n- d")
    assert (len(wrapped["ids"]), wrapped["lost"]) == (3, [])
    assert (await editor.read())["text"] == "a b\n\n- c\n\n<!-- -->\n\n- d"


async def test_markdown_that_no_document_holds_is_refused(editor):
    await editor.open_new()
    for fields, code, pointer in (
        ({"markdown": "<!-- -->"}, 40003, "/markdown"),
        ({"markdown": "> " * 100 + "a"}, 40003, "/markdown"),
        ({"markdown": "[" * 20_001}, 40003, "/markdown"),
        ({"markdown": "a" * 400_001}, 40003, "/markdown"),
        ({"markdown": "[a]: http://" + "x" * 8_000 + "\n\n" + "[a] " * 100}, 40003, "/markdown"),
        ({"markdown": "---\na: [\n---\nb"}, 40003, "/markdown"),
        ({"markdown": "a", "position": 1}, 40002, "/position"),
    ):
        refused = await editor.refused("doc/write", **fields)
        assert (refused[0], refused[1].startswith(f"{pointer}: ")) == (code, True), refused
    assert (await editor.read())["text"] == ""

"""Every edit over gRPC, with its revision, its refusals and where they point."""

from typing import Any

import orjson
import pytest

from services.common.errors import GatewayError
from tests.services.articles.editor import Client, Editing, code_of, paragraph


async def block_of(ada: Client, session_id: str, block_id: str) -> Any:
    read = await ada.call("ReadBlock", session_id=session_id, block_id=block_id)
    return orjson.loads(read.block)


async def state(ada: Client, session_id: str) -> bytes:
    return (await ada.read(session_id)).SerializeToString(deterministic=True)


async def test_every_edit_adds_one_to_the_revision_and_shows(editing: Editing) -> None:
    ada = editing.client()
    session_id = await ada.begin()
    steps: list[tuple[str, dict[str, Any]]] = [
        ("ReplaceText", {"fields": {"children": "new"}}),
        ("AppendText", {"text": [{"text": " er", "bold": True}]}),
        ("SetLeafStyle", {"marks": {"italic": True}}),
        ("SetBlockStyle", {"properties": {"indent": True, "style": {"color": "red"}}}),
    ]
    inserted = await ada.insert(session_id, "first", "second")
    block_id = inserted.ids[0]
    for revision, (method, fields) in enumerate(steps, 2):
        done = await ada.call(method, session_id=session_id, block_id=block_id, **fields)
        assert done.revision == revision
    added = await ada.call("AddReference", session_id=session_id, reference={"title": "T"})
    assert added.revision == 6
    reference_id = added.reference_id
    for method, fields in (
        ("Cite", {"leaf_path": [0, 0], "reference_id": reference_id}),
        ("UpdateReference", {"reference": {"id": reference_id, "year": "1843", "title": None}}),
        ("SetArticleStyle", {"style": {"global": {"paperSize": "A4"}}}),
    ):
        await ada.call(method, session_id=session_id, **fields)
    read = await ada.read(session_id)
    assert read.revision == 9
    assert [block.text for block in read.blocks] == ["*new*[1] ***er***", "second"]
    assert read.text == "*new*[1] ***er***\n\nsecond"
    assert read.version == "1.0"
    assert orjson.loads(read.references) == [{"id": reference_id, "year": "1843"}]
    assert orjson.loads(read.style) == {"global": {"paperSize": "A4"}}
    assert [(block.id, block.type) for block in read.blocks] == [
        (one, "paragraph") for one in inserted.ids
    ]
    await ada.call("DeleteReference", session_id=session_id, reference_id=reference_id)
    done = await ada.call("DeleteBlock", session_id=session_id, block_id=inserted.ids[1])
    assert done.revision == 11
    assert await ada.texts(session_id) == ["*new* ***er***"]


async def test_a_block_is_read_raw_with_its_place_and_computed_style(editing: Editing) -> None:
    ada = editing.client()
    session_id = await ada.begin()
    await ada.insert(session_id, "before")
    bullets = {
        "type": "list",
        "children": [{"type": "list-item", "children": [{"text": "one"}]}],
        "style": {"orderType": "decimal"},
    }
    done = await ada.call("InsertBlocks", session_id=session_id, path=[1], blocks=[bullets])
    await ada.call("SetArticleStyle", session_id=session_id, style={"global": {"color": "red"}})
    read = await ada.call("ReadBlock", session_id=session_id, block_id=done.ids[0])
    block = orjson.loads(read.block)
    item = block["children"][0]
    assert (block["id"], item["type"]) == (done.ids[0], "list-item")
    assert list(read.path) == [1]
    assert orjson.loads(read.style) == {"orderType": "decimal", "style": {"color": "red"}}
    assert (read.text, read.revision) == ("1. one", 3)
    inner = await ada.call("ReadBlock", session_id=session_id, block_id=item["id"])
    assert list(inner.path) == [1, 0]


WRONG: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "no json": ("InsertBlocks", {"path": [0], "blocks": b"["}, 40001, "/blocks"),
    "fields no object": ("ReplaceText", {"block_id": "x", "fields": []}, 40001, ""),
    "marks no json": ("SetLeafStyle", {"block_id": "x", "marks": b""}, 40001, ""),
    "no path": ("InsertBlocks", {"blocks": [paragraph("a")]}, 40002, "/path"),
    "path too far": ("InsertBlocks", {"path": [3], "blocks": [paragraph("a")]}, 40002, "/path"),
    "no blocks": ("InsertBlocks", {"path": [0], "blocks": []}, 40003, "/blocks"),
    "a leaf": ("InsertBlocks", {"path": [0], "blocks": [{"text": "a"}]}, 40003, "/blocks/0/type"),
    "nothing to replace": ("ReplaceText", {"block_id": "x", "fields": {}}, 40004, ""),
    "no target": ("SetLeafStyle", {"marks": {"bold": True}}, 40004, ""),
    "two targets": ("Cite", {"block_id": "x", "leaf_path": [0, 0]}, 40004, ""),
    "an unknown property": (
        "SetArticleStyle",
        {"style": {"poem": {}}},
        40003,
        "/style/poem",
    ),
    "no such block": ("DeleteBlock", {"block_id": "x"}, 40403, "/blockId"),
    "no such block to read": ("ReadBlock", {"block_id": "x"}, 40403, "/blockId"),
    "no such leaf": ("Cite", {"leaf_path": [0, 7]}, 40405, "/leafPath"),
    "no such reference": ("DeleteReference", {"reference_id": "x"}, 40404, "/referenceId"),
    "a cited reference that is not there": (
        "Cite",
        {"leaf_path": [0, 0], "reference_id": "x"},
        40404,
        "/cite",
    ),
    "a taken reference": ("AddReference", {"reference": {"id": "taken"}}, 40902, "/reference/id"),
}


@pytest.mark.parametrize(("method", "fields", "number", "pointer"), WRONG.values(), ids=WRONG)
async def test_a_refused_call_says_where_and_changes_nothing(
    editing: Editing, method: str, fields: dict[str, Any], number: int, pointer: str
) -> None:
    ada = editing.client()
    session_id = await ada.begin()
    await ada.insert(session_id, "a", "b")
    await ada.call("AddReference", session_id=session_id, reference={"id": "taken"})
    before = await state(ada, session_id)
    with pytest.raises(GatewayError) as raised:
        await ada.call(method, session_id=session_id, **fields)
    assert (code_of(raised), raised.value.param) == (number, pointer)
    assert raised.value.http_status == number // 100
    assert raised.value.message.startswith(f"{pointer}: " if pointer else "")
    assert await state(ada, session_id) == before


async def test_a_stale_revision_is_refused_and_the_right_one_is_not(editing: Editing) -> None:
    ada = editing.client()
    session_id = await ada.begin()
    await ada.insert(session_id, "a", if_revision=0)
    for stale in (0, 2):
        with pytest.raises(GatewayError) as raised:
            await ada.insert(session_id, "b", if_revision=stale)
        assert (code_of(raised), raised.value.param) == (40901, "/ifRevision")
    assert (await ada.insert(session_id, "b", if_revision=1)).revision == 2


async def test_an_image_shows_the_callers_files_alone(editing: Editing) -> None:
    ada = editing.client()
    editing.files.files |= {("user_ada", "file-a"), ("user_bob", "file-b")}
    session_id = await ada.begin()
    url = {"url": "https://example.com/a.png"}

    def images(*file_ids: str) -> dict[str, Any]:
        shown = [url, *({"fileId": file_id} for file_id in file_ids)]
        return {"type": "image", "image": shown}

    async def insert(*blocks: dict[str, Any]) -> Any:
        return await ada.call("InsertBlocks", session_id=session_id, path=[0], blocks=blocks)

    done = await insert(images("file-a", "file-a"), images("file-a"))
    assert editing.files.asked == 1
    with pytest.raises(GatewayError) as raised:
        await insert(paragraph("a"), images("file-a", "file-b"))
    assert (code_of(raised), raised.value.param) == (40003, "/blocks/1/image/2/fileId")
    with pytest.raises(GatewayError) as raised:
        await ada.call(
            "ReplaceText",
            session_id=session_id,
            block_id=done.ids[0],
            fields={"image": [{"fileId": "file-c"}]},
        )
    assert (code_of(raised), raised.value.param) == (40003, "/image/0/fileId")
    assert (await ada.read(session_id)).revision == 1
    await ada.call(
        "ReplaceText",
        session_id=session_id,
        block_id=done.ids[0],
        fields={"image": [{"fileId": "file-a"}]},
    )
    assert (await block_of(ada, session_id, done.ids[0]))["image"] == [{"fileId": "file-a"}]


async def test_hostile_text_comes_back_as_it_was(editing: Editing) -> None:
    ada = editing.client()
    session_id = await ada.begin()
    text = "'; DROP TABLE articles; -- \u202e\U0001f600 $x$ <script> ]](( \u0301"
    done = await ada.insert(session_id, text)
    block = await block_of(ada, session_id, done.ids[0])
    assert block["children"] == [{"type": "default", "text": text}]
    with pytest.raises(GatewayError) as raised:
        await ada.insert(session_id, "a\0b")
    assert raised.value.param == "/blocks/0/children/0/text"
    with pytest.raises(GatewayError) as raised:
        await ada.call("AppendText", session_id=session_id, block_id=done.ids[0], text=b'"\\ud800"')
    assert code_of(raised) in (40001, 40003)

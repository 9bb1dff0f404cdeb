"""Every edit over gRPC, with its revision, its refusals and where they point."""

from typing import Any

import orjson
import pytest

from services.common.errors import GatewayError
from tests.services.articles.editor_services import Client, EditorServices, code_of, paragraph


async def block_of(ada: Client, session_id: str, block_id: str) -> Any:
    read = await ada.call("ReadBlock", session_id=session_id, block_id=block_id)
    return orjson.loads(read.block)


async def state(ada: Client, session_id: str) -> bytes:
    return (await ada.read(session_id)).SerializeToString(deterministic=True)


async def test_every_edit_adds_one_to_the_revision_and_shows(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    steps: list[tuple[str, dict[str, Any]]] = [
        ("replace_text", {"fields": {"children": "new"}}),
        ("append_text", {"text": [{"text": " er", "bold": True}]}),
        ("set_leaf_style", {"marks": {"italic": True}}),
        ("set_block_style", {"properties": {"indent": True, "style": {"color": "red"}}}),
    ]
    inserted = await ada.insert(session_id, "first", "second")
    block_id = inserted.ids[0]
    for revision, (kind, fields) in enumerate(steps, 2):
        done = await ada.edit(session_id, kind, block_id=block_id, **fields)
        assert done.revision == revision
    added = await ada.edit(session_id, "add_reference", reference={"title": "T"})
    assert added.revision == 6
    [reference_id] = added.ids
    for kind, fields in (
        ("cite", {"leaf_path": [0, 0], "reference_id": reference_id}),
        ("update_reference", {"reference": {"id": reference_id, "year": "1843", "title": None}}),
        ("set_article_style", {"style": {"global": {"paperSize": "A4"}}}),
    ):
        await ada.edit(session_id, kind, **fields)
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
    await ada.edit(session_id, "delete_reference", reference_id=reference_id)
    done = await ada.edit(session_id, "delete_block", block_id=inserted.ids[1])
    assert done.revision == 11
    assert await ada.texts(session_id) == ["*new* ***er***"]


async def test_a_block_is_read_raw_with_its_place_and_computed_style(
    editors: EditorServices,
) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    await ada.insert(session_id, "before")
    bullets = {
        "type": "list",
        "children": [{"type": "list-item", "children": [{"text": "one"}]}],
        "style": {"orderType": "decimal"},
    }
    done = await ada.edit(session_id, "insert_blocks", path=[1], blocks=[bullets])
    await ada.edit(session_id, "set_article_style", style={"global": {"color": "red"}})
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
    "no json": ("insert_blocks", {"path": [0], "blocks": b"["}, 40001, "/blocks"),
    "fields no object": ("replace_text", {"block_id": "x", "fields": []}, 40001, ""),
    "marks no json": ("set_leaf_style", {"block_id": "x", "marks": b""}, 40001, ""),
    "no path": ("insert_blocks", {"blocks": [paragraph("a")]}, 40002, "/path"),
    "path too far": ("insert_blocks", {"path": [3], "blocks": [paragraph("a")]}, 40002, "/path"),
    "no blocks": ("insert_blocks", {"path": [0], "blocks": []}, 40003, "/blocks"),
    "a leaf": ("insert_blocks", {"path": [0], "blocks": [{"text": "a"}]}, 40003, "/blocks/0/type"),
    "nothing to replace": ("replace_text", {"block_id": "x", "fields": {}}, 40004, ""),
    "no target": ("set_leaf_style", {"marks": {"bold": True}}, 40004, ""),
    "two targets": ("cite", {"block_id": "x", "leaf_path": [0, 0]}, 40004, ""),
    "an unknown property": (
        "set_article_style",
        {"style": {"poem": {}}},
        40003,
        "/style/poem",
    ),
    "no such block": ("delete_block", {"block_id": "x"}, 40403, "/blockId"),
    "no such leaf": ("cite", {"leaf_path": [0, 7]}, 40405, "/leafPath"),
    "no such reference": ("delete_reference", {"reference_id": "x"}, 40404, "/referenceId"),
    "a cited reference that is not there": (
        "cite",
        {"leaf_path": [0, 0], "reference_id": "x"},
        40404,
        "/cite",
    ),
    "a taken reference": ("add_reference", {"reference": {"id": "taken"}}, 40902, "/reference/id"),
}


@pytest.mark.parametrize(("kind", "fields", "number", "pointer"), WRONG.values(), ids=WRONG)
async def test_a_refused_call_says_where_and_changes_nothing(
    editors: EditorServices, kind: str, fields: dict[str, Any], number: int, pointer: str
) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    await ada.insert(session_id, "a", "b")
    await ada.edit(session_id, "add_reference", reference={"id": "taken"})
    before = await state(ada, session_id)
    with pytest.raises(GatewayError) as raised:
        await ada.edit(session_id, kind, **fields)
    assert (code_of(raised), raised.value.param) == (number, pointer)
    assert raised.value.http_status == number // 100
    assert raised.value.message.startswith(f"{pointer}: " if pointer else "")
    assert await state(ada, session_id) == before


async def test_reading_an_unknown_block_is_refused(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    with pytest.raises(GatewayError) as raised:
        await ada.call("ReadBlock", session_id=session_id, block_id="x")
    assert (code_of(raised), raised.value.param) == (40403, "/blockId")


async def test_a_request_without_an_edit_is_refused(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    with pytest.raises(GatewayError) as raised:
        await ada.call("ApplyEdit", session_id=session_id)
    assert (code_of(raised), raised.value.param) == (40004, "")


async def test_a_stale_revision_is_refused_and_the_right_one_is_not(
    editors: EditorServices,
) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    await ada.insert(session_id, "a", if_revision=0)
    for stale in (0, 2):
        with pytest.raises(GatewayError) as raised:
            await ada.insert(session_id, "b", if_revision=stale)
        assert (code_of(raised), raised.value.param) == (40901, "/ifRevision")
    assert (await ada.insert(session_id, "b", if_revision=1)).revision == 2


async def test_an_image_shows_the_callers_files_alone(editors: EditorServices) -> None:
    ada = editors.client()
    editors.files.files |= {("user_ada", "file-a"), ("user_bob", "file-b")}
    session_id = await ada.begin()
    url = {"url": "https://example.com/a.png"}

    def images(*file_ids: str) -> dict[str, Any]:
        shown = [url, *({"fileId": file_id} for file_id in file_ids)]
        return {"type": "image", "image": shown}

    async def insert(*blocks: dict[str, Any]) -> Any:
        return await ada.edit(session_id, "insert_blocks", path=[0], blocks=blocks)

    done = await insert(images("file-a", "file-a"), images("file-a"))
    assert editors.files.asked == 1
    with pytest.raises(GatewayError) as raised:
        await insert(paragraph("a"), images("file-a", "file-b"))
    assert (code_of(raised), raised.value.param) == (40003, "/blocks/1/image/2/fileId")
    with pytest.raises(GatewayError) as raised:
        await ada.edit(
            session_id,
            "replace_text",
            block_id=done.ids[0],
            fields={"image": [{"fileId": "file-c"}]},
        )
    assert (code_of(raised), raised.value.param) == (40003, "/image/0/fileId")
    assert (await ada.read(session_id)).revision == 1
    await ada.edit(
        session_id,
        "replace_text",
        block_id=done.ids[0],
        fields={"image": [{"fileId": "file-a"}]},
    )
    assert (await block_of(ada, session_id, done.ids[0]))["image"] == [{"fileId": "file-a"}]


async def test_hostile_text_comes_back_as_it_was(editors: EditorServices) -> None:
    ada = editors.client()
    session_id = await ada.begin()
    text = "'; DROP TABLE articles; -- \u202e\U0001f600 $x$ <script> ]](( \u0301"
    done = await ada.insert(session_id, text)
    block = await block_of(ada, session_id, done.ids[0])
    assert block["children"] == [{"type": "default", "text": text}]
    with pytest.raises(GatewayError) as raised:
        await ada.insert(session_id, "a\0b")
    assert raised.value.param == "/blocks/0/children/0/text"
    with pytest.raises(GatewayError) as raised:
        await ada.edit(session_id, "append_text", block_id=done.ids[0], text=b'"\\ud800"')
    assert code_of(raised) in (40001, 40003)

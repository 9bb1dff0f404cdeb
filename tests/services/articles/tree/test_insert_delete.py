"""Where blocks can be put, what can be taken out, and what stays whole."""

from typing import Any

import pytest

from services.articles.tree.document import Document
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.operations import InsertBlocks
from services.articles.tree.parsing import parse_element
from services.common.articles import limits
from tests.services.articles.trees import (
    Body,
    Editor,
    bullets,
    cell,
    check,
    item,
    label,
    label_item,
    paragraph,
    row,
    table,
    text,
)


@pytest.fixture
def editor() -> Editor:
    """A paragraph (e1), a list (e2) with a nested one (e5), a table (e7), a label (e11)."""
    made = Editor()
    made.insert(
        paragraph("one"),
        bullets("a", item("b", bullets("c"))),
        table(row("d", "e")),
        label(label_item("f", "g")),
    )
    return made


def test_blocks_take_the_path_and_the_places_behind(editor: Editor) -> None:
    change = editor.edit("insert_blocks", {"path": [1], "blocks": [paragraph("x"), paragraph("y")]})
    assert [editor.document.path_of(made) for made in change.ids] == [(1,), (2,)]
    assert [block.type for block in editor.document.blocks][3:] == ["list", "table", "label"]


@pytest.mark.parametrize(
    ("path", "block", "type_there"),
    [
        ([4], paragraph("x"), "paragraph"),
        ([1, 0], item("x"), "list-item"),
        ([1, 2], item("x"), "list-item"),
        ([1, 0, 1], bullets("x"), "list"),
        ([2, 1], row("x", "y"), "table-row"),
        ([3, 0], label_item("x", "y"), "label-item"),
    ],
)
def test_nested_blocks_go_where_their_type_belongs(
    editor: Editor, path: list[int], block: Body, type_there: str
) -> None:
    before = editor.document
    change = editor.edit("insert_blocks", {"path": path, "blocks": [block]})
    check(editor.document)
    assert editor.document.path_of(change.ids[0]) == tuple(path)
    assert editor.json(change.ids[0])["type"] == type_there
    editor.edit("delete_block", {"blockId": change.ids[0]})
    assert editor.document == before


@pytest.mark.parametrize(
    ("path", "block", "code"),
    [
        ([5], paragraph("x"), 40002),
        ([9, 0], item("x"), 40002),
        ([1, 3], item("x"), 40002),
        ([0, 0, 0], bullets("x"), 40002),
        ([0, 0], paragraph("x"), 40003),
        ([0], item("x"), 40003),
        ([1, 0], paragraph("x"), 40003),
        ([1, 0], bullets("x"), 40003),
        ([1, 0, 0], bullets("x"), 40003),
        ([1, 1, 1], bullets("x"), 40003),
        ([1, 1, 2], bullets("x"), 40003),
        ([2, 0], item("x"), 40003),
        ([2, 0], row("x"), 40003),
        ([2, 0, 0], cell("x"), 40003),
        ([3, 0], item("x"), 40003),
        ([], paragraph("x"), 40002),
    ],
)
def test_a_block_that_cannot_stand_there_is_refused(
    editor: Editor, path: Any, block: Body, code: int
) -> None:
    editor.refuse("insert_blocks", {"path": path, "blocks": [block]}, code)


def test_a_label_of_leaves_takes_no_item_but_an_empty_one_does() -> None:
    editor = Editor()
    editor.insert({"type": "label", "children": [text("a")]}, {"type": "label"})
    editor.refuse("insert_blocks", {"path": [0, 1], "blocks": [label_item("x")]}, 40003)
    made = editor.insert(label_item("x", "y"), path=[1, 0])
    assert [child["type"] for child in editor.children("e2")] == ["label-item"]
    editor.edit("delete_block", {"blockId": made})
    assert editor.children("e2") == [{"type": "default", "text": ""}]


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"path": [0]}, 40001, "/blocks"),
        ({"blocks": [{"type": "h1"}]}, 40002, "/path"),
        ({"path": [0], "blocks": []}, 40003, "/blocks"),
        ({"path": [0], "blocks": {}}, 40003, "/blocks"),
        ({"path": [0], "blocks": [{"type": "h1"}] * 501}, 40003, "/blocks"),
    ],
)
def test_a_body_that_inserts_nothing_is_refused(body: Body, code: int, pointer: str) -> None:
    Editor().refuse("insert_blocks", body, code, pointer)


def test_all_blocks_are_inserted_or_none(editor: Editor) -> None:
    editor.refuse("insert_blocks", {"path": [0], "blocks": [paragraph("x"), {"type": "no"}]}, 40003)
    assert len(editor.document.blocks) == 4


def test_a_list_cannot_grow_deeper_than_eight_elements() -> None:
    editor = Editor()
    inner = bullets("deep")
    for _ in range(3):
        inner = bullets(item("x", inner))
    editor.insert(inner, bullets("y"))
    editor.refuse(
        "insert_blocks", {"path": [0, 0, 1, 0, 1, 0, 1, 0, 1], "blocks": [bullets("z")]}, 40003
    )
    editor.refuse("insert_blocks", {"path": [1, 0, 1], "blocks": [inner]}, 40003, "/blocks")


@pytest.mark.parametrize("block_id", ["e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e11", "e12"])
def test_any_element_but_a_cell_can_be_deleted_and_comes_back(
    editor: Editor, block_id: str
) -> None:
    before = editor.document
    change = editor.edit("delete_block", {"blockId": block_id})
    check(editor.document)
    assert editor.document.element(block_id) is None
    assert change.inverse.apply(editor.document).document == before


def test_a_cell_is_not_deleted(editor: Editor) -> None:
    assert editor.json("e9")["type"] == "table-cell"
    editor.refuse("delete_block", {"blockId": "e9"}, 40003, "/blockId")


@pytest.mark.parametrize("height", [2, 3])
@pytest.mark.parametrize("deleted", [0, 1])
def test_a_cell_that_spans_a_deleted_row_shrinks(height: int, deleted: int) -> None:
    editor = Editor()
    rows = [row("a", cell("b", rowSpan=2), "c"), row("d", "e"), row("f", "g", "h")][:height]
    table_id = editor.insert(table(*rows))
    before = editor.document
    row_id = before.blocks[0].elements[deleted].id
    change = editor.edit("delete_block", {"blockId": row_id})
    check(editor.document)
    first = editor.children(table_id)[0]["children"]
    assert [one["children"][0]["text"] for one in first] == list(["dbe", "abc"][deleted])
    assert [one["rowSpan"] for one in first] == [1, 1, 1]
    assert len(editor.children(table_id)) == height - 1
    assert change.inverse.apply(editor.document).document == before


@pytest.mark.parametrize("body", [{"blockId": "x"}, {}])
def test_deleting_what_is_not_there_is_refused(editor: Editor, body: Body) -> None:
    editor.refuse("delete_block", body, 40403, "/blockId")


def test_a_document_holds_ten_thousand_blocks() -> None:
    editor = Editor()
    for start in range(0, limits.TOP_LEVEL_BLOCKS, 500):
        editor.edit("insert_blocks", {"path": [start], "blocks": [{"type": "code"}] * 500})
    editor.refuse("insert_blocks", {"path": [0], "blocks": [{"type": "code"}]}, 40003, "/blocks")


def test_a_document_holds_so_many_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.ELEMENTS == 50_000
    monkeypatch.setattr(limits, "ELEMENTS", 20)
    editor = Editor()
    items = [item("x")] * 19
    made = editor.insert({"type": "list", "children": items})
    editor.refuse("insert_blocks", {"path": [0], "blocks": [paragraph("x")]}, 40003, "/blocks")
    editor.refuse("insert_blocks", {"path": [0, 0], "blocks": [item("x")]}, 40003, "/blocks")
    editor.refuse("replace_text", {"blockId": made, "children": [*items, item("x")]}, 40003)
    editor.edit("replace_text", {"blockId": made, "children": items})
    editor.edit("delete_block", {"blockId": editor.children(made)[0]["id"]})
    editor.edit("insert_blocks", {"path": [0], "blocks": [paragraph("x")]})


def test_an_edit_shares_all_that_it_leaves_alone() -> None:
    editor = Editor()
    for start in range(0, 5000, 500):
        editor.edit("insert_blocks", {"path": [start], "blocks": [paragraph("x")] * 500})
    before = editor.document
    editor.edit("append_text", {"blockId": "e2500", "text": "y"})
    after = editor.document
    # One run of blocks is new; which element holds which is not even looked at.
    assert after.parents is before.parents
    assert len(set(map(id, before.blocks._runs)) - set(map(id, after.blocks._runs))) == 1
    editor.edit("insert_blocks", {"path": [2500], "blocks": [paragraph("z")]})
    assert len(set(map(id, after.blocks._runs)) - set(map(id, editor.document.blocks._runs))) <= 2
    buckets = zip(after.parents._buckets, editor.document.parents._buckets, strict=True)
    assert sum(old is not new for old, new in buckets) == 1


def test_an_id_is_never_in_a_document_twice() -> None:
    block = parse_element({"type": "h1"}, "", 1, lambda: "same", {})
    once = InsertBlocks((0,), (block,)).apply(Document()).document
    with pytest.raises(ValueError, match="same"):
        InsertBlocks((0,), (block,)).apply(once)


def test_undoing_an_insert_of_separated_blocks_is_refused() -> None:
    editor = Editor()
    change = editor.edit("insert_blocks", {"path": [0], "blocks": [paragraph("a"), paragraph("b")]})
    editor.insert(paragraph("between"), path=[1])
    with pytest.raises(EditError) as refused:
        change.inverse.apply(editor.document)
    assert refused.value.code is EditErrorCode.NO_BLOCK


def test_a_last_row_comes_back_with_its_alignment() -> None:
    editor = Editor()
    editor.insert({**table(row("a", "b")), "align": ["start", "end"]})
    before = editor.document
    (last,) = before.blocks[0].elements
    change = editor.edit("delete_block", {"blockId": last.id})
    assert "align" not in editor.document.blocks[0].content
    assert change.inverse.apply(editor.document).document == before

"""Replacing and appending the content of blocks."""

from typing import Any

import pytest

from services.articles.tree.nodes import walk
from services.articles.tree.operations import RestoreElements, Truncate
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
    """A paragraph (e1), a list (e2; items e3, e4), code (e5), an author (e6), an image (e7)."""
    made = Editor()
    made.insert(
        paragraph("one", style={"indent": True}),
        bullets("a", "b"),
        {"type": "code", "code": "x", "language": "Python"},
        {"type": "author", "author": [{"id": 1, "name": "Ada"}]},
        {"type": "image"},
    )
    made.edit("add_reference", {"reference": {"id": "r"}})
    return made


def texts(leaves: Any) -> list[str]:
    return [leaf["text"] for leaf in leaves]


def test_a_string_becomes_a_leaf_and_id_and_style_stay(editor: Editor) -> None:
    editor.edit("replace_text", {"blockId": "e1", "children": "two"})
    assert editor.json("e1") == {
        "id": "e1",
        "type": "paragraph",
        "children": [{"type": "default", "text": "two"}],
        "style": {"indent": True},
    }


def test_children_keep_the_ids_they_had_and_no_others(editor: Editor) -> None:
    children = [
        {**item("b"), "id": "e4"},
        {**item("again"), "id": "e4"},
        {**item("foreign"), "id": "e1"},
        {**item("own"), "id": "e2"},
        item("new"),
        {**item("a"), "id": "e3"},
    ]
    editor.edit("replace_text", {"blockId": "e2", "children": children})
    ids = [child["id"] for child in editor.children("e2")]
    assert ids[0] == "e4"
    assert ids[5] == "e3"
    assert all(int(made[1:]) > 7 for made in ids[1:5])
    check(editor.document)


def test_the_id_of_a_deleted_child_is_not_reused(editor: Editor) -> None:
    editor.edit("replace_text", {"blockId": "e2", "children": [item("x")]})
    editor.edit("replace_text", {"blockId": "e2", "children": [{**item("y"), "id": "e3"}]})
    assert editor.children("e2")[0]["id"] != "e3"


@pytest.mark.parametrize(
    ("block_id", "fields", "content"),
    [
        ("e5", {"code": "y"}, {"code": "y", "language": "Python"}),
        ("e5", {"language": "C"}, {"code": "x", "language": "C"}),
        (
            "e6",
            {"institution": [{"id": 1, "name": "U"}]},
            {"institution": [{"id": 1, "name": "U"}]},
        ),
        ("e7", {"image": [{"fileId": "f"}]}, {"image": [{"fileId": "f"}]}),
    ],
)
def test_only_the_fields_given_change(
    editor: Editor, block_id: str, fields: Body, content: Body
) -> None:
    before = editor.json(block_id)
    editor.edit("replace_text", {"blockId": block_id, **fields})
    assert editor.json(block_id) == {**before, **content}


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"blockId": "e1"}, 40004, ""),
        ({"blockId": "e1", "text": "x"}, 40004, ""),
        ({"blockId": "nowhere", "children": "x"}, 40403, "/blockId"),
        ({"blockId": "e1", "code": "x"}, 40003, "/code"),
        ({"blockId": "e5", "equation": "x"}, 40003, "/equation"),
        ({"blockId": "e5", "children": []}, 40003, "/children"),
        ({"blockId": "e5", "children": "x"}, 40003, "/children"),
        ({"blockId": "e5", "code": None}, 40003, "/code"),
        ({"blockId": "e1", "children": None}, 40003, "/children"),
        ({"blockId": "e1", "children": [item("x")]}, 40003, "/children/0"),
        ({"blockId": "e1", "children": [text("x", cite="no")]}, 40404, "/children/0/cite"),
        ({"blockId": "e1", "children": "x\0"}, 40003, "/children"),
        ({"blockId": "e1", "children": "x" * 50_001}, 40003, "/children"),
        ({"blockId": "e2", "children": "x"}, 40003, "/children"),
        ({"blockId": "e2", "children": [{"type": "poem"}]}, 40003, "/children/0/type"),
        ({"blockId": "e6", "author": [{"name": 3}]}, 40003, "/author/0/name"),
        ({"blockId": "e7", "image": [{"url": "x", "fileId": "y"}]}, 40004, "/image/0"),
    ],
)
def test_content_that_does_not_fit_is_refused(
    editor: Editor, body: Body, code: int, pointer: str
) -> None:
    editor.refuse("replace_text", body, code, pointer)


def test_a_row_or_a_cell_is_replaced_within_its_table() -> None:
    editor = Editor()
    editor.insert(table(row(cell("a", colSpan=2), "b"), row("c", "d", "e")))
    editor.edit("replace_text", {"blockId": "e3", "children": "new"})
    assert editor.json("e3")["colSpan"] == 2
    assert texts(editor.children("e3")) == ["new"]
    editor.refuse("replace_text", {"blockId": "e2", "children": [cell("x")]}, 40003, "/children")
    before = editor.document
    three = [cell("x"), cell("y"), cell("z")]
    change = editor.edit("replace_text", {"blockId": "e2", "children": three})
    check(editor.document)
    assert change.inverse.apply(editor.document).document == before


def test_nested_children_cannot_reach_below_eight_elements(editor: Editor) -> None:
    deep: Body = item("x")
    for _ in range(3):
        deep = item("x", bullets(deep))
    editor.edit("replace_text", {"blockId": "e2", "children": [deep]})
    *_, deepest = walk(editor.document.blocks[1])
    two_more = [text("x"), bullets("y")]
    editor.refuse("replace_text", {"blockId": deepest.id, "children": two_more}, 40003, "/children")


@pytest.mark.parametrize("kind", ["title", "paragraph", "abstract", "h1", "h2", "h3", "label"])
def test_text_is_appended_as_a_leaf_that_merges(kind: str) -> None:
    editor = Editor()
    made = editor.insert(paragraph("one", kind=kind))
    editor.edit("append_text", {"blockId": made, "text": " two"})
    editor.edit(
        "append_text", {"blockId": made, "text": [text("!", bold=True), text("?", bold=True)]}
    )
    assert editor.children(made) == [
        {"type": "default", "text": "one two"},
        {"type": "default", "text": "!?", "bold": True},
    ]


def test_text_for_a_label_goes_to_its_last_item() -> None:
    editor = Editor()
    made = editor.insert(label(label_item("k", "a"), label_item("l", "b")))
    before = editor.document
    change = editor.edit("append_text", {"blockId": made, "text": "c"})
    assert [texts(child["children"]) for child in editor.children(made)] == [["a"], ["bc"]]
    assert change.inverse.apply(editor.document).document == before


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"blockId": "e2", "text": "x"}, 40003, "/blockId"),
        ({"blockId": "e3", "text": "x"}, 40003, "/blockId"),
        ({"blockId": "e5", "text": "x"}, 40003, "/blockId"),
        ({"blockId": "no", "text": "x"}, 40403, "/blockId"),
        ({"blockId": "e1"}, 40001, "/text"),
        ({"blockId": "e1", "text": None}, 40003, "/text"),
        ({"blockId": "e1", "text": [item("x")]}, 40003, "/text/0/children"),
        ({"blockId": "e1", "text": [text("x", bold=2)]}, 40003, "/text/0/bold"),
        ({"blockId": "e1", "text": [text("x"), text("y", cite="no")]}, 40404, "/text/1/cite"),
    ],
)
def test_text_that_cannot_be_appended_is_refused(
    editor: Editor, body: Body, code: int, pointer: str
) -> None:
    editor.refuse("append_text", body, code, pointer)


def test_merged_leaves_may_grow_beyond_what_may_be_sent() -> None:
    editor = Editor()
    made = editor.insert(paragraph("x" * 50_000))
    editor.edit("append_text", {"blockId": made, "text": "y" * 50_000})
    assert len(editor.children(made)[0]["text"]) == 100_000


def test_undoing_an_append_does_not_need_the_text_before_it(editor: Editor) -> None:
    change = editor.edit(
        "append_text", {"blockId": "e1", "text": [text(" two"), text("x", bold=True)]}
    )
    assert change.inverse == Truncate("e1", 1, 3)
    undone = change.inverse.apply(editor.document)
    assert texts(editor.children("e1")) == ["one two", "x"]
    assert undone.inverse.apply(undone.document).document == editor.document


def test_undoing_an_append_to_an_empty_block_keeps_its_marks() -> None:
    editor = Editor()
    made = editor.insert(paragraph(text("", bold=True)))
    before = editor.document
    change = editor.edit("append_text", {"blockId": made, "text": "x"})
    assert isinstance(change.inverse, RestoreElements)
    assert change.inverse.apply(editor.document).document == before

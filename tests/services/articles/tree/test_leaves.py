"""Citations and marks of leaves."""

import pytest

from tests.services.articles.trees import Body, Editor, bullets, item, paragraph, row, table, text


@pytest.fixture
def editor() -> Editor:
    """A paragraph (e1) of three leaves, a list (e2) with a nested one (e4), a table, an image."""
    made = Editor()
    for reference_id in ("r", "s"):
        made.edit("add_reference", {"reference": {"id": reference_id}})
    made.insert(
        paragraph("one", text("two", bold=True), text("x", type="latex")),
        bullets(item("a", bullets("b"))),
        table(row("c", "d")),
        {"type": "image"},
        bullets(),
    )
    return made


def cites(editor: Editor, block_id: str) -> list[str | None]:
    return [leaf.get("cite") for leaf in editor.children(block_id)]


def test_a_block_is_cited_in_every_leaf_below(editor: Editor) -> None:
    editor.edit("cite", {"blockId": "e2", "cite": "r"})
    assert cites(editor, "e3")[0] == "r"
    assert cites(editor, "e5") == ["r"]
    editor.edit("cite", {"blockId": "e2"})
    assert cites(editor, "e5") == [None]


def test_one_leaf_is_cited_by_its_path_cells_too(editor: Editor) -> None:
    editor.edit("cite", {"leafPath": [2, 0, 1, 0], "cite": "s"})
    editor.edit("cite", {"leafPath": [0, 1], "cite": "r", "blockId": None})
    assert cites(editor, "e1") == [None, "r", None]
    assert editor.document.numbers() == {"r": 1, "s": 2}
    editor.edit("cite", {"leafPath": [0, 1], "cite": None})
    assert editor.document.numbers() == {"s": 1}


def test_leaves_that_become_equal_merge(editor: Editor) -> None:
    editor.edit("set_leaf_style", {"leafPath": [0, 1], "bold": None})
    assert editor.children("e1") == [
        {"type": "default", "text": "onetwo"},
        {"type": "latex", "text": "x"},
    ]


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({}, 40004, ""),
        ({"blockId": "e1", "leafPath": [0, 0]}, 40004, ""),
        ({"blockId": None, "leafPath": None}, 40004, ""),
        ({"blockId": "no"}, 40403, "/blockId"),
        ({"blockId": "e9"}, 40404, "/cite"),
        ({"blockId": "e10"}, 40003, "/blockId"),
        ({"blockId": "e11"}, 40003, "/blockId"),
        ({"leafPath": [0]}, 40002, "/leafPath"),
        ({"leafPath": [2, 0, 1]}, 40002, "/leafPath"),
        ({"leafPath": [0, 3]}, 40405, "/leafPath"),
        ({"leafPath": [7, 0]}, 40405, "/leafPath"),
        ({"leafPath": [0, 0, 0]}, 40405, "/leafPath"),
    ],
)
def test_a_wrong_target_is_refused_for_citation_and_marks(
    editor: Editor, body: Body, code: int, pointer: str
) -> None:
    editor.refuse("cite", {**body, "cite": "nobody"}, code, pointer)
    if code != 40404:
        editor.refuse("set_leaf_style", {**body, "bold": True}, code, pointer)


def test_a_citation_needs_a_known_reference(editor: Editor) -> None:
    editor.refuse("cite", {"blockId": "e1", "cite": "x" * 201}, 40003, "/cite")
    editor.refuse("cite", {"leafPath": [0, 0], "cite": "x"}, 40404, "/cite")


def test_marks_under_a_block_touch_plain_leaves_alone(editor: Editor) -> None:
    marks = {"italic": True, "color": "#f00", "textDecoration": "underline"}
    editor.edit("set_leaf_style", {"blockId": "e1", **marks})
    assert editor.children("e1") == [
        {"type": "default", "text": "one", **marks},
        {"type": "default", "text": "two", "bold": True, **marks},
        {"type": "latex", "text": "x"},
    ]
    editor.edit("set_leaf_style", {"leafPath": [0, 2], "color": "red"})
    assert editor.children("e1")[2] == {"type": "latex", "text": "x", "color": "red"}


def test_null_and_false_take_marks_away(editor: Editor) -> None:
    before = editor.document
    marks = {"bold": True, "italic": True, "color": "red", "textDecoration": "line-through"}
    editor.edit("set_leaf_style", {"leafPath": [2, 0, 0, 0], **marks})
    nothing = {"bold": False, "italic": None, "color": None, "textDecoration": None}
    editor.edit("set_leaf_style", {"leafPath": [2, 0, 0, 0], **nothing})
    assert editor.document == before


@pytest.mark.parametrize(
    ("marks", "code", "pointer"),
    [
        ({}, 40004, ""),
        ({"bold": "true"}, 40003, "/bold"),
        ({"italic": 0}, 40003, "/italic"),
        ({"textDecoration": "overline"}, 40003, "/textDecoration"),
        ({"color": "rouge"}, 40003, "/color"),
        ({"color": 3}, 40003, "/color"),
        ({"bold": True, "underline": True}, 40003, "/underline"),
    ],
)
def test_wrong_marks_are_refused(editor: Editor, marks: Body, code: int, pointer: str) -> None:
    editor.refuse("set_leaf_style", {"blockId": "e1", **marks}, code, pointer)

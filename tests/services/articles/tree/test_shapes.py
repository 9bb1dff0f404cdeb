"""Parsing of blocks: normal forms, and where invalid ones are refused."""

from typing import Any

import pytest

from services.articles.tree.colours import is_colour
from tests.grid import each_row
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


def nested_list(levels: int) -> Body:
    made = bullets("deep")
    for _ in range(levels - 1):
        made = bullets(item("x", made))
    return made


def test_every_element_gets_an_id_and_the_one_sent_is_replaced() -> None:
    editor = Editor()
    block = table(row({**cell("a"), "id": "mine"}, "b"))
    made = editor.insert({**block, "id": "table"}, paragraph("c"))
    assert made == "e1"
    assert editor.json("e1") == {
        "id": "e1",
        "type": "table",
        "rowLength": 1,
        "colLength": 2,
        "children": [
            {
                "id": "e2",
                "type": "table-row",
                "children": [
                    {
                        "id": element_id,
                        "type": "table-cell",
                        "colSpan": 1,
                        "rowSpan": 1,
                        "children": [{"type": "default", "text": content}],
                    }
                    for element_id, content in (("e3", "a"), ("e4", "b"))
                ],
            }
        ],
    }


def test_leaves_are_normal() -> None:
    editor = Editor()
    block = paragraph(
        text("a", bold=True, italic=False, color=None, type="default"),
        text("", italic=True),
        text("b", bold=True, textDecoration=None, cite=None),
        text("c"),
    )
    made = editor.insert(block)
    assert editor.children(made) == [
        {"type": "default", "text": "ab", "bold": True},
        {"type": "default", "text": "c"},
    ]


@pytest.mark.parametrize("children", [[], [text("", bold=True)], None])
def test_a_text_block_always_has_a_leaf(children: list[Body] | None) -> None:
    editor = Editor()
    fields = {} if children is None else {"children": children}
    made = editor.insert({"type": "h2", **fields})
    expected: Body = {"type": "default", "text": ""}
    assert editor.children(made) == [{**expected, "bold": True} if children else expected]


@pytest.mark.parametrize(
    ("block", "content"),
    [
        ({"type": "equation"}, {"equation": ""}),
        ({"type": "code", "code": "x"}, {"code": "x", "language": ""}),
        ({"type": "image", "children": []}, {"image": []}),
        (
            {
                "type": "author",
                "author": [{"name": "Ada"}],
                "institution": [{"id": 3, "name": "U"}],
            },
            {
                "author": [{"id": 1, "name": "Ada", "institutionId": 0, "isStar": False}],
                "institution": [{"id": 3, "name": "U"}],
            },
        ),
    ],
)
def test_missing_fields_of_void_blocks_have_defaults(block: Body, content: Body) -> None:
    editor = Editor()
    made = editor.insert(block)
    assert editor.json(made) == {"id": "e1", "type": block["type"], **content, "children": []}


def test_the_server_counts_rows_and_columns_of_a_table() -> None:
    editor = Editor()
    spanning = table(row(cell("a", rowSpan=2), "b", "c"), row(cell("d", colSpan=2)))
    made = editor.insert({**spanning, "rowLength": 9, "colLength": 9})
    stored = editor.json(made)
    assert (stored["rowLength"], stored["colLength"]) == (2, 3)
    check(editor.document)


def test_nulls_in_an_inserted_style_are_dropped() -> None:
    editor = Editor()
    made = editor.insert(
        paragraph("a", style={"style": {"color": None, "width": 3}, "indent": None})
    )
    assert editor.json(made)["style"] == {"style": {"width": 3}}


REFUSED: list[tuple[Any, int, str]] = [
    ("text", 40003, ""),
    ({}, 40003, "/type"),
    ({"type": "poem"}, 40003, "/type"),
    ({"type": ["h1"]}, 40003, "/type"),
    (text("a", type="default"), 40003, "/type"),
    ({"type": "h1", "colour": 1}, 40003, "/colour"),
    ({"type": "h1", "a/b~": 1}, 40003, "/a~1b~0"),
    ({"type": "h1", "equation": "x"}, 40003, "/equation"),
    ({"type": "h1", "id": 3}, 40003, "/id"),
    ({"type": "h1", "children": "text"}, 40003, "/children"),
    ({"type": "h1", "style": {"serial": True}}, 40003, "/style/serial"),
    ({"type": "h1", "style": {"style": {"gap": 1}}}, 40003, "/style/style/gap"),
    ({"type": "h1", "style": []}, 40003, "/style"),
    (paragraph({}), 40003, "/children/0/text"),
    (paragraph(text("a"), {"text": 3}), 40003, "/children/1/text"),
    (paragraph(text("a\0")), 40003, "/children/0/text"),
    (paragraph(text("a", type="bold")), 40003, "/children/0/type"),
    (paragraph(text("a", bold=1)), 40003, "/children/0/bold"),
    (paragraph(text("a", italic="yes")), 40003, "/children/0/italic"),
    (paragraph(text("a", textDecoration="blink")), 40003, "/children/0/textDecoration"),
    (paragraph(text("a", color="red;}")), 40003, "/children/0/color"),
    (paragraph(text("a", underline=True)), 40003, "/children/0/underline"),
    (paragraph(text("a", url="http://a.org")), 40003, "/children/0/url"),
    (paragraph(text("a", type="url")), 40003, "/children/0/url"),
    (paragraph(text("a", cite=3)), 40003, "/children/0/cite"),
    (paragraph(text("a", cite="nobody")), 40404, "/children/0/cite"),
    (bullets(item("a", bullets(item(text("b", cite="no"))))), 40404,
     "/children/0/children/1/children/0/children/0/cite"),
    (paragraph(text("x" * 50_001)), 40003, "/children/0/text"),
    (paragraph(paragraph("a")), 40003, "/children/0"),
    ({"type": "list", "children": [text("a")]}, 40003, "/children"),
    (bullets(paragraph("a")), 40003, "/children/0"),
    (bullets({"type": "list-item", "children": [bullets("a"), text("b")]}), 40003,
     "/children/0/children"),
    (bullets({"type": "list-item", "children": [bullets("a"), bullets("b")]}), 40003,
     "/children/0/children"),
    (bullets("a", style={"orderType": "roman"}), 40003, "/style/orderType"),
    (label(label_item("a", "b"), text("c")), 40003, "/children"),
    (label({"type": "label-item", "name": 3}), 40003, "/children/0/name"),
    (item("a"), 40003, "/type"),
    (row("a"), 40003, "/type"),
    (nested_list(5), 40003, "/children/0/children/1" * 4),
    (table(row("a", "b"), row("c")), 40003, "/children"),
    (table(row("a"), row("b", "c")), 40003, "/children"),
    (table(row("a"), row(cell(colSpan=2))), 40003, "/children"),
    (table(row("a", cell(rowSpan=2))), 40003, "/children"),
    (table(row("a", cell(rowSpan=2)), row(cell(colSpan=2))), 40003, "/children"),
    (table(row(cell(rowSpan=2), "a"), row("b", "c")), 40003, "/children"),
    (table(row()), 40003, "/children"),
    (table(row(cell(colSpan=0))), 40003, "/children/0/children/0/colSpan"),
    (table(row(cell(rowSpan=True))), 40003, "/children/0/children/0/rowSpan"),
    (table(*[row("a")] * 201), 40003, "/children"),
    (table(row(*["a"] * 51)), 40003, "/children"),
    ({"type": "table", "rowLength": "2"}, 40003, "/rowLength"),
    ({"type": "equation", "children": [text("a")]}, 40003, "/children"),
    ({"type": "equation", "equation": "x" * 10_001}, 40003, "/equation"),
    ({"type": "code", "code": "x" * 200_001}, 40003, "/code"),
    ({"type": "code", "language": "x" * 65}, 40003, "/language"),
    ({"type": "image", "image": {}}, 40003, "/image"),
    ({"type": "image", "image": [{}]}, 40004, "/image/0"),
    ({"type": "image", "image": [{"url": "http://a.org", "fileId": "a"}]}, 40004, "/image/0"),
    ({"type": "image", "image": [{"url": "ftp://a.org"}]}, 40003, "/image/0/url"),
    ({"type": "image", "image": [{"url": "javascript:a"}]}, 40003, "/image/0/url"),
    ({"type": "image", "image": [{"url": "data:text/html,a"}]}, 40003, "/image/0/url"),
    ({"type": "image", "image": [{"url": "data:image/png;base64," + "a" * 2**20}]}, 40003,
     "/image/0/url"),
    ({"type": "image", "image": [{"fileId": ""}]}, 40003, "/image/0/fileId"),
    ({"type": "image", "image": [{"fileId": "a", "width": -1}]}, 40003, "/image/0/width"),
    ({"type": "image", "image": [{"fileId": "a", "alt": 1}]}, 40003, "/image/0/alt"),
    ({"type": "image", "image": [{"fileId": "a", "src": ""}]}, 40003, "/image/0/src"),
    ({"type": "author", "author": [{}]}, 40003, "/author/0/name"),
    ({"type": "author", "author": [{"name": "a", "id": True}]}, 40003, "/author/0/id"),
    ({"type": "author", "author": [{"name": "a", "isStar": 1}]}, 40003, "/author/0/isStar"),
    ({"type": "author", "author": [{"name": "a", "institutionId": "1"}]}, 40003,
     "/author/0/institutionId"),
    ({"type": "author", "institution": [{"id": 1, "name": "a"}] * 2}, 40003, "/institution/1/id"),
]  # fmt: skip


@each_row(("block", "code", "pointer"), REFUSED)
def test_a_wrong_block_is_refused_at_its_place(block: Any, code: int, pointer: str) -> None:
    editor = Editor()
    editor.insert(paragraph("before"))
    body = {"path": [1], "blocks": [paragraph("fine"), block]}
    editor.refuse("insert_blocks", body, code, f"/blocks/1{pointer}")


def test_values_at_their_limits_are_accepted() -> None:
    editor = Editor()
    editor.insert(
        nested_list(4),
        table(*[row(*["a"] * 50)] * 200),
        paragraph("x" * 50_000),
        {"type": "equation", "equation": "x" * 10_000},
        {"type": "code", "code": "x" * 200_000, "language": "x" * 64},
        {"type": "image", "image": [{"url": "data:image/png;base64," + "a" * (2**20 - 22)}]},
    )
    check(editor.document)


@each_row(
    "colour",
    [
        *("red", "RebeccaPurple", "transparent", "currentColor", "#fff", "#FFFA", "#00ff00"),
        *(
            "#00ff0080",
            "rgb(1,2,3)",
            "rgb( 1 2 3 / 50% )",
            "rgba(1, 2, 3, .5)",
            "hsl(120deg 50% 5%)",
        ),
        *("hwb(90 10% none)", "oklch(40% 0.2 200 / 0.5)", "color(display-p3 1 0.5 0)"),
    ],
)
def test_a_css_colour_is_known(colour: str) -> None:
    assert is_colour(colour)


@each_row(
    "colour",
    [
        *("", "reddish", "#ff", "#fffff", "#ggg", "rgb(1,2)", "rgb(1,2,3", "rgb(1;2;3)", " red"),
        *('red"', "url(x)", "red\n", "var(--x)", "rgb(1,2,3)}", "expression(1)", "#fff" * 50),
        "rgb(\u0661,2,3)",
    ],
)
def test_other_strings_are_no_css_colour(colour: str) -> None:
    assert not is_colour(colour)

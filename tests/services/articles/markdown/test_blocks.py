"""Markdown of each type of block."""

from typing import Any

import pytest
from markdown_it import MarkdownIt

from services.articles.markdown import ElementRenderer, render_document
from services.articles.tree.nodes import Element
from tests.grid import each_row
from tests.services.articles.trees import (
    Body,
    Editor,
    bullets,
    cell,
    item,
    label,
    label_item,
    paragraph,
    row,
    table,
    text,
)


def markdown(*blocks: Body, references: tuple[str, ...] = (), style: Body | None = None) -> str:
    editor = Editor()
    for reference_id in references:
        editor.edit("add_reference", {"reference": {"id": reference_id}})
    if style:
        editor.edit("set_article_style", {"style": style})
    editor.insert(*blocks)
    return render_document(editor.document)[1]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("title", "# One two \\#"),
        ("h1", "# One two \\#"),
        ("h2", "## One two \\#"),
        ("h3", "### One two \\#"),
    ],
)
def test_a_heading_is_one_line(kind: str, expected: str) -> None:
    assert markdown(paragraph("One\ntwo #", kind=kind)) == expected


def test_a_hash_inside_a_heading_stays() -> None:
    assert markdown(paragraph("C# and F#", kind="h2")) == "## C# and F#"


def test_a_newline_in_a_paragraph_is_a_hard_break() -> None:
    assert markdown(paragraph("one\ntwo")) == "one\\\ntwo"


@each_row(
    ("typed", "expected"),
    [
        ("# a", "\\# a"),
        ("- a", "\\- a"),
        ("12. a", "12\\. a"),
        ("> a", "\\> a"),
        ("---", "\\---"),
        ("3.14 and -5", "3.14 and -5"),
        ("a - b", "a - b"),
        ("#tag", "#tag"),
    ],
)
def test_leading_block_syntax_is_escaped_and_nothing_else(typed: str, expected: str) -> None:
    assert markdown(paragraph(typed)) == expected
    assert markdown(paragraph(f"x\n{typed}")) == f"x\\\n{expected}"


@each_row(
    ("leaf", "expected"),
    [
        (text("b", bold=True), "a **b** c"),
        (text("b", italic=True), "a *b* c"),
        (text("b", bold=True, italic=True), "a ***b*** c"),
        (text("b", textDecoration="line-through"), "a ~~b~~ c"),
        (text("b", textDecoration="underline"), "a <u>b</u> c"),
        (text("b", color="#f00"), 'a <span style="color: #f00">b</span> c'),
        (text("b", type="inlinecode"), "a `b` c"),
        (text("b_1", type="latex"), "a $b_1$ c"),
        (text("b", type="url", url="https://b.org"), "a [b](https://b.org) c"),
        (text("b", type="url", url="MAILTO:b@b.org"), "a [b](MAILTO:b@b.org) c"),
        (text("b", type="url", url="javascript:alert(1)"), "a b c"),
        (text("b", type="url", url="data:text/html,x"), "a b c"),
    ],
)
def test_a_leaf_shows_its_type_and_marks(leaf: Body, expected: str) -> None:
    assert markdown(paragraph("a ", leaf, " c")) == expected


def test_marks_nest_from_link_to_colour() -> None:
    all_of_them: dict[str, Any] = {
        "type": "url",
        "url": "https://b.org",
        "bold": True,
        "italic": True,
        "color": "red",
    }
    struck = text("b", textDecoration="line-through", **all_of_them)
    lined = text("c", textDecoration="underline", **all_of_them)
    span = '<span style="color: red">'
    assert markdown(paragraph(struck, " ", lined)) == (
        f"[***~~{span}b</span>~~***](https://b.org) [***<u>{span}c</span></u>***](https://b.org)"
    )


def test_white_space_moves_out_of_the_delimiters() -> None:
    assert markdown(paragraph("a", text(" b ", bold=True), "c")) == "a **b** c"


def test_tags_serve_where_delimiters_would_not_work() -> None:
    assert markdown(paragraph("中文", text("“引”", bold=True), "中文")) == (
        "中文<strong>“引”</strong>中文"
    )
    assert markdown(paragraph("中文", text("加粗", bold=True), "中文")) == "中文**加粗**中文"
    assert markdown(paragraph(text("a", bold=True), text("b", italic=True))) == "**a**<em>b</em>"


def test_citations_show_their_numbers_at_the_end_of_a_run() -> None:
    made = markdown(
        paragraph(text("a", cite="y"), text("b", bold=True, cite="y"), "c", text("d", cite="x")),
        paragraph(text("e", cite="y"), "(f)", "[1]"),
        references=("x", "y", "z"),
    )
    assert made == "a**b**[1]cd[2]\n\ne[1]\\(f)\\[1\\]"


@pytest.mark.parametrize(
    ("language", "expected"),
    [("en", "**Abstract:** text"), ("zh", "**摘要\uff1a** text"), ("none", "text"), (None, "text")],
)
def test_an_abstract_is_named_in_its_language(language: str | None, expected: str) -> None:
    assert markdown(paragraph("text", kind="abstract", style={"language": language})) == expected


def test_the_articles_style_names_abstracts_and_numbers_lists() -> None:
    style = {"abstract": {"language": "en"}, "list": {"orderType": "decimal"}}
    made = markdown(paragraph("text", kind="abstract"), bullets("a"), style=style)
    assert made == "**Abstract:** text\n\n1. a"


def test_a_label_shows_leaves_or_named_items() -> None:
    items = label(label_item("Keywords", "a, ", text("b", bold=True)), label_item("CLC", "TP3"))
    assert markdown(items) == "**Keywords** a, **b**\\\n**CLC** TP3"
    assert markdown(paragraph("plain", kind="label")) == "plain"


def test_an_equation_is_written_between_dollars() -> None:
    assert markdown({"type": "equation", "equation": "\na = b\n\n+ c\n"}) == "$$\na = b\n+ c\n$$"
    assert markdown({"type": "equation", "equation": "a $$ b"}) == "$$\na $ $ b\n$$"


def test_a_fence_is_longer_than_any_run_of_backticks_inside() -> None:
    assert markdown({"type": "code", "code": "x", "language": "C++"}) == "```c++\nx\n```"
    assert markdown({"type": "code", "code": "````"}) == "`````\n````\n`````"


def test_images_stand_one_a_line() -> None:
    images = [
        {"url": "https://a.org/b.png", "alt": "B [1]", "title": 'a "b"'},
        {"fileId": "file-1", "width": 100},
    ]
    assert markdown({"type": "image", "image": images}) == (
        '![B \\[1\\]](https://a.org/b.png "a \\"b\\"")\n![](/beta/v1/files/file-1/content)'
    )


def test_authors_come_with_their_institutions() -> None:
    made = markdown(
        {
            "type": "author",
            "author": [
                {"id": 1, "name": "Ada", "institutionId": 9, "isStar": True},
                {"id": 2, "name": "Bob", "institutionId": 4},
                {"id": 3, "name": "Cy"},
                {"id": 4, "name": "Di", "isStar": True},
            ],
            "institution": [{"id": 4, "name": "1. Uni"}, {"id": 9, "name": "Lab"}],
        }
    )
    assert made == (
        "Ada<sup>2,\\*</sup>, Bob<sup>1</sup>, Cy, Di<sup>\\*</sup>\\\n"
        "<sup>1</sup> 1. Uni\\\n<sup>2</sup> Lab"
    )


def test_lists_nest_by_the_width_of_the_marker() -> None:
    nested = item("b", bullets("c\nd", style={"orderType": "upper-roman"}))
    assert markdown(bullets("a", nested)) == "- a\n- b\n  1. c\\\n     d"
    citation_numbers = bullets(item("b", bullets("c")), style={"orderType": "lower-alpha"})
    assert markdown(citation_numbers) == "1. b\n   - c"


def test_a_table_has_its_first_row_as_header() -> None:
    made = markdown(table(row("a|b", "c\nd"), row(cell(text("e|f", type="inlinecode")), "")))
    assert made == "| a\\|b | c<br>d |\n| --- | --- |\n| `e\\|f` |  |"


def test_a_table_is_aligned_as_its_style_says() -> None:
    style = {"textAlign": "end"}
    assert markdown(table(row("a", "b")) | {"style": style}) == "| a | b |\n| ---: | ---: |"
    wide = table(row(cell("a", colSpan=2)), row("b", "c")) | {"style": style}
    assert '<th align="right" colspan="2">a</th>' in markdown(wide)


def test_a_formula_in_a_table_with_spans_is_one() -> None:
    formula = text("x<y", type="latex")
    made = markdown(table(row(cell(formula, colSpan=2)), row("a", "b")), paragraph("below"))
    assert made == (
        '<table>\n<tr><th colspan="2">\n\n$x< y$\n\n</th></tr>\n'
        "<tr><td>a</td><td>b</td></tr>\n</table>\n\nbelow"
    )
    tokens = MarkdownIt("commonmark", {"html": True}).parse(made)
    kinds = [token.type for token in tokens if not token.type.endswith("_close")]
    block = ["paragraph_open", "inline"]
    assert kinds == ["html_block", *block, "html_block", *block]


def test_lists_that_follow_each_other_stay_apart() -> None:
    numbered = bullets("c", style={"orderType": "decimal"})
    made = markdown(bullets("a"), {"type": "code"}, bullets("b"), numbered, numbered)
    assert made == "- a\n\n<!-- -->\n\n- b\n\n1. c\n\n<!-- -->\n\n1. c"
    tokens = MarkdownIt("commonmark", {"html": True}).parse(made)
    assert sum(token.type.endswith("_list_open") for token in tokens) == 4


def test_bare_addresses_are_not_broken() -> None:
    address = "https://a.org/snake_case?a=1&b=2"
    assert markdown(paragraph(f"See {address}.")) == f"See {address}."
    assert markdown(paragraph("_a_ &lt; b_")) == "\\_a\\_ \\&lt; b\\_"
    assert markdown(paragraph("a&", text("lt;", bold=True))) == "a\\&**lt;**"


def test_a_span_makes_a_table_html() -> None:
    made = markdown(table(row(cell("a<b", colSpan=2)), row(cell(text("c", bold=True)), "d\ne")))
    assert made == (
        '<table>\n<tr><th colspan="2">a&lt;b</th></tr>\n'
        "<tr><td><strong>c</strong></td><td>d<br>e</td></tr>\n</table>"
    )


@each_row(
    "block",
    [
        {"type": "paragraph"},
        paragraph(" \n "),
        {"type": "h1"},
        {"type": "abstract", "style": {"language": "en"}},
        bullets(),
        table(),
        {"type": "label"},
        {"type": "equation"},
        {"type": "code"},
        {"type": "image"},
        {"type": "author"},
    ],
)
def test_a_block_without_content_is_left_out_of_the_text(block: Body) -> None:
    assert markdown(paragraph("a"), block, paragraph("b")) == "a\n\nb"


def test_parts_of_blocks_have_a_text_too() -> None:
    editor = Editor()
    editor.insert(
        bullets(item("a", bullets("b"))), table(row("c", "d")), label(label_item("e", "f"))
    )
    parts = {
        (0, 0): "a\n- b",
        (0, 0, 1): "- b",
        (1, 0): "| c | d |",
        (1, 0, 1): "d",
        (2, 0): "**e** f",
    }
    for path, expected in parts.items():
        element = editor.document.node_at(path)
        assert isinstance(element, Element)
        assert ElementRenderer(editor.document).block(element) == expected


def test_serial_numbers_and_hidden_indices_do_not_show() -> None:
    style = {"isHideIndex": True, "isTemplate": True}
    assert markdown(paragraph("a", kind="h1", style=style)) == "# a"
    equation = {"type": "equation", "equation": "x", "style": {"serial": True}}
    assert markdown(equation) == "$$\nx\n$$"


def test_latex_stays_within_its_dollars() -> None:
    leaf = text("\\text{a $b$}\n\\", type="latex")
    assert markdown(paragraph("x ", leaf, "!")) == "x $\\text{a \\$b\\$} \\ {}$!"
    assert markdown(paragraph(text("x", type="latex"), "2x")) == "$x$&#50;x"


def test_an_exclamation_mark_does_not_turn_a_link_into_an_image() -> None:
    link = text("b", type="url", url="https://b.org")
    assert markdown(paragraph("Wow!", link)) == "Wow\\![b](https://b.org)"
    assert markdown(paragraph("Wow! ", link)) == "Wow! [b](https://b.org)"

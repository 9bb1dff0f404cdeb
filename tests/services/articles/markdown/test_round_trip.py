"""Markdown, parsed by CommonMark with GFM's tables and strikethrough, gives the text back."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from services.articles.markdown import ElementRenderer, render_document
from tests.services.articles.random_edits import random_edits
from tests.services.articles.trees import (
    Body,
    Editor,
    bullets,
    cell,
    label,
    label_item,
    row,
    table,
    text,
)
from tests.thoroughness import examples

EXAMPLES = settings(max_examples=examples(30))
PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

HARD = "*_[]<>|$`~\\!&#;:()-+=.1\"'/ \n\t"
WIDE = "ab中文，。“”（é\u0301🙂👩\u200d👩אב\u00a0\u3000€"  # noqa: RUF001  # punctuation of Chinese is what breaks emphasis
TEXTS = st.text(alphabet=HARD + WIDE, max_size=8) | st.sampled_from(
    [
        *("# a", "1. a", "2) a", "- a", "+ a", "---", "===", "> a", "    a", "a\n===", "a\n---"),
        *(
            "a|b\n:-:",
            "```\na",
            "~~~",
            "[x]: http://a",
            "![a](b)",
            "[a](b)",
            "<b>",
            "<!-- x",
            "&lt;",
        ),
        *("http://a_b_.c", "a\\", "\\", "\\\n", "a\n\n", "\n\na", " a ", "a  \nb", "**a**", "<br>"),
        *(
            "\\|",
            "a|",
            "`",
            "``",
            "` `",
            "$x$",
            "[1]",
            "(a)",
            ": a",
            "!",
            "#",
            "a #",
            "[ ] a",
            "<a@b.c>",
        ),
    ]
)
MARKS: dict[str, st.SearchStrategy[Any]] = {
    "bold": st.booleans(),
    "italic": st.booleans(),
    "textDecoration": st.sampled_from(["underline", "line-through", None]),
    "color": st.sampled_from(["red", None]),
    "cite": st.sampled_from(["r0", "r1", None]),
}
ADDRESSES = st.sampled_from(["https://a.org/x(1)?a=1&copy;2|3 *", "javascript:alert(1)"])
LEAF = st.fixed_dictionaries({"text": TEXTS}, optional=MARKS)
LINK = st.fixed_dictionaries(
    {"text": TEXTS, "type": st.just("url"), "url": ADDRESSES}, optional=MARKS
)
# A line end in inline code is a space, which is all that CommonMark knows.
CODE = st.fixed_dictionaries(
    {"text": TEXTS.map(lambda t: t.replace("\n", " ")), "type": st.just("inlinecode")},
    optional={**MARKS, "url": ADDRESSES},
)
LEAVES = st.lists(LEAF | LEAF | LINK | CODE, min_size=1, max_size=5)
HEADINGS = ("title", "h1", "h2", "h3", "h4", "h5", "h6")
PROSE = st.sampled_from(["paragraph", "quote", "abstract", "label", *HEADINGS])


def editor_with(*blocks: Body) -> Editor:
    editor = Editor()
    for reference_id in ("r0", "r1"):
        editor.edit("add_reference", {"reference": {"id": reference_id}})
    editor.insert(*blocks)
    return editor


def shown(editor: Editor, leaves: list[Body]) -> str:
    """Return the text of leaves with the numbers of their citations."""
    made = ""
    # What is empty is not there, unless it cites, and breaks no run of citations.
    kept = [leaf for leaf in leaves if leaf["text"] or leaf.get("cite")] or leaves[:1]
    numbers = editor.document.numbers()
    for place, leaf in enumerate(kept):
        made += leaf["text"]
        following = kept[place + 1].get("cite") if place + 1 < len(kept) else None
        if leaf.get("cite") and leaf["cite"] != following:
            made += f"[{numbers[leaf['cite']]}]"
    return made


def inline_text(tokens: list[Token]) -> str:
    made = ""
    for token in tokens:
        if token.type in ("text", "code_inline", "text_special"):
            made += token.content
        elif token.type in ("hardbreak", "softbreak"):
            made += "\n"
        elif token.type == "html_inline":
            made += "\n" if token.content == "<br>" else ""
    return made


def parsed(markdown: str) -> list[tuple[str, str]]:
    """Return each piece of text with the type of the block around it."""
    tokens = PARSER.parse(markdown)
    contents = []
    for place, token in enumerate(tokens):
        if token.type == "inline":
            contents.append((tokens[place - 1].type, inline_text(token.children or [])))
        elif not token.type.endswith(("_open", "_close")):
            contents.append((token.type, token.content))
    return contents


@EXAMPLES
@given(PROSE, LEAVES)
def test_prose_gives_its_text_back(kind: str, leaves: list[Body]) -> None:
    editor = editor_with({"type": kind, "children": leaves})
    markdown = render_document(editor.document)[1]
    heading = kind in HEADINGS
    expected = shown(editor, leaves)
    if heading:
        expected = expected.replace("\n", " ")
    if not expected.strip():
        assert markdown == ""
        return
    assert parsed(markdown) == [("heading_open" if heading else "paragraph_open", expected)]


@EXAMPLES
@given(st.lists(st.lists(LEAVES, min_size=2, max_size=2), min_size=1, max_size=3))
def test_a_table_gives_its_cells_back(rows: list[list[list[Body]]]) -> None:
    cells = [[{"type": "table-cell", "children": leaves} for leaves in line] for line in rows]
    editor = editor_with(table(*(row(*line) for line in cells)))
    contents = parsed(render_document(editor.document)[1])
    assert {kind for kind, _ in contents} <= {"th_open", "td_open"}
    assert [content for _, content in contents] == [
        shown(editor, leaves) for line in rows for leaves in line
    ]


@EXAMPLES
@given(st.lists(LEAVES, min_size=1, max_size=4), st.sampled_from(["disc", "lower-roman"]))
def test_a_list_gives_its_items_back(items: list[list[Body]], order: str) -> None:
    made = [{"type": "list-item", "children": leaves} for leaves in items]
    nested = {"type": "list-item", "children": [text("outer"), bullets(*made)]}
    editor = editor_with(bullets(nested, *made, style={"orderType": order}))
    markdown = render_document(editor.document)[1]
    expected = [t for t in (shown(editor, leaves) for leaves in items) if t.strip()]
    assert [content for _, content in parsed(markdown)] == ["outer", *expected, *expected]
    count = sum(token.type == "list_item_open" for token in PARSER.parse(markdown))
    assert count == 2 * len(items) + 1


@EXAMPLES
@given(TEXTS, LEAVES)
def test_a_label_gives_names_and_contents_back(name: str, leaves: list[Body]) -> None:
    one = {"type": "label-item", "name": name, "children": leaves}
    editor = editor_with(label(label_item("First", "content"), one))
    content = shown(editor, leaves)
    parts = [name.replace("\n", " ").strip(), content if content.strip() else ""]
    second = " ".join(part for part in parts if part)
    expected = f"First content\n{second}" if second else "First content"
    markdown = render_document(editor.document)[1]
    assert parsed(markdown) == [("paragraph_open", expected)]


@EXAMPLES
@given(st.text(alphabet="`~ab\n $<", max_size=20), st.text(alphabet="`Ab +\\&;\n~", max_size=8))
def test_code_gives_itself_back(code: str, language: str) -> None:
    editor = editor_with({"type": "code", "code": code, "language": language})
    markdown = render_document(editor.document)[1]
    expected = [("fence", f"{code}\n")] if code else []
    assert parsed(markdown) == expected


@EXAMPLES
@given(TEXTS, TEXTS)
def test_an_image_gives_alt_and_title_back(alt: str, title: str) -> None:
    image = {"url": "https://a.org/x y(1).png", "alt": alt, "title": title}
    editor = editor_with({"type": "image", "image": [image, image]})
    inline = PARSER.parse(render_document(editor.document)[1])[1].children or []
    images = [token for token in inline if token.type == "image"]
    assert len(images) == 2
    assert images[0].attrs["src"] == "https://a.org/x%20y%281%29.png"
    assert images[0].attrs.get("title", "") == title.replace("\n", " ")
    assert inline_text(images[0].children or []) == alt.replace("\n", " ")


@EXAMPLES
@given(LEAVES)
def test_a_table_with_spans_gives_its_text_back_as_html(leaves: list[Body]) -> None:
    wide = {"type": "table-cell", "colSpan": 2, "children": leaves}
    editor = editor_with(table(row(wide), row("x", "y")))
    ((kind, html),) = parsed(render_document(editor.document)[1])
    reader = Reader()
    reader.feed(html)
    assert kind == "html_block"
    assert reader.cells == [shown(editor, leaves), "x", "y"]


class Reader(HTMLParser):
    """Gathers the text of table cells, and every tag and address."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("th", "td"):
            self.cells.append("")
        elif tag == "br":
            self.cells[-1:] = [self.cells[-1] + "\n"] if self.cells else []

    def handle_data(self, data: str) -> None:
        if self.cells and data != "\n":
            self.cells[-1] += data


HOSTILE = st.sampled_from(
    [
        *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</table><script>", "<!--"),
        *(
            "](javascript:alert(1))",
            "<javascript:alert(1)>",
            '" onclick="x',
            "`<b>`",
            "$<b>$",
            "\\<b>",
        ),
        *(
            "[x]: javascript:alert(1)",
            "a\n\n<script>x</script>",
            "<?php",
            "```\n<script>",
            "\\\\<b>",
        ),
    ]
)
ALLOWED_TAGS = set(
    "p h1 h2 h3 ul ol li table thead tbody tr th td pre code".split()
    + "em strong s del u span sup br img a".split()
)


@EXAMPLES
@given(HOSTILE, HOSTILE, st.sampled_from(["default", "latex", "inlinecode", "url"]))
def test_nothing_typed_becomes_html(one: str, two: str, kind: str) -> None:
    url = {"url": one} if kind == "url" else {}
    leaf = {"text": one + two, "type": kind, "bold": True, **url}
    leaves = [text(two), leaf, text(one, color="red")]
    editor = editor_with(
        {"type": "paragraph", "children": leaves},
        {"type": "h1", "children": leaves},
        bullets({"type": "list-item", "children": leaves}),
        table(row({"type": "table-cell", "children": leaves})),
        table(row({"type": "table-cell", "colSpan": 2, "children": leaves}), row("a", "b")),
        label({"type": "label-item", "name": one, "children": leaves}),
        {"type": "equation", "equation": f"{one}\n{two}"},
        {"type": "code", "code": one, "language": two},
        {"type": "image", "image": [{"url": f"http://a/{one}", "alt": one, "title": two}]},
        {
            "type": "author",
            "author": [{"id": 1, "name": one}],
            "institution": [{"id": 1, "name": two}],
        },
    )
    reader = Reader()
    reader.feed(PARSER.render(render_document(editor.document)[1]))
    assert set(reader.tags) <= ALLOWED_TAGS
    for name, value in reader.attributes:
        assert name in ("href", "src", "alt", "title", "style", "class", "start", "colspan")
        assert not re.match(r"(?i)\s*javascript:", value or "") or name not in ("href", "src")
        assert name != "style" or value == "color: red"


@EXAMPLES
@given(st.data())
def test_the_text_is_the_join_of_the_blocks_and_blocks_agree(data: st.DataObject) -> None:
    editor = Editor()
    list(random_edits(data, editor, at_most=3))
    rendered, whole = render_document(editor.document)
    assert whole.replace("\n\n<!-- -->", "") == "\n\n".join(b.text for b in rendered if b.text)
    for block, element in zip(rendered, editor.document.blocks, strict=True):
        assert (block.id, block.type) == (element.id, element.type)
        assert block.text == ElementRenderer(editor.document).block(element)


@pytest.mark.parametrize("spans", [{}, {"colSpan": 2}])
def test_no_table_has_a_blank_line(spans: dict[str, int]) -> None:
    second = [] if spans else ["x"]
    editor = editor_with(table(row(cell("a\n\nb\r\n\r\nc", **spans), *second)))
    assert "\n\n" not in render_document(editor.document)[1]

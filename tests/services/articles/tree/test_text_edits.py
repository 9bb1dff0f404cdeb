"""Edits of text by what it says."""

from typing import Any

import pytest

from services.articles.tree.inline_markdown import parse_inline
from services.articles.tree.nodes import Leaf
from tests.grid import each_row
from tests.services.articles.trees import Body, Editor, bullets, cell, item, row, table, text


def edited(leaves: list[Body], *edits: tuple[str, str]) -> Any:
    """Return the leaves of a paragraph after edits, without their type `default`."""
    editor = Editor()
    for reference in ("r", "s"):
        editor.edit("add_reference", {"reference": {"id": reference}})
    block = editor.insert({"type": "paragraph", "children": leaves})
    sent = [{"old": old, "new": new} for old, new in edits]
    editor.edit("edit_text", {"edits": sent, "blockId": block})
    return [
        {key: value for key, value in leaf.items() if value != "default"}
        for leaf in editor.children(block)
    ]


MOON = [text("The "), text("moon", bold=True), text(" pulls"), text(" the sea", cite="r")]


@each_row(
    ("old", "new", "leaves"),
    [
        # Marks and citations around a word stay, and so does its own mark.
        ("moon", "sun", [text("The "), text("sun", bold=True), *MOON[2:]]),
        ("The **moon** pulls", "The **moon** pulled", [*MOON[:2], text(" pulled"), MOON[3]]),
        ("**moon**", "moon", [text("The moon pulls"), MOON[3]]),
        ("pulls", "*pulls*", [*MOON[:2], text(" "), text("pulls", italic=True), MOON[3]]),
        ("moon", "*moon*", [text("The "), text("moon", bold=True, italic=True), *MOON[2:]]),
        ("pulls", "pulls $x_1$", [*MOON[:2], text(" pulls "), text("x_1", type="latex"), MOON[3]]),
        ("moon pulls the", "", [text("The "), text(" sea", cite="r")]),
        # No citation is lost with the words that it stood at.
        (" the sea[1]", "", [*MOON[:3], text("", cite="r")]),
        (" pulls the sea", "", [*MOON[:2], text("", cite="r")]),
        ("the sea[1]", "a sea[1]", [*MOON[:2], text(" pulls"), text(" a sea", cite="r")]),
    ],
)
def test_only_what_differs_is_replaced(old: str, new: str, leaves: list[Body]) -> None:
    assert edited(MOON, (old, new)) == leaves


def test_edits_see_the_results_of_those_before() -> None:
    assert edited([text("a")], ("a", "bc"), ("c", "d")) == [text("bd")]


def test_plain_text_and_its_markdown_are_both_found() -> None:
    typed = [text("2*3*4 and [1]")]
    assert edited(typed, ("2*3*4", "2*3*5")) == [text("2*3*5 and [1]")]
    assert edited(typed, ("2\\*3\\*4 and \\[1\\]", "6")) == [text("6")]


def test_texts_of_all_kinds_of_blocks_are_found() -> None:
    editor = Editor()
    editor.insert(
        bullets("tide", item("a", bullets("low tide"))),
        table(row("tide", cell("b"))),
        {"type": "equation", "equation": "\\text{tide}"},
        {"type": "code", "code": "tide()"},
        {"type": "image", "image": [{"url": "https://a.org/tide", "title": "tide"}]},
        {"type": "label", "children": [{"type": "label-item", "name": "tide"}]},
        {"type": "author", "author": [{"name": "tide"}]},
    )
    before = editor.document
    change = editor.edit("edit_text", {"edits": [{"old": "tide", "new": "flow", "all": True}]})
    blocks = list(editor.document.blocks)
    assert change.ids == tuple(block.id for block in blocks[:6])
    assert str(blocks).count("flow") == 7 and str(blocks).count("tide") == 2
    assert change.inverse.apply(editor.document).document == before


def test_a_text_without_one_place_names_its_candidates() -> None:
    editor = Editor()
    one, two = editor.insert(bullets("high tide", "low tide")), editor.insert(bullets("Tide\nmark"))
    first, second = (element.id for element in editor.document.blocks[0].elements)
    error = editor.refuse(
        "edit_text", {"edits": [{"old": "tide", "new": "x"}]}, 40005, "/edits/0/old"
    )
    assert f"{first}: 'high tide'; {second}: 'low tide'" in error.problem
    # In other letters, across the edge of a mark, with another word, and misspelt.
    for old in ("TIDE", "gh** tide", "ebb tide", "tidew", "heigh"):
        error = editor.refuse("edit_text", {"edits": [{"old": old, "new": "x"}]}, 40005)
        assert f"occurs nowhere. Similar: {first}: 'high tide'" in error.problem, old
    error = editor.refuse("edit_text", {"edits": [{"old": "moon", "new": "x"}]}, 40005)
    assert error.problem.endswith("occurs nowhere")
    body = {"blockId": two, "edits": [{"old": "low", "new": "x"}]}
    editor.refuse("edit_text", body, 40005)
    # All or none: the second edit fails.
    edits = [{"old": "high", "new": "x"}, {"old": "nowhere", "new": "x"}]
    editor.refuse("edit_text", {"edits": edits}, 40005, "/edits/1/old")
    assert one


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"edits": []}, 40003, "/edits"),
        ({"edits": [{"old": "a", "new": "b"}] * 201}, 40003, "/edits"),
        ({"edits": [{"old": "", "new": "b"}]}, 40003, "/edits/0/old"),
        ({"edits": [{"old": "a", "new": "b" * 10_000}] * 2}, 40003, "/edits"),
        ({"edits": [{"old": "a", "new": "a" * 5_000, "all": True}] * 2}, 40003, "/edits/1/new"),
        ({"edits": [{"old": "[1]", "new": "b"}]}, 40003, "/edits/0/old"),
        ({"edits": [{"old": "a", "new": "b [1]"}]}, 40003, "/edits/0/new"),
        ({"edits": [{"old": "a", "new": "a\0"}]}, 40003, "/edits/0/new"),
        ({"edits": [{"old": "a", "new": '<span style="color: x;y">a</span>'}]}, 40003, None),
        ({"edits": [{"old": "a", "new": "b"}], "blockId": "nowhere"}, 40403, "/blockId"),
    ],
)
def test_an_edit_that_fits_no_document_is_refused(body: Body, code: int, pointer: str) -> None:
    editor = Editor()
    editor.insert({"type": "paragraph", "children": [text("a")]})
    editor.refuse("edit_text", body, code, pointer)


@each_row(
    ("markdown", "leaves"),
    [
        ("a_b * c", [Leaf("a_b * c")]),
        ("***a***", [Leaf("a", bold=True, italic=True)]),
        (
            "~~a~~ <u>b</u>",
            [Leaf("a", decoration="line-through"), Leaf(" "), Leaf("b", decoration="underline")],
        ),
        ('<span style="color: red">a</span>', [Leaf("a", color="red")]),
        ("[a](https://a.org)", [Leaf("a", "url", url="https://a.org")]),
        ("[a](javascript:b)", [Leaf("[a](javascript:b)")]),
        ("`a*b*` $c$", [Leaf("a*b*", "inlinecode"), Leaf(" "), Leaf("c", "latex")]),
        ("$5 and $6, $a $", [Leaf("$5 and $6, $a $")]),
        (" a\\\nb<br>c ", [Leaf(" a"), Leaf("\n"), Leaf("b"), Leaf("\n"), Leaf("c ")]),
        ("<b>a</b> &amp;", [Leaf("<b>a</b> &")]),
    ],
)
def test_inline_markdown_is_read_as_it_is_written(markdown: str, leaves: list[Leaf]) -> None:
    joined: list[Leaf] = []
    for leaf in parse_inline(markdown).leaves:
        if joined and joined[-1].same_marks(leaf) and "\n" not in (joined[-1].text, leaf.text):
            joined[-1] = Leaf(
                joined[-1].text + leaf.text,
                *[
                    getattr(leaf, n)
                    for n in ("type", "bold", "italic", "decoration", "color", "url")
                ],
            )
        else:
            joined.append(leaf)
    assert joined == leaves

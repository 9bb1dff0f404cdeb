"""Which styles fit, how they merge, what finally applies."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from services.articles.tree.style import (
    apply_style_patch,
    computed_style,
    inverse_patch,
    merge_patch,
)
from tests.grid import each_row
from tests.services.articles.trees import Body, Editor, bullets, paragraph, row, table
from tests.thoroughness import examples

VALUES = st.recursive(
    st.none() | st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@each_row(
    ("target", "patch", "result"),
    # The examples of RFC 7396, appendix A.
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_patches_merge_as_the_rfc_has_it(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@settings(max_examples=examples(60))
@given(OBJECTS, OBJECTS)
def test_a_patch_can_be_undone(start: Body, patch: Body) -> None:
    target = apply_style_patch({}, start)
    assert (
        apply_style_patch(apply_style_patch(target, patch), inverse_patch(target, patch)) == target
    )


FITTING: list[tuple[str, Body]] = [
    ("paragraph", {"indent": True}),
    ("equation", {"serial": False}),
    ("image", {"serial": True, "titleLanguage": "zh", "titleMargin": 3, "titlePadding": "1em"}),
    ("image", {"columns": 3, "columnRatios": [1, 2.5, 1], "style": {"columnGap": 3}}),
    ("h1", {"isHideIndex": True}),
    ("h2", {"isHideIndex": True}),
    ("h3", {"isHideIndex": True}),
    ("table", {"textAlign": "center", "verticalAlign": "middle", "padding": 3}),
    ("table", {"firstRowBold": True, "firstColBold": False}),
    ("code", {"isHideLanguage": True}),
    ("label", {"nameWidth": "4em", "columnGap": 3, "rowGap": "1em", "twoColumn": True}),
    ("abstract", {"language": "zh", "titlePosition": "top", "titlePadding": 3}),
    ("author", {"authorStyle": {"gap": 3}, "institutionStyle": {"fontSize": "1em"}}),
    ("list", {"orderType": "lower-alpha", "orderWidth": 2, "indentWidth": "2em"}),
    ("list", {"style": {"alignItems": "center", "rowGap": 1}}),
]


@each_row(("kind", "style"), FITTING)
def test_properties_fit_their_type_and_merge(kind: str, style: Body) -> None:
    editor = Editor()
    made = editor.insert({"type": kind, "style": {"isTemplate": True, "style": {"color": "red"}}})
    before = editor.document
    change = editor.edit("set_block_style", {"blockId": made, **style})
    css = {"color": "red", **style.get("style", {})}
    assert editor.json(made)["style"] == {"isTemplate": True, **style, "style": css}
    assert change.inverse.apply(editor.document).document == before


@each_row(("kind", "style"), FITTING)
def test_properties_do_not_fit_another_type(kind: str, style: Body) -> None:
    editor = Editor()
    made = editor.insert({"type": "title"})
    body = {"blockId": made, **style}
    editor.refuse("set_block_style", body, 40003)
    editor.refuse(
        "insert_blocks", {"path": [0], "blocks": [{"type": "title", "style": style}]}, 40003
    )


@each_row(
    ("style", "pointer"),
    [
        ({"indent": "yes"}, "/indent"),
        ({"indents": True}, "/indents"),
        ({"style": {"colour": "red"}}, "/style/colour"),
        ({"style": {"rowGap": 1}}, "/style/rowGap"),
        ({"style": {"color": True}}, "/style/color"),
        ({"style": {"color": ["red"]}}, "/style/color"),
        ({"style": {"color": "\0"}}, "/style/color"),
        ({"style": "red"}, "/style"),
        ({"isTemplate": 1}, "/isTemplate"),
        ({"children": []}, "/children"),
    ],
)
def test_a_wrong_style_of_a_block_is_refused(style: Body, pointer: str) -> None:
    editor = Editor()
    made = editor.insert(paragraph("a"))
    editor.refuse("set_block_style", {"blockId": made, **style}, 40003, pointer)


@each_row(
    ("kind", "style"),
    [
        ("image", {"columns": 4}),
        ("image", {"columns": 1.0}),
        ("image", {"columnRatios": [0]}),
        ("image", {"columnRatios": [1, 1, 1, 1]}),
        ("image", {"columnRatios": "1:2"}),
        ("table", {"textAlign": "left"}),
        ("abstract", {"language": "fr"}),
        ("abstract", {"titlePosition": "right"}),
        ("author", {"authorStyle": {"borderColor": "red"}}),
        ("label", {"nameWidth": 3}),
    ],
)
def test_a_value_out_of_its_range_is_refused(kind: str, style: Body) -> None:
    editor = Editor()
    made = editor.insert({"type": kind})
    editor.refuse("set_block_style", {"blockId": made, **style}, 40003)


def test_null_takes_a_local_value_away() -> None:
    editor = Editor()
    style = {"indent": True, "style": {"color": "red", "width": 3}}
    made = editor.insert(paragraph("a", style=style))
    editor.edit("set_block_style", {"blockId": made, "indent": None, "style": {"color": None}})
    assert editor.json(made)["style"] == {"style": {"width": 3}}
    editor.edit("set_block_style", {"blockId": made, "style": None})
    assert "style" not in editor.json(made)


def test_parts_of_blocks_take_css() -> None:
    editor = Editor()
    editor.insert(table(row("a")))
    editor.edit("set_block_style", {"blockId": "e3", "style": {"backgroundColor": "red"}})
    editor.refuse("set_block_style", {"blockId": "e3", "textAlign": "center"}, 40003, "/textAlign")
    editor.refuse("set_block_style", {"blockId": "no"}, 40403, "/blockId")


def test_the_style_of_the_article_merges_deeply() -> None:
    editor = Editor()
    first = {
        "global": {"paperSize": "A4", "margin": {"top": 1, "left": "2cm"}},
        "h1": {"style": {}},
    }
    editor.edit("set_article_style", {"style": first})
    before = editor.document
    second = {
        "global": {"orientation": "landscape", "margin": {"top": None, "right": 3}},
        "h1": None,
        "list": {"orderType": "decimal"},
    }
    change = editor.edit("set_article_style", {"style": second})
    assert editor.document.style == {
        "global": {
            "paperSize": "A4",
            "orientation": "landscape",
            "margin": {"left": "2cm", "right": 3},
        },
        "list": {"orderType": "decimal"},
    }
    assert change.inverse.apply(editor.document).document == before


@each_row(
    ("style", "pointer"),
    [
        ({"globals": {}}, "/style/globals"),
        ({"global": {"paperSize": "A6"}}, "/style/global/paperSize"),
        ({"global": {"orientation": "up"}}, "/style/global/orientation"),
        ({"global": {"margin": {"start": 1}}}, "/style/global/margin/start"),
        ({"global": {"marginTop": 1}}, "/style/global/marginTop"),
        ({"list-item": {}}, "/style/list-item"),
        ({"title": {"indent": True}}, "/style/title/indent"),
        ({"title": {"style": {"gap": 1}}}, "/style/title/style/gap"),
        (3, "/style"),
        (None, "/style"),
    ],
)
def test_a_wrong_style_of_the_article_is_refused(style: Any, pointer: str) -> None:
    Editor().refuse("set_article_style", {"style": style}, 40003, pointer)


def test_computed_style_merges_default_global_type_and_local() -> None:
    editor = Editor()
    style = {
        "global": {"paperSize": "A4", "color": "red", "fontSize": 10, "lineHeight": 1},
        "list": {"style": {"fontSize": 11, "width": 5}, "orderWidth": 3},
    }
    editor.edit("set_article_style", {"style": style})
    editor.insert(bullets("a", style={"style": {"width": 6}, "indentWidth": 1}))
    block = editor.document.blocks[0]
    assert computed_style(editor.document.style, block) == {
        "style": {"color": "red", "fontSize": 11, "lineHeight": 1, "width": 6},
        "orderType": "disc",
        "orderWidth": 3,
        "indentWidth": 1,
    }
    assert computed_style({}, block) == {**block.style, "orderType": "disc"}

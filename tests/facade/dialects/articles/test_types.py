"""The documented types of blocks and styles name exactly what the tree takes."""

from typing import Any

import orjson
import pytest

from facade.dialects import articles
from services.articles.style import check_article_style, check_element_style
from services.articles.tree.errors import EditError
from services.articles.tree.nodes import BLOCK_TYPES, ELEMENT_TYPES, PART_TYPES
from services.articles.tree.parsing import parse_element, parse_leaf

SCHEMAS = orjson.loads(orjson.dumps(articles.schemas()))
UNKNOWN = {"unknown": 1}


def schema(name: str) -> dict[str, Any]:
    return SCHEMAS[f"articles.{name}"]


def documented(name: str) -> set[str]:
    described = schema(name)
    assert described["additionalProperties"] is False
    return set(described["properties"])


def block_schemas() -> dict[str, str]:
    """Give the schema of each element type."""
    found = {}
    for name, described in SCHEMAS.items():
        kind = described.get("properties", {}).get("type", {})
        kinds = [kind["const"]] if "const" in kind else kind.get("enum", [])
        found |= {kind: name.removeprefix("articles.") for kind in kinds if kind in ELEMENT_TYPES}
    return found


def style_schema(kind: str) -> str:
    style = schema(block_schemas()[kind])["properties"]["style"]
    return style["$ref"].removeprefix("#/components/schemas/articles.")


def nullable(described: dict[str, Any]) -> str:
    """Give the schema in a `… | null`."""
    (ref,) = (member["$ref"] for member in described["anyOf"] if "$ref" in member)
    return ref.removeprefix("#/components/schemas/articles.")


def said(check: Any, *arguments: Any) -> str:
    with pytest.raises(EditError) as refused:
        check(*arguments)
    return refused.value.message


def known(check: Any, *arguments: Any) -> set[str]:
    """Give the keys that the tree says it knows, where it refuses an unknown one."""
    return set(said(check, *arguments).partition("known are ")[2].split(", "))


def parse(block: object) -> object:
    return parse_element(block, "", 1, lambda: "id", {})


@pytest.mark.parametrize("kind", ELEMENT_TYPES)
class TestElements:
    def test_fields(self, kind):
        assert documented(block_schemas()[kind]) == known(parse, {"type": kind, **UNKNOWN})

    def test_properties(self, kind):
        taken = known(check_element_style, kind, UNKNOWN, "")
        assert documented(style_schema(kind)) == taken

    def test_css(self, kind):
        style = schema(style_schema(kind))["properties"]["style"]
        taken = known(check_element_style, kind, {"style": UNKNOWN}, "")
        assert documented(nullable(style)) == taken

    def test_what_properties_choose_from(self, kind):
        for name, described in schema(style_schema(kind))["properties"].items():
            for member in described.get("anyOf", ()):
                if "enum" in member:
                    told = said(check_element_style, kind, {name: "unknown"}, "")
                    assert member["enum"] == told.partition("must be one of ")[2].split(", ")

    def test_what_is_documented_as_a_flag_is_one(self, kind):
        for name, described in schema(style_schema(kind))["properties"].items():
            if {"type": "boolean"} in described.get("anyOf", ()):
                check_element_style(kind, {name: True}, "")

    def test_only_its_type_is_needed(self, kind):
        assert schema(block_schemas()[kind])["required"] == ["type"]
        parse({"type": kind})


def test_every_element_is_documented_and_those_that_can_be_inserted_as_such():
    assert block_schemas().keys() == set(ELEMENT_TYPES)
    inserted = schema("InsertBlocks")["properties"]["blocks"]["items"]["discriminator"]["mapping"]
    assert inserted.keys() == {*BLOCK_TYPES, *PART_TYPES} - {"table-cell"}


def test_leaves():
    assert documented("TextLeaf") == known(parse_leaf, UNKNOWN, "")
    assert schema("TextLeaf")["required"] == ["text"]
    kinds = said(parse_leaf, {"type": "unknown"}, "").partition("must be one of ")[2]
    assert schema("TextLeaf")["properties"]["type"]["enum"] == kinds.split(", ")


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("ImageItem", {"type": "image", "image": [UNKNOWN]}),
        ("AuthorItem", {"type": "author", "author": [UNKNOWN]}),
        ("Institution", {"type": "author", "institution": [UNKNOWN]}),
    ],
)
def test_what_void_blocks_hold(name, block):
    assert documented(name) == known(parse, block)


def test_css_of_authors():
    for part in ("authorStyle", "institutionStyle"):
        taken = known(check_element_style, "author", {part: UNKNOWN}, "")
        assert documented("AuthorCss") == taken


def test_the_articles_style():
    assert documented("ArticleStyle") == known(check_article_style, UNKNOWN, "")
    assert documented("GlobalStyle") == known(check_article_style, {"global": UNKNOWN}, "")
    margin = {"global": {"margin": UNKNOWN}}
    assert documented("Margin") == known(check_article_style, margin, "")
    for kind in BLOCK_TYPES:
        described = schema("ArticleStyle")["properties"][kind]
        assert nullable(described) == style_schema(kind)


def test_block_style_takes_what_any_block_has():
    own = {"sessionId", "blockId", "ifRevision"}
    properties = set().union(*(documented(style_schema(kind)) for kind in BLOCK_TYPES))
    assert documented("SetBlockStyle") - own == properties


def test_what_may_be_left_out_has_no_default_of_null():
    assert b'"default":null' not in orjson.dumps(SCHEMAS)

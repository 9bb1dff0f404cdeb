"""The OpenAPI schemas of blocks and styles, beside what the article service takes."""

from typing import Any

import orjson
import pytest

from services.articles.tree.errors import EditError
from services.articles.tree.nodes import (
    BLOCK_TYPES,
    CAPTIONED_TYPES,
    CONTENT_KEYS,
    ELEMENT_TYPES,
    OPTIONAL_KEYS,
    PART_TYPES,
)
from services.articles.tree.parsing import parse_element, parse_leaf
from services.articles.tree.style import check_article_style, check_element_style
from services.common.articles.blocks import ELEMENTS, BlockContent
from tests.openapi import openapi_document

UNKNOWN = {"unknown": 1}


def schemas() -> dict[str, dict[str, Any]]:
    every = openapi_document()["components"]["schemas"]
    return {name: one for name, one in every.items() if name.startswith("articles.")}


def schema(name: str) -> dict[str, Any]:
    described: dict[str, Any] = openapi_document()["components"]["schemas"][f"articles.{name}"]
    return described


def documented(name: str) -> set[str]:
    described = schema(name)
    assert described["additionalProperties"] is False
    return set(described["properties"])


def nullable(described: dict[str, Any]) -> str:
    """Return the schema in a `… | null`."""
    (ref,) = (member["$ref"] for member in described["anyOf"] if "$ref" in member)
    return ref.removeprefix("#/components/schemas/articles.")


def style_schema(kind: str) -> str:
    style = schema(ELEMENTS[kind].__name__)["properties"]["style"]
    return style["$ref"].removeprefix("#/components/schemas/articles.")


def error(check: Any, *arguments: Any) -> str:
    with pytest.raises(EditError) as raised:
        check(*arguments)
    return raised.value.message


def known(check: Any, *arguments: Any) -> set[str]:
    """Return the keys that an error lists beside an unknown one."""
    return set(error(check, *arguments).partition("known fields: ")[2].split(", "))


def parse(block: object) -> object:
    return parse_element(block, "", 1, lambda: "id", {})


@pytest.mark.parametrize("kind", ELEMENT_TYPES)
class TestElements:
    def test_fields(self, kind):
        fields = {"id", "type", "children", "style", *CONTENT_KEYS.get(kind, ())}
        fields |= {*OPTIONAL_KEYS.get(kind, ())}
        fields |= {"caption"} if kind in CAPTIONED_TYPES else set()
        assert documented(ELEMENTS[kind].__name__) == fields
        assert known(parse, {"type": kind, **UNKNOWN}) == fields

    def test_properties(self, kind):
        taken = known(check_element_style, kind, UNKNOWN, "")
        assert documented(style_schema(kind)) == taken

    def test_css(self, kind):
        style = schema(style_schema(kind))["properties"]["style"]
        taken = known(check_element_style, kind, {"style": UNKNOWN}, "")
        assert documented(nullable(style)) == taken

    def test_choices_of_properties(self, kind):
        for name, described in schema(style_schema(kind))["properties"].items():
            for member in described.get("anyOf", ()):
                if "enum" in member:
                    message = error(check_element_style, kind, {name: "unknown"}, "")
                    assert member["enum"] == message.partition("must be one of ")[2].split(", ")

    def test_only_the_type_is_required(self, kind):
        assert schema(ELEMENTS[kind].__name__)["required"] == ["type"]
        parse({"type": kind})


def test_all_elements_but_cells_can_be_inserted():
    inserted = schema("InsertBlocks")["properties"]["blocks"]["items"]["discriminator"]["mapping"]
    assert inserted.keys() == {*BLOCK_TYPES, *PART_TYPES} - {"table-cell"}


def test_leaves():
    assert documented("TextLeaf") == known(parse_leaf, UNKNOWN, "")
    assert schema("TextLeaf")["required"] == ["text"]
    kinds = error(parse_leaf, {"text": "", "type": "unknown"}, "").partition("must be one of ")[2]
    assert [*schema("TextLeaf")["properties"]["type"]["enum"], "note", "ref"] == kinds.split(", ")
    for name, kind in (("NoteLeaf", "note"), ("RefLeaf", "ref")):
        assert documented(name) == known(parse_leaf, {**UNKNOWN, "type": kind}, "")


def test_citations():
    parse_unknown = {"text": "", "cite": [UNKNOWN]}
    assert documented("CitationItem") == known(parse_leaf, parse_unknown, "")


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("ImageItem", {"type": "image", "image": [UNKNOWN]}),
        ("AuthorItem", {"type": "author", "author": [{"name": "", **UNKNOWN}]}),
        ("Institution", {"type": "author", "institution": [{"name": "", **UNKNOWN}]}),
    ],
)
def test_items_of_void_blocks(name, block):
    field = next(key for key in block if key != "type")
    assert documented(name) == known(parse, block)
    assert field in BlockContent.__annotations__


def test_css_of_authors():
    for part in ("authorStyle", "institutionStyle"):
        taken = known(check_element_style, "author", {part: UNKNOWN}, "")
        assert documented("AuthorCss") == taken


def test_the_style_of_an_article():
    assert documented("ArticleStyle") == known(check_article_style, UNKNOWN, "")
    assert documented("GlobalStyle") == known(check_article_style, {"global": UNKNOWN}, "")
    margin = {"global": {"margin": UNKNOWN}}
    assert documented("Margin") == known(check_article_style, margin, "")
    for kind in BLOCK_TYPES:
        described = schema("ArticleStyle")["properties"][kind]
        assert nullable(described) == style_schema(kind)


def test_block_style_takes_the_properties_of_any_block():
    own = {"sessionId", "requestId", "blockId", "ifRevision", "ifBlockRevision", "suggest"}
    properties = set().union(*(documented(style_schema(kind)) for kind in BLOCK_TYPES))
    assert documented("SetBlockStyle") - own == properties


def test_optional_fields_have_no_default_of_null():
    assert b'"default":null' not in orjson.dumps(schemas())

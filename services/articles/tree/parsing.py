"""Parsing of callers' JSON into nodes, with all checks that do not depend on the document."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.articles.tree import schema
from services.articles.tree.colours import is_colour
from services.articles.tree.errors import EditError, EditErrorCode, join_pointer
from services.articles.tree.nodes import (
    CONTENT_KEYS,
    ELEMENT_TYPES,
    HOLDS,
    LEAVES_ONLY_TYPES,
    VOID_TYPES,
    Element,
    Json,
    Leaf,
    Node,
)
from services.articles.tree.normalise import grid, normal_children
from services.articles.tree.style import apply_style_patch, check_element_style
from services.articles.tree.values import array, mapping, schema_error
from services.common.articles import limits
from services.common.articles.blocks import ELEMENTS, Marks, TextLeaf, VoidContent

NewId = Callable[[], str]

# Default content of void blocks.
_EMPTY: Mapping[str, Json] = {
    "equation": "",
    "code": "",
    "language": "",
    "image": (),
    "author": (),
    "institution": (),
}
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]", re.IGNORECASE)
_DATA_IMAGE = re.compile(r"data:image/[a-z0-9.+-]+[;,]", re.IGNORECASE | re.ASCII)


def parse_leaf(value: Any, pointer: str) -> Leaf:
    """Parse a TextLeaf. False and null marks are dropped."""
    schema.check(TextLeaf, value, pointer)
    kind, url, color = value.get("type", "default"), value.get("url"), value.get("color")
    if kind == "url" and url is None:
        raise schema_error(join_pointer(pointer, "url"), "is required for a leaf of type url")
    if kind != "url" and url is not None:
        raise schema_error(join_pointer(pointer, "url"), "allowed only for a leaf of type url")
    _check_colour(color, pointer)
    return Leaf(
        value["text"],
        kind,
        bool(value.get("bold")),
        bool(value.get("italic")),
        value.get("textDecoration"),
        color,
        url,
        value.get("cite"),
    )


def check_leaf(leaf: Leaf, pointer: str) -> None:
    """Check the colour and the address of a leaf that was not parsed from JSON."""
    _check_colour(leaf.color, pointer)
    if leaf.url is not None and len(leaf.url) > limits.URL:
        raise schema_error(pointer, f"an address must have at most {limits.URL} characters")


def parse_marks(value: Mapping[str, Any]) -> Mapping[str, bool | str | None]:
    """Return marks, checked; null removes a mark."""
    schema.check(Marks, value, "")
    _check_colour(value.get("color"), "")
    return value


def _check_colour(color: str | None, pointer: str) -> None:
    if color is not None and not is_colour(color):
        problem = "must be a CSS colour such as #c00, tomato or rgb(200, 0, 0)"
        raise schema_error(join_pointer(pointer, "color"), problem)


def parse_children(
    value: object, pointer: str, depth: int, new_id: NewId, sent_ids: dict[str, str]
) -> tuple[Node, ...]:
    """Parse an array of TextLeaf and ElementBlock, distinguished by `type`.

    Args:
        value: the caller's JSON value.
        pointer: JSON pointer to the value.
        depth: depth of the elements among the children; 1 is the top of the document.
        new_id: returns the id of each element.
        sent_ids: filled with the ids that elements were sent with, by their new ids.
    """
    return tuple(
        [
            parse_element(child, join_pointer(pointer, index), depth, new_id, sent_ids)
            if _is_element(child)
            else parse_leaf(child, join_pointer(pointer, index))
            for index, child in enumerate(array(value, pointer))
        ]
    )


def _is_element(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("type") in ELEMENT_TYPES


def parse_element(
    value: Any, pointer: str, depth: int, new_id: NewId, sent_ids: dict[str, str]
) -> Element:
    """Parse an ElementBlock into its normal form, with a new id; see `parse_children`."""
    if depth > limits.DEPTH:
        raise schema_error(pointer, f"must be nested at most {limits.DEPTH} elements deep")
    kind = mapping(value, pointer).get("type")
    if not isinstance(kind, str) or kind not in ELEMENT_TYPES:
        problem = f"must be one of {', '.join(ELEMENT_TYPES)}"
        raise schema_error(join_pointer(pointer, "type"), problem)
    # The style is checked separately, and an id of null counts as absent.
    fields = {
        key: field
        for key, field in value.items()
        if key != "style" and not (key == "id" and field is None)
    }
    schema.check(ELEMENTS[kind], fields, pointer)
    made_id = new_id()
    if "id" in fields:
        sent_ids[made_id] = fields["id"]
    style: Mapping[str, Json] = {}
    if value.get("style") is not None:
        check_element_style(kind, value["style"], join_pointer(pointer, "style"))
        style = apply_style_patch({}, value["style"])
    children_pointer = join_pointer(pointer, "children")
    children = parse_children(
        fields.get("children", ()), children_pointer, depth + 1, new_id, sent_ids
    )
    content = _content(kind, fields, pointer)
    return with_checked_children(
        Element(made_id, kind, (), style, content), children, children_pointer
    )


def with_checked_children(element: Element, children: Sequence[Node], pointer: str) -> Element:
    """Return the element with other children, in normal form.

    Raises:
        EditError: the children do not fit the type, or do not form a valid table.
    """
    _fit(element.type, children, pointer)
    content = element.content
    if element.type == "table":
        rows = [child for child in children if isinstance(child, Element)]
        content = grid(rows, pointer)
    normal = normal_children(element.type, children)
    return Element(element.id, element.type, normal, element.style, content)


def _fit(kind: str, children: Sequence[Node], pointer: str) -> None:
    held_type = HOLDS.get(kind)
    leaves = sum(isinstance(child, Leaf) for child in children)
    if kind in VOID_TYPES and children:
        raise schema_error(pointer, f"a block of type {kind} cannot have children")
    for index, child in enumerate(children):
        if isinstance(child, Element) and child.type != held_type:
            raise schema_error(join_pointer(pointer, index), f"{kind} cannot contain {child.type}")
    if kind == "list-item":
        if any(isinstance(child, Element) for child in children[:-1]):
            raise schema_error(
                pointer, "a list-item must contain leaves, then at most one nested list"
            )
    elif kind == "label":
        if 0 < leaves < len(children):
            raise schema_error(
                pointer, "a label must contain either leaves or label-items, not both"
            )
    elif leaves and kind not in LEAVES_ONLY_TYPES:
        raise schema_error(pointer, f"{kind} must contain {held_type}, and no text of its own")


def _content(kind: str, fields: Mapping[str, Any], pointer: str) -> dict[str, Json]:
    """Return the fields that are specific to a type, with defaults for absent ones."""
    match kind:
        case "label-item":
            return {"name": fields.get("name", "")}
        case "table-cell":
            return {"colSpan": fields.get("colSpan", 1), "rowSpan": fields.get("rowSpan", 1)}
        case "table":
            return {"rowLength": 0, "colLength": 0}
        case _:
            return {
                key: _field(key, fields.get(key, _EMPTY[key]), pointer)
                for key in CONTENT_KEYS.get(kind, ())
            }


def parse_void_content(fields: Mapping[str, Any], pointer: str) -> dict[str, Json]:
    """Return fields of void blocks, checked and in normal form."""
    schema.check(VoidContent, fields, pointer)
    return {key: _field(key, value, pointer) for key, value in fields.items()}


def _field(key: str, value: Any, pointer: str) -> Json:
    """Return the normal form of a void block's content field, whose schema has been checked."""
    pointer = join_pointer(pointer, key)
    if key == "image":
        return [_image(item, join_pointer(pointer, index)) for index, item in enumerate(value)]
    if key == "author":
        return [_author(item, index) for index, item in enumerate(value)]
    if key == "institution":
        return _institutions(value, pointer)
    checked: Json = value
    return checked


def _image(item: Mapping[str, Json], pointer: str) -> Json:
    """Return an image, checked to have exactly one of url and fileId, without null fields."""
    url = item.get("url")
    if (url is None) == (item.get("fileId") is None):
        raise EditError(EditErrorCode.FIELDS, pointer, "exactly one of url and fileId is required")
    if isinstance(url, str):
        _check_image_url(url, join_pointer(pointer, "url"))
    names = ("url", "fileId", "alt", "title", "width", "height")
    return {name: item[name] for name in names if item.get(name) is not None}


def _check_image_url(url: str, pointer: str) -> None:
    if _DATA_IMAGE.match(url):
        return
    if not _WEB_ADDRESS.match(url):
        raise schema_error(pointer, "must be an http or https URL or a data:image URL")
    if len(url) > limits.URL:
        raise schema_error(pointer, f"must have at most {limits.URL} characters, has {len(url)}")


def _author(item: Mapping[str, Json], index: int) -> Json:
    return {
        "id": item.get("id", index + 1),
        "name": item["name"],
        "institutionId": item.get("institutionId", 0),
        "isStar": item.get("isStar", False),
    }


def _institutions(items: Sequence[Mapping[str, Json]], pointer: str) -> list[Json]:
    institutions: dict[Json, Json] = {}
    for index, item in enumerate(items):
        identifier = item.get("id", index + 1)
        if identifier in institutions:
            where = join_pointer(join_pointer(pointer, index), "id")
            raise schema_error(where, "id of another institution of the block")
        institutions[identifier] = {"id": identifier, "name": item["name"]}
    return list(institutions.values())

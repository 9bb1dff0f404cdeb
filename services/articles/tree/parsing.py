"""Parsing of callers' JSON into nodes, with all checks that do not depend on the document."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from services.articles.tree import schema
from services.articles.tree.colours import is_colour
from services.articles.tree.errors import EditError, EditErrorCode, join_pointer
from services.articles.tree.nodes import (
    CONTENT_KEYS,
    ELEMENT_TYPES,
    HOLDS,
    LEAVES_ONLY_TYPES,
    LINKED_TYPES,
    OBJECT,
    OPTIONAL_KEYS,
    VOID_TYPES,
    Cite,
    Element,
    Json,
    Leaf,
    Node,
    cite_from_json,
    leaf_to_json,
)
from services.articles.tree.normalise import (
    grid,
    normal_align,
    normal_children,
    normal_leaves,
)
from services.articles.tree.style import apply_style_patch, check_element_style
from services.articles.tree.values import array, mapping, schema_error, string
from services.common.articles import limits
from services.common.articles.blocks import (
    ELEMENTS,
    BlockContent,
)
from services.common.articles.leaves import (
    CitationItem,
    Marks,
    NoteLeaf,
    RefLeaf,
    TextLeaf,
)
from services.common.articles.texts import orcid_of

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
    """Parse a leaf of any type. False and null marks are dropped."""
    kind = value.get("type", "default") if isinstance(value, Mapping) else "default"
    if kind == "note":
        return _note(value, pointer)
    if kind == "ref":
        schema.check(RefLeaf, value, pointer)
        return _marked_leaf(OBJECT, value, pointer)
    try:
        schema.check(TextLeaf, value, pointer)
    except EditError as error:
        if error.pointer == join_pointer(pointer, "type") and isinstance(kind, str):
            error = schema_error(error.pointer, f"{error.problem}, note, ref")
        raise error from None
    url = value.get("url")
    if kind == "url" and url is None:
        raise schema_error(join_pointer(pointer, "url"), "is required for a leaf of type url")
    if kind not in LINKED_TYPES and url is not None:
        problem = f"allowed only for a leaf of type {' or '.join(LINKED_TYPES)}"
        raise schema_error(join_pointer(pointer, "url"), problem)
    if kind != "latex" and value.get("form") is not None:
        raise schema_error(join_pointer(pointer, "form"), "allowed only for latex and ref")
    return _marked_leaf(value["text"], value, pointer)


def _marked_leaf(text: str, value: Mapping[str, Any], pointer: str) -> Leaf:
    color, cite = value.get("color"), value.get("cite")
    if color is not None:
        _check_colour(color, pointer)
    if cite is not None:
        cite = parse_cite(cite, join_pointer(pointer, "cite"))
    return Leaf(
        text,
        value.get("type", "default"),
        bool(value.get("bold")),
        bool(value.get("italic")),
        value.get("textDecoration"),
        color,
        value.get("url"),
        cite,
        value.get("script"),
        value.get("form"),
        value.get("ref"),
    )


def _note(value: Mapping[str, Any], pointer: str) -> Leaf:
    schema.check(NoteLeaf, value, pointer)
    text, children = value.get("text"), value.get("children")
    if bool(text) == bool(children):
        problem = "exactly one of text and children is required for a leaf of type note"
        raise EditError(EditErrorCode.FIELDS, pointer, problem)
    if text:
        return Leaf(OBJECT, "note", note=(Leaf(text),))
    leaves = _leaf_array(children, join_pointer(pointer, "children"))
    for index, leaf in enumerate(leaves):
        if leaf.type == "note":
            where = join_pointer(join_pointer(pointer, "children"), index)
            raise schema_error(where, "a note cannot contain a note")
    note = normal_leaves(leaves)
    if not any(leaf.text or leaf.cite is not None for leaf in note):
        raise schema_error(join_pointer(pointer, "children"), "must have some text")
    return Leaf(OBJECT, "note", note=note)


def parse_caption(value: Any, pointer: str) -> tuple[Leaf, ...]:
    """Parse a caption, which is empty for null."""
    if value is None:
        return ()
    normal = normal_leaves(_leaf_array(value, pointer))
    return normal if any(leaf.text or leaf.cite is not None for leaf in normal) else ()


def _leaf_array(value: Any, pointer: str) -> list[Leaf]:
    items = array(value, pointer)
    if len(items) > limits.INLINE_LEAVES:
        raise schema_error(pointer, f"must have at most {limits.INLINE_LEAVES} leaves")
    return [parse_leaf(item, join_pointer(pointer, index)) for index, item in enumerate(items)]


def parse_cite(value: object, pointer: str) -> Cite | None:
    """Parse a citation: the id of a reference, or an array of citations.

    Raises:
        EditError: 40003.
    """
    if value is None:
        return None
    if not isinstance(value, list):
        if not isinstance(value, str):
            raise schema_error(pointer, "must be the id of a reference, an array, or null")
        return string(value, pointer, limits.IDENTIFIER)
    if not 1 <= len(value) <= limits.CITATIONS:
        raise schema_error(pointer, f"must contain 1 to {limits.CITATIONS} citations")
    for index, item in enumerate(value):
        schema.check(CitationItem, item, join_pointer(pointer, index))
    for index, item in enumerate(value[1:], 1):
        if item.get("narrative"):
            where = join_pointer(join_pointer(pointer, index), "narrative")
            raise schema_error(where, "only the first citation can be narrative")
    if value[0].get("narrative") and value[0].get("prefix"):
        where = join_pointer(join_pointer(pointer, 0), "prefix")
        raise schema_error(where, "a narrative citation has no prefix")
    return cite_from_json([{**item, **_words_beside(item)} for item in value])


def _words_beside(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the words beside a citation, without the separators that are written around them."""
    return {
        name: " ".join(item[name].split()).strip(" ,")
        for name in ("prefix", "locator", "suffix")
        if item.get(name)
    }


def check_leaf(leaf: Leaf, pointer: str) -> None:
    """Check the colours and addresses of a leaf that was not parsed from JSON."""
    for child in leaf.note:
        check_leaf(child, pointer)
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
    content: Mapping[str, Json] = _content(kind, fields, pointer)
    children, content = _checked_children(kind, content, children, children_pointer)
    caption: tuple[Leaf, ...] = ()
    if "caption" in fields:
        caption = parse_caption(fields["caption"], join_pointer(pointer, "caption"))
    element = Element(made_id, kind, children, style, content, caption)
    if "align" in fields:
        check_align(element, fields["align"], pointer)
    return element


def check_align(table: Element, align: Sequence[Json] | None, pointer: str) -> None:
    """Check that a table has as many columns as are to be aligned."""
    if align is not None and len(align) > int(str(table.content["colLength"])):
        problem = f"must have at most {table.content['colLength']} items, one for each column"
        raise schema_error(join_pointer(pointer, "align"), problem)


def with_checked_children(element: Element, children: Sequence[Node], pointer: str) -> Element:
    """Return the element with other children, in normal form.

    Raises:
        EditError: the children do not fit the type, or do not form a valid table.
    """
    normal, content = _checked_children(element.type, element.content, children, pointer)
    return replace(element, children=normal, content=content)


def _checked_children(
    kind: str, content: Mapping[str, Json], children: Sequence[Node], pointer: str
) -> tuple[tuple[Node, ...], Mapping[str, Json]]:
    """Return children in normal form, and the content of an element that has them."""
    _fit(kind, children, pointer)
    if kind == "table":
        rows = [child for child in children if isinstance(child, Element)]
        content = normal_align({**content, **grid(rows, pointer)})
    return normal_children(kind, children), content


def _fit(kind: str, children: Sequence[Node], pointer: str) -> None:
    held_type = HOLDS.get(kind)
    if kind in VOID_TYPES and children:
        raise schema_error(pointer, f"a block of type {kind} cannot have children")
    for index, child in enumerate(children):
        if isinstance(child, Element) and child.type != held_type:
            raise schema_error(join_pointer(pointer, index), f"{kind} cannot contain {child.type}")
    if kind in LEAVES_ONLY_TYPES:
        return
    leaves = sum(isinstance(child, Leaf) for child in children)
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
    elif leaves:
        raise schema_error(pointer, f"{kind} must contain {held_type}, and no text of its own")


def _content(kind: str, fields: Mapping[str, Any], pointer: str) -> dict[str, Json]:
    """Return the fields that are specific to a type, with defaults for absent ones."""
    content = _required_content(kind, fields, pointer)
    for key in OPTIONAL_KEYS.get(kind, ()):
        if (value := fields.get(key)) is not None and (key, value) != ("start", 1):
            content[key] = value
    return content


def _required_content(kind: str, fields: Mapping[str, Any], pointer: str) -> dict[str, Json]:
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


def parse_content(fields: Mapping[str, Any], pointer: str) -> dict[str, Json]:
    """Return fields of blocks beside their children, checked and in normal form.

    A caption is in its JSON form; null stands for an optional field that is removed.
    """
    schema.check(BlockContent, fields, pointer)
    return {key: _field(key, value, pointer) for key, value in fields.items()}


def _field(key: str, value: Any, pointer: str) -> Json:
    """Return the normal form of a field of a block's content, whose schema has been checked."""
    pointer = join_pointer(pointer, key)
    if key == "image":
        return [_image(item, join_pointer(pointer, index)) for index, item in enumerate(value)]
    if key == "author":
        return [
            _author(item, index, join_pointer(pointer, index)) for index, item in enumerate(value)
        ]
    if key == "institution":
        return _institutions(value, pointer)
    if key == "caption":
        return [leaf_to_json(leaf) for leaf in parse_caption(value, pointer)]
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


def _author(item: Mapping[str, Any], index: int, pointer: str) -> Json:
    several = item.get("institutionIds")
    institution_id = item.get("institutionId", 0)
    if several is not None:
        if "institutionId" in item and institution_id not in (several or [0])[:1]:
            problem = "must be the first of institutionIds, or omitted"
            raise schema_error(join_pointer(pointer, "institutionId"), problem)
        if len(set(several)) < len(several):
            raise schema_error(join_pointer(pointer, "institutionIds"), "must differ")
        institution_id = several[0] if several else 0
    author: dict[str, Json] = {
        "id": item.get("id", index + 1),
        "name": item["name"],
        "institutionId": institution_id,
        "isStar": item.get("isStar", False),
    }
    if several is not None and len(several) > 1:
        author["institutionIds"] = several
    if item.get("orcid") is not None:
        author["orcid"] = orcid_of(item["orcid"])
    if item.get("email") is not None:
        author["email"] = item["email"]
    return author


def _institutions(items: Sequence[Mapping[str, Json]], pointer: str) -> list[Json]:
    institutions: dict[Json, Json] = {}
    for index, item in enumerate(items):
        identifier = item.get("id", index + 1)
        if identifier in institutions:
            where = join_pointer(join_pointer(pointer, index), "id")
            raise schema_error(where, "id of another institution of the block")
        institutions[identifier] = {"id": identifier, "name": item["name"]}
    return list(institutions.values())

"""What a caller sent, read into nodes: every rule that needs no document is checked here."""

import re
from collections.abc import Callable, Mapping, Sequence

from services.articles.style import apply_style_patch, check_element_style
from services.articles.tree import limits
from services.articles.tree.colours import is_colour
from services.articles.tree.errors import Code, EditError, join_pointer
from services.articles.tree.nodes import (
    CONTENT_KEYS,
    ELEMENT_TYPES,
    HOLDS,
    LEAF_TYPES,
    LEAVES_ONLY_TYPES,
    TEXT_DECORATIONS,
    VOID_TYPES,
    Element,
    Json,
    Leaf,
    Node,
)
from services.articles.tree.normalise import grid, normal_children
from services.articles.tree.values import (
    array,
    boolean,
    choice,
    integer,
    mapping,
    number,
    schema_error,
    string,
)

NewId = Callable[[], str]

_LEAF_KEYS = frozenset("type text bold italic textDecoration color cite url".split())
_IMAGE_KEYS = frozenset("url fileId alt title width height".split())
_AUTHOR_KEYS = frozenset("id name institutionId isStar".split())
_INSTITUTION_KEYS = frozenset(["id", "name"])
_ELEMENT_KEYS = {
    kind: frozenset(["id", "type", "children", "style", *CONTENT_KEYS.get(kind, ())])
    for kind in ELEMENT_TYPES
}
_LARGEST_INTEGER = 2**53 - 1
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]", re.IGNORECASE)
_DATA_IMAGE = re.compile(r"data:image/[a-z0-9.+-]+[;,]", re.IGNORECASE | re.ASCII)


def parse_leaf(value: object, pointer: str) -> Leaf:
    """Read a TextLeaf. False and null marks are dropped."""
    given = mapping(value, pointer, _LEAF_KEYS)
    kind = choice(given.get("type", "default"), join_pointer(pointer, "type"), LEAF_TYPES)
    if "text" not in given:
        raise schema_error(join_pointer(pointer, "text"), "is required")
    cite, url = given.get("cite"), None
    if kind == "url":
        url = string(given.get("url"), join_pointer(pointer, "url"), limits.URL, empty=False)
    elif given.get("url") is not None:
        raise schema_error(join_pointer(pointer, "url"), "belongs to a leaf of type url")
    if cite is not None:
        cite = string(cite, join_pointer(pointer, "cite"), limits.IDENTIFIER)
    marks = {
        key: parse_mark(key, given[key], join_pointer(pointer, key)) for key in MARKS & given.keys()
    }
    return Leaf(
        string(given["text"], join_pointer(pointer, "text"), limits.LEAF_TEXT),
        kind,
        bool(marks.get("bold")),
        bool(marks.get("italic")),
        _text_or_none(marks.get("textDecoration")),
        _text_or_none(marks.get("color")),
        url,
        cite,
    )


MARKS = frozenset(["bold", "italic", "textDecoration", "color"])


def parse_mark(key: str, value: object, pointer: str) -> bool | str | None:
    """Read one of `MARKS`; null takes it away."""
    if value is None:
        return None
    if key in ("bold", "italic"):
        return boolean(value, pointer)
    if key == "textDecoration":
        return choice(value, pointer, TEXT_DECORATIONS)
    if not is_colour(string(value, pointer, limits.CSS_VALUE)):
        raise schema_error(pointer, "must be a CSS colour such as #c00, tomato or rgb(200, 0, 0)")
    return str(value)


def _text_or_none(value: bool | str | None) -> str | None:
    return value if isinstance(value, str) else None


def parse_children(
    value: object, pointer: str, depth: int, new_id: NewId, claims: dict[str, str]
) -> tuple[Node, ...]:
    """Read an array of TextLeaf and ElementBlock, told apart by `type`.

    Args:
        value: what the caller sent.
        pointer: where.
        depth: of the elements among the children; 1 is the top of the document.
        new_id: gives the id of each element.
        claims: filled with the new ids of elements that were sent with an id, and that id.
    """
    return tuple(
        [
            parse_element(child, join_pointer(pointer, place), depth, new_id, claims)
            if _is_element(child)
            else parse_leaf(child, join_pointer(pointer, place))
            for place, child in enumerate(array(value, pointer))
        ]
    )


def _is_element(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("type") in ELEMENT_TYPES


def parse_element(
    value: object, pointer: str, depth: int, new_id: NewId, claims: dict[str, str]
) -> Element:
    """Read an ElementBlock into its normal form, under a new id; see `parse_children`."""
    if depth > limits.DEPTH:
        raise schema_error(pointer, f"is nested deeper than {limits.DEPTH} elements")
    kind = mapping(value, pointer).get("type")
    if not isinstance(kind, str) or kind not in ELEMENT_TYPES:
        raise schema_error(
            join_pointer(pointer, "type"), f"must be one of {', '.join(ELEMENT_TYPES)}"
        )
    given = mapping(value, pointer, _ELEMENT_KEYS[kind])
    made_id = new_id()
    if given.get("id") is not None:
        claims[made_id] = string(given["id"], join_pointer(pointer, "id"), limits.IDENTIFIER)
    style: Mapping[str, Json] = {}
    if given.get("style") is not None:
        place = join_pointer(pointer, "style")
        check_element_style(kind, given["style"], place)
        style = apply_style_patch({}, _as_json(given["style"]))
    place = join_pointer(pointer, "children")
    children = parse_children(given.get("children", ()), place, depth + 1, new_id, claims)
    content = parse_content(kind, given, pointer)
    return with_checked_children(Element(made_id, kind, (), style, content), children, place)


def _as_json(value: object) -> Mapping[str, Json]:
    assert isinstance(value, Mapping)
    return value


def with_checked_children(element: Element, children: Sequence[Node], pointer: str) -> Element:
    """Return the element around other children, in normal form.

    Raises:
        EditError: the children don't fit the type, or don't make a table.
    """
    _fit(element.type, children, pointer)
    content = element.content
    if element.type == "table":
        rows = [child for child in children if isinstance(child, Element)]
        content = grid(rows, pointer)
    normal = normal_children(element.type, children)
    return Element(element.id, element.type, normal, element.style, content)


def _fit(kind: str, children: Sequence[Node], pointer: str) -> None:
    held = HOLDS.get(kind)
    leaves = sum(isinstance(child, Leaf) for child in children)
    if kind in VOID_TYPES and children:
        raise schema_error(pointer, f"a block of type {kind} has no children")
    for place, child in enumerate(children):
        if isinstance(child, Element) and child.type != held:
            raise schema_error(join_pointer(pointer, place), f"{kind} cannot hold {child.type}")
    if kind == "list-item":
        if any(isinstance(child, Element) for child in children[:-1]):
            raise schema_error(pointer, "a list-item holds leaves, then at most one nested list")
    elif kind == "label":
        if 0 < leaves < len(children):
            raise schema_error(pointer, "a label holds either leaves or label-items, not both")
    elif leaves and kind not in LEAVES_ONLY_TYPES:
        raise schema_error(pointer, f"{kind} holds {held}, and no text of its own")


def parse_content(kind: str, given: Mapping[str, object], pointer: str) -> dict[str, Json]:
    """Read the fields that belong to a type alone, and fill in those left out."""
    match kind:
        case "label-item":
            return {"name": _string(given, "name", pointer, limits.LEAF_TEXT)}
        case "table-cell":
            return {
                "colSpan": _span(given, "colSpan", pointer, limits.TABLE_COLUMNS),
                "rowSpan": _span(given, "rowSpan", pointer, limits.TABLE_ROWS),
            }
        case "table":
            for key in CONTENT_KEYS["table"]:
                if key in given:
                    integer(given[key], join_pointer(pointer, key), 0, _LARGEST_INTEGER)
            return {"rowLength": 0, "colLength": 0}
        case _:
            empty: dict[str, object] = {"image": [], "author": [], "institution": []}
            return {
                key: parse_field(
                    key, given.get(key, empty.get(key, "")), join_pointer(pointer, key)
                )
                for key in CONTENT_KEYS.get(kind, ())
            }


def parse_field(key: str, value: object, pointer: str) -> Json:
    """Read one content field of a void block, named as in `CONTENT_KEYS`."""
    match key:
        case "equation":
            return string(value, pointer, limits.EQUATION)
        case "code":
            return string(value, pointer, limits.CODE)
        case "language":
            return string(value, pointer, limits.CODE_LANGUAGE)
        case "image":
            return _each(parse_image, value, pointer)
        case "author":
            return _each(_author, value, pointer)
        case _:
            return _institutions(value, pointer)


def _each(parse: Callable[[object, str, int], Json], value: object, pointer: str) -> list[Json]:
    return [
        parse(item, join_pointer(pointer, place), place)
        for place, item in enumerate(array(value, pointer))
    ]


def parse_image(value: object, pointer: str, place: int) -> Json:
    """Read an Image: exactly one of url and fileId, and what describes it."""
    given = mapping(value, pointer, _IMAGE_KEYS)
    if (given.get("url") is None) == (given.get("fileId") is None):
        raise EditError(Code.FIELDS, pointer, "takes exactly one of url and fileId")
    made: dict[str, Json] = {}
    if given.get("url") is not None:
        made["url"] = _image_url(given["url"], join_pointer(pointer, "url"))
    else:
        made["fileId"] = string(
            given["fileId"], join_pointer(pointer, "fileId"), limits.IDENTIFIER, empty=False
        )
    for key in ("alt", "title"):
        if given.get(key) is not None:
            made[key] = string(given[key], join_pointer(pointer, key), limits.LEAF_TEXT)
    for key in ("width", "height"):
        if given.get(key) is not None:
            made[key] = _length(given[key], join_pointer(pointer, key))
    return made


def _image_url(value: object, pointer: str) -> str:
    url = string(value, pointer, limits.DATA_URL)
    if _DATA_IMAGE.match(url):
        return url
    if not _WEB_ADDRESS.match(url):
        raise schema_error(pointer, "must be an http or https address or a data:image URL")
    return string(value, pointer, limits.URL)


def _length(value: object, pointer: str) -> Json:
    if isinstance(value, str):
        return string(value, pointer, limits.CSS_VALUE)
    if number(value, pointer) < 0:
        raise schema_error(pointer, "must not be negative")
    return number(value, pointer)


def _author(value: object, pointer: str, place: int) -> Json:
    given = mapping(value, pointer, _AUTHOR_KEYS)
    institution = given.get("institutionId", 0)
    return {
        "id": _number_id(given.get("id", place + 1), join_pointer(pointer, "id")),
        "name": _name(given, pointer),
        "institutionId": _number_id(institution, join_pointer(pointer, "institutionId")),
        "isStar": boolean(given.get("isStar", False), join_pointer(pointer, "isStar")),
    }


def _institutions(value: object, pointer: str) -> list[Json]:
    made: list[Json] = []
    seen: set[int] = set()
    for place, item in enumerate(array(value, pointer)):
        here = join_pointer(pointer, place)
        given = mapping(item, here, _INSTITUTION_KEYS)
        identifier = _number_id(given.get("id", place + 1), join_pointer(here, "id"))
        if identifier in seen:
            raise schema_error(join_pointer(here, "id"), "is the id of another institution here")
        seen.add(identifier)
        made.append({"id": identifier, "name": _name(given, here)})
    return made


def _number_id(value: object, pointer: str) -> int:
    return integer(value, pointer, 0, _LARGEST_INTEGER)


def _name(given: Mapping[str, object], pointer: str) -> str:
    return string(given.get("name"), join_pointer(pointer, "name"), limits.LEAF_TEXT)


def _span(given: Mapping[str, object], key: str, pointer: str, most: int) -> int:
    return integer(given.get(key, 1), join_pointer(pointer, key), 1, most)


def _string(given: Mapping[str, object], key: str, pointer: str, limit: int) -> str:
    return string(given.get(key, ""), join_pointer(pointer, key), limit)

"""Request bodies, named as in the contract's endpoint table, into operations.

Keys that carry the call itself (`sessionId`, `ifRevision`) are not looked at. All raise
`EditError` for whatever is wrong with a body by itself; the rest shows when the operation is
applied.
"""

from collections.abc import Mapping

from services.articles.references import parse_patch, parse_reference
from services.articles.style import check_article_style
from services.articles.tree import limits
from services.articles.tree.document import Path
from services.articles.tree.errors import Code, EditError, join_pointer
from services.articles.tree.nodes import CONTENT_KEYS, VOID_TYPES, Element, Json, Leaf, Node
from services.articles.tree.operations.bibliography import (
    AddReference,
    DeleteReference,
    UpdateReference,
)
from services.articles.tree.operations.blocks import Delete, Insert
from services.articles.tree.operations.leaves import Cite, StyleLeaf, Target
from services.articles.tree.operations.styles import StyleArticle, StyleBlock
from services.articles.tree.operations.text import AppendText, ReplaceText
from services.articles.tree.parsing import (
    MARKS,
    NewId,
    parse_children,
    parse_element,
    parse_field,
    parse_leaf,
    parse_mark,
)
from services.articles.tree.values import array, mapping, schema_error, string

Body = Mapping[str, object]

_CALL_KEYS = frozenset(["sessionId", "ifRevision"])
_VOID_FIELDS = tuple(key for kind in VOID_TYPES for key in CONTENT_KEYS[kind])


def insert(body: Body, new_id: NewId) -> Insert:
    """Read the body of block/insert; every element in it gets an id from `new_id`."""
    path = _path(_required(body, "path"), "/path")
    sent = array(_required(body, "blocks"), "/blocks")
    if not 1 <= len(sent) <= limits.BLOCKS_AN_INSERT:
        raise schema_error("/blocks", f"must hold 1 to {limits.BLOCKS_AN_INSERT} blocks")
    blocks: list[Element] = []
    for place, block in enumerate(sent):
        blocks.append(parse_element(block, join_pointer("/blocks", place), 1, new_id, {}))
    return Insert(path, tuple(blocks))


def delete(body: Body) -> Delete:
    """Read the body of block/delete."""
    return Delete((_identifier(body, "blockId"),))


def replace_text(body: Body, new_id: NewId) -> ReplaceText:
    """Read the body of block/text/replace; new elements get ids from `new_id`."""
    block_id = _identifier(body, "blockId")
    fields = [key for key in ("children", *_VOID_FIELDS) if key in body]
    if not fields:
        known = ", ".join(("children", *_VOID_FIELDS))
        raise EditError(Code.FIELDS, "", f"at least one of {known} is required")
    claims: dict[str, str] = {}
    children: tuple[Node, ...] | None = None
    if "children" in body:
        children = _text(body["children"], new_id, claims)
    content: dict[str, Json] = {
        key: parse_field(key, body[key], join_pointer("", key))
        for key in _VOID_FIELDS
        if key in body
    }
    return ReplaceText(block_id, children, claims, content)


def _text(value: object, new_id: NewId, claims: dict[str, str]) -> tuple[Node, ...]:
    if isinstance(value, str):
        return (Leaf(string(value, "/children", limits.LEAF_TEXT)),)
    # The block's depth is not known yet, so the depth of the whole is checked once it is.
    return parse_children(value, "/children", 2, new_id, claims)


def append_text(body: Body) -> AppendText:
    """Read the body of block/text/append."""
    block_id, value = _identifier(body, "blockId"), _required(body, "text")
    if isinstance(value, str):
        return AppendText(block_id, (Leaf(string(value, "/text", limits.LEAF_TEXT)),))
    if not isinstance(value, list | tuple):
        raise schema_error("/text", "must be a string or an array of text leaves")
    leaves = [parse_leaf(leaf, join_pointer("/text", place)) for place, leaf in enumerate(value)]
    return AppendText(block_id, tuple(leaves))


def cite(body: Body) -> Cite:
    """Read the body of block/cite."""
    target = _target(body)
    sent = body.get("cite")
    return Cite(target, None if sent is None else string(sent, "/cite", limits.IDENTIFIER))


def style_leaf(body: Body) -> StyleLeaf:
    """Read the body of style/leaf."""
    mapping(body, "", _CALL_KEYS | MARKS | {"blockId", "leafPath"})
    target = _target(body)
    marks = {key: parse_mark(key, body[key], join_pointer("", key)) for key in body if key in MARKS}
    if not marks:
        raise EditError(Code.FIELDS, "", f"at least one of {', '.join(sorted(MARKS))} is required")
    return StyleLeaf(target, marks)


def style_block(body: Body) -> StyleBlock:
    """Read the body of block/style; whether it fits shows when the block's type is known."""
    block_id = _identifier(body, "blockId")
    skipped = _CALL_KEYS | {"blockId"}
    patch = {key: _json(value) for key, value in body.items() if key not in skipped}
    return StyleBlock(block_id, patch)


def style_article(body: Body) -> StyleArticle:
    """Read the body of style/article."""
    mapping(body, "", _CALL_KEYS | {"style"})
    patch = mapping(_required(body, "style"), "/style")
    check_article_style(patch, "/style")
    return StyleArticle({key: _json(value) for key, value in patch.items()})


def add_reference(body: Body, new_id: NewId) -> AddReference:
    """Read the body of reference/add; a reference without an id gets one from `new_id`."""
    return AddReference(parse_reference(_required(body, "reference"), "/reference", new_id))


def update_reference(body: Body) -> UpdateReference:
    """Read the body of reference/update."""
    return UpdateReference(*parse_patch(_required(body, "reference"), "/reference"))


def delete_reference(body: Body) -> DeleteReference:
    """Read the body of reference/delete."""
    return DeleteReference(_identifier(body, "referenceId"))


def _required(body: Body, key: str) -> object:
    if key not in body:
        raise EditError(Code.FIELDS, join_pointer("", key), "is required")
    return body[key]


def _identifier(body: Body, key: str) -> str:
    value = _required(body, key)
    if not isinstance(value, str):
        raise schema_error(join_pointer("", key), "must be a string")
    return value


def _target(body: Body) -> Target:
    given = [key for key in ("blockId", "leafPath") if body.get(key) is not None]
    if len(given) != 1:
        raise EditError(Code.FIELDS, "", "takes exactly one of blockId and leafPath")
    if given == ["blockId"]:
        return _identifier(body, "blockId")
    return _path(body["leafPath"], "/leafPath")


def _path(value: object, pointer: str) -> Path:
    if not isinstance(value, list | tuple) or not value:
        raise EditError(Code.PATH, pointer, "must be an array of one or more whole numbers")
    for place, step in enumerate(value):
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise EditError(
                Code.PATH, join_pointer(pointer, place), "must be a whole number from 0 on"
            )
    return tuple(value)


def _json(value: object) -> Json:
    # A parsed body is JSON; what it may be is checked against the style's schema.
    assert value is None or isinstance(value, bool | int | float | str | list | tuple | Mapping)
    return value

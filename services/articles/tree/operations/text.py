"""Operations on the content of a block: replace, append, truncate."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.document import Document, Path
from services.articles.tree.errors import EditError, EditErrorCode, join_pointer
from services.articles.tree.nodes import (
    CAPTIONED_TYPES,
    CONTENT_KEYS,
    OPTIONAL_KEYS,
    PROSE_TYPES,
    VOID_TYPES,
    Element,
    Json,
    Leaf,
    Node,
    leaf_from_json,
    leaf_to_json,
    node_from_json,
    node_to_json,
    walk,
)
from services.articles.tree.normalise import appended, normal_align, normal_leaves
from services.articles.tree.operations.base import (
    Change,
    Operation,
    check_cites,
    check_cites_of_leaf,
    check_labels,
    check_size,
    find_element,
    replace_element,
)
from services.articles.tree.operations.blocks import RestoreElements
from services.articles.tree.parsing import check_align, with_checked_children
from services.articles.tree.values import schema_error


class ReplaceText(Struct, frozen=True):
    """Replace the content of an element, which keeps its id and style.

    Attributes:
        block_id: id of the element.
        children: new children with new ids, or None to keep the present ones.
        claims: the ids that children were sent with, by their new ids. A child keeps its sent id if
            an element below the block had it before; of two such children the first does.
        content: fields of the block to change; null removes an optional one.
    """

    name: ClassVar[str] = "replace"
    block_id: str
    children: tuple[Node, ...] | None
    claims: Mapping[str, str]
    content: Mapping[str, Any]

    def apply(self, document: Document) -> Change:
        """Replace the given fields."""
        path, old = find_element(document, self.block_id)
        new = self._with_content(old)
        if self.children is not None:
            if old.type in VOID_TYPES:
                raise schema_error("/children", f"a block of type {old.type} cannot have children")
            original_ids = _kept_ids(self.claims, old)
            children = [_renamed(child, original_ids) for child in self.children]
            new = with_checked_children(new, children, "/children")
            check_size(document, len(path) + 1, old.elements, new.elements, "/children")
        check_align(new, self.content.get("align"), "")
        check_cites(document, new, "")
        check_labels(document, (new,), lambda index: "")
        return Change(replace_element(document, path, new, "/children"), RestoreElements((old,)))

    def _with_content(self, old: Element) -> Element:
        own_keys = CONTENT_KEYS[old.type] if old.type in VOID_TYPES else ()
        optional_keys = OPTIONAL_KEYS.get(old.type, ())
        content = dict(old.content)
        new = old
        for key, value in self.content.items():
            if key == "caption" and old.type in CAPTIONED_TYPES:
                new = replace(new, caption=tuple(map(leaf_from_json, value)))
            elif key in own_keys:
                content[key] = value
            elif key not in optional_keys:
                problem = f"not allowed for a block of type {old.type}"
                raise schema_error(join_pointer("", key), problem)
            elif value is None or (key, value) == ("start", 1):
                content.pop(key, None)
            else:
                content[key] = value
        return replace(new, content=normal_align(content)) if self.content else old

    def to_json(self) -> dict[str, Json]:
        """Return the fields."""
        children = None if self.children is None else [node_to_json(c) for c in self.children]
        return {
            "blockId": self.block_id,
            "children": children,
            "claims": self.claims,
            "content": self.content,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        children = stored["children"]
        return cls(
            stored["blockId"],
            None if children is None else tuple([node_from_json(child) for child in children]),
            stored["claims"],
            stored["content"],
        )


def _kept_ids(claims: Mapping[str, str], old: Element) -> dict[str, str]:
    free = {element.id for child in old.elements for element in walk(child)}
    original_ids = {}
    for new_id, claimed in claims.items():
        if claimed in free:
            free.remove(claimed)
            original_ids[new_id] = claimed
    return original_ids


def _renamed(node: Node, original_ids: Mapping[str, str]) -> Node:
    if isinstance(node, Leaf) or not original_ids:
        return node
    children = tuple([_renamed(child, original_ids) for child in node.children])
    return replace(node, id=original_ids.get(node.id, node.id), children=children)


class AppendText(Struct, frozen=True):
    """Append leaves to a text block; in a label with items, to its last item.

    Attributes:
        block_id: id of a block of one of the types of prose, or of a label.
        leaves: the leaves to append.
    """

    name: ClassVar[str] = "append"
    block_id: str
    leaves: tuple[Leaf, ...]

    def apply(self, document: Document) -> Change:
        """Append the leaves."""
        path, old = _target(document, self.block_id)
        old_leaves = old.leaves
        leaves = appended(old_leaves, self.leaves)
        check_cites_of_leaves(document, self.leaves)
        inverse = self._inverse(old, old_leaves, leaves)
        return Change(document.replaced(path, old.with_children(leaves)), inverse)

    def _inverse(
        self, old: Element, old_leaves: Sequence[Leaf], leaves: Sequence[Leaf]
    ) -> Operation:
        # If truncation restores the old text, the log does not need a copy of it: many appends to
        # one long paragraph would store the text again and again.
        last = old_leaves[-1]
        last_index = len(old_leaves) - 1
        if old_leaves[:last_index] == leaves[:last_index]:
            grown = leaves[last_index]
            if last.text and grown.same_marks(last) and grown.text.startswith(last.text):
                return Truncate(self.block_id, len(old_leaves), len(last.text))
        return RestoreElements((old,))

    def to_json(self) -> dict[str, Json]:
        """Return id and leaves."""
        return {"blockId": self.block_id, "leaves": [leaf_to_json(leaf) for leaf in self.leaves]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        leaves = [leaf_from_json(leaf) for leaf in stored["leaves"]]
        return cls(stored["blockId"], tuple(leaves))


def check_cites_of_leaves(document: Document, leaves: Sequence[Leaf]) -> None:
    """Check that the references cited by leaves exist; errors point into `/text`."""
    for index, leaf in enumerate(leaves):
        if leaf.cites:
            check_cites_of_leaf(document, leaf, join_pointer("/text", index))


def _target(document: Document, block_id: str) -> tuple[Path, Element]:
    path, element = find_element(document, block_id)
    if element.type not in (*PROSE_TYPES, "label"):
        raise schema_error("/blockId", f"text cannot be appended to a block of type {element.type}")
    if element.elements:
        return (*path, len(element.children) - 1), element.elements[-1]
    return path, element


class Truncate(Struct, frozen=True):
    """Cut off the end of a text block: the inverse of an append.

    Attributes:
        block_id: id of the block; in a label with items, its last item is truncated.
        leaves: number of leaves that stay.
        length: length of the last one's text that stays, in characters.
    """

    name: ClassVar[str] = "truncate"
    block_id: str
    leaves: int
    length: int

    def apply(self, document: Document) -> Change:
        """Truncate the block; raise `EditError` if it has fewer leaves than should stay."""
        path, old = _target(document, self.block_id)
        if len(old.children) < self.leaves:
            raise EditError(
                EditErrorCode.NO_LEAF, "/blockId", "the text to remove no longer exists"
            )
        last = old.leaves[self.leaves - 1]
        kept_leaf = replace(last, text=last.text[: self.length])
        cut_leaf = replace(last, text=last.text[self.length :])
        new = old.with_children(normal_leaves((*old.leaves[: self.leaves - 1], kept_leaf)))
        inverse = AppendText(self.block_id, (cut_leaf, *old.leaves[self.leaves :]))
        return Change(document.replaced(path, new), inverse)

    def to_json(self) -> dict[str, Json]:
        """Return the fields."""
        return {"blockId": self.block_id, "leaves": self.leaves, "length": self.length}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(stored["blockId"], stored["leaves"], stored["length"])

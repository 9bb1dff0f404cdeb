"""Operations on leaves: citations and marks."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.document import Document, Path
from services.articles.tree.nodes import Cite as CiteValue
from services.articles.tree.nodes import (
    Json,
    Leaf,
    all_leaves,
    cite_from_json,
    cite_to_json,
)
from services.articles.tree.operations.base import (
    Change,
    check_cites_of_leaf,
    find_element,
    find_leaf,
    map_leaves,
    with_leaf,
)
from services.articles.tree.operations.blocks import RestoreElements
from services.articles.tree.values import schema_error


class AnchoredPath(NamedTuple):
    """The path of a leaf from an element, which insertions elsewhere do not change."""

    anchor_id: str
    path: Path


# The leaves of an operation: all below the block with an id, or the one at a path.
Target = str | Path | AnchoredPath


class Cite(Struct, frozen=True):
    """Set or clear the citation of leaves.

    Attributes:
        target: the id of a block, or the path of a leaf, from the root or from an element.
        cite: the id of a reference, or several citations; None clears.
    """

    name: ClassVar[str] = "cite"
    target: Target
    cite: CiteValue | None

    def apply(self, document: Document) -> Change:
        """Set or clear the citation; the reference must exist."""
        cite = self.cite

        def change(leaf: Leaf) -> Leaf:
            # A note cites in its own text.
            return leaf if leaf.cite == cite or leaf.type == "note" else replace(leaf, cite=cite)

        changed = _changed(document, self, change)
        check_cites_of_leaf(document, Leaf("", cite=cite), "")
        return changed

    def to_json(self) -> dict[str, Json]:
        """Return target and citation."""
        return {**_target_to_json(self.target), "cite": cite_to_json(self.cite)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(_target_from_json(stored), cite_from_json(stored["cite"]))


class SetLeafStyle(Struct, frozen=True):
    """Set or clear marks of one leaf, or of the plain leaves (type `default`) under a block.

    Attributes:
        target: the id of a block, or the path of a leaf, from the root or from an element.
        marks: some of bold, italic, textDecoration, color, script; None and False clear.
    """

    name: ClassVar[str] = "style-leaf"
    target: Target
    marks: Mapping[str, bool | str | None]

    def apply(self, document: Document) -> Change:
        """Set the given marks and keep the others."""
        fields: dict[str, Any] = {
            "decoration" if key == "textDecoration" else key: value
            for key, value in self.marks.items()
        }
        for key in ("bold", "italic"):
            if key in fields:
                fields[key] = bool(fields[key])
        plain_only = isinstance(self.target, str)

        def change(leaf: Leaf) -> Leaf:
            if plain_only and leaf.type != "default":
                return leaf
            if all(getattr(leaf, key) == value for key, value in fields.items()):
                return leaf
            return replace(leaf, **fields)

        return _changed(document, self, change)

    def to_json(self) -> dict[str, Json]:
        """Return target and marks."""
        return {**_target_to_json(self.target), "marks": self.marks}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(_target_from_json(stored), stored["marks"])


def _changed(
    document: Document, operation: Cite | SetLeafStyle, change: Callable[[Leaf], Leaf]
) -> Change:
    target = operation.target
    stored: Cite | SetLeafStyle | None = None
    if isinstance(target, str):
        path, old = find_element(document, target)
        if next(all_leaves(old), None) is None:
            raise schema_error("/blockId", f"no text leaf inside this {old.type}")
        new = map_leaves(old, change)
    else:
        from_root = _from_root(document, target)
        path, old, index = find_leaf(document, from_root)
        if old.leaves[index].type == "note":
            raise schema_error("/leafPath", "a note has no marks and citations; its text may")
        # Stored from its block, so that it can be applied again after insertions elsewhere.
        anchored = AnchoredPath(document.blocks[from_root[0]].id, from_root[1:])
        stored = replace(operation, target=anchored)
        new = with_leaf(old, index, change(old.leaves[index]))
    return Change(document.replaced(path, new), RestoreElements((old,)), operation=stored)


def _from_root(document: Document, target: Path | AnchoredPath) -> Path:
    if not isinstance(target, AnchoredPath):
        return target
    anchor, _ = find_element(document, target.anchor_id, "/anchorId")
    return (*anchor, *target.path)


def _target_to_json(target: Target) -> dict[str, Json]:
    if isinstance(target, AnchoredPath):
        return {"anchorId": target.anchor_id, "leafPath": list(target.path)}
    return {"blockId": target} if isinstance(target, str) else {"leafPath": list(target)}


def _target_from_json(stored: Mapping[str, Any]) -> Target:
    if "blockId" in stored:
        block_id: str = stored["blockId"]
        return block_id
    path = tuple(stored["leafPath"])
    return AnchoredPath(stored["anchorId"], path) if "anchorId" in stored else path

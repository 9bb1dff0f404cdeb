"""The document: an immutable tree of blocks, with its style and references."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from services.articles.tree.index import ParentIndex
from services.articles.tree.labels import LabelNumber, label_numbers
from services.articles.tree.nodes import (
    Element,
    Json,
    Leaf,
    Node,
    element_from_json,
    element_to_json,
    walk,
)
from services.articles.tree.references import Reference, citation_numbers
from services.articles.tree.sequence import BlockSequence
from services.articles.tree.style import Style

Path = tuple[int, ...]

# The version of the format, not of the document.
FORMAT_VERSION = "1.0"


class Document(Struct, frozen=True):
    """Blocks, the style of the article, and its references.

    A path lists child positions from the top: `(2,)` is the third block, `(2, 0)` its first
    child. Methods that return a document share all unchanged parts with this one. They check
    nothing: operations do.

    Attributes:
        blocks: the top-level blocks.
        style: the ArticleStyle.
        references: ArticleReferences by id, in the order in which they were added.
        version: version of the format.
        properties: date, keywords, language and direction, as far as they are set.
        parents: index of the parent of each element.
    """

    blocks: BlockSequence = field(default_factory=BlockSequence)
    style: Style = field(default_factory=dict)
    references: Mapping[str, Reference] = field(default_factory=dict)
    version: str = FORMAT_VERSION
    properties: Mapping[str, Json] = field(default_factory=dict)
    parents: ParentIndex = field(default_factory=ParentIndex)

    def path_of(self, element_id: str) -> Path | None:
        """Return the path of an element, or None when it is not in the document."""
        chain = [element_id]
        holder = self.parents.get(element_id)
        while holder:
            chain.append(holder)
            holder = self.parents.get(holder)
        if holder is None:
            return None
        top = self.blocks.position_of(chain.pop())
        path, element = [top], self.blocks[top]
        while chain:
            child_id = chain.pop()
            for index, child in enumerate(element.children):
                if isinstance(child, Element) and child.id == child_id:
                    path.append(index)
                    element = child
                    break
        return tuple(path)

    def node_at(self, path: Sequence[int]) -> Node | None:
        """Return the node at a path that is not empty, or None."""
        if not path[0] < len(self.blocks):
            return None
        node: Node = self.blocks[path[0]]
        for index in path[1:]:
            if isinstance(node, Leaf) or not index < len(node.children):
                return None
            node = node.children[index]
        return node

    def element(self, element_id: str) -> Element | None:
        """Return the element with an id, or None when it is not in the document."""
        path = self.path_of(element_id)
        node = None if path is None else self.node_at(path)
        return node if isinstance(node, Element) else None

    def is_same(self, other: "Document") -> bool:
        """Return whether an edit of this document that led to the other changed nothing."""
        return (
            self.blocks.is_same(other.blocks)
            and (self.references is other.references or self.references == other.references)
            and (self.style is other.style or self.style == other.style)
            and self.properties == other.properties
        )

    def numbers(self) -> dict[str, int]:
        """Return the number of each cited reference, 1 for the first that appears."""
        return citation_numbers(self.blocks.cites())

    def label_numbers(self) -> dict[str, LabelNumber]:
        """Return the number of each block with a label, by its label."""
        return label_numbers(self.blocks, self.style)

    def spliced(self, start: int, stop: int, elements: Sequence[Element]) -> "Document":
        """Return the document with its top-level blocks `start:stop` replaced by `elements`."""
        removed = [self.blocks[index] for index in range(start, stop)]
        parents = self._parents("", removed, elements)
        return self._with(self.blocks.spliced(start, stop, elements), parents)

    def replaced(self, path: Path, element: Element) -> "Document":
        """Return the document with the element at a path replaced by one with the same id."""
        old = self.node_at(path)
        assert isinstance(old, Element) and old.id == element.id
        top = element
        for depth in range(len(path) - 1, 0, -1):
            holder = self.node_at(path[:depth])
            assert isinstance(holder, Element)
            index = path[depth]
            top = holder.with_children(
                (*holder.children[:index], top, *holder.children[index + 1 :])
            )
        parents = self._parents(element.id, old.elements, element.elements)
        return self._with(self.blocks.replaced(path[0], top), parents)

    def with_blocks(self, old: Sequence[Element], new: Sequence[Element]) -> "Document":
        """Return the document with other states of several top-level blocks."""
        parents = self.parents
        for before, after in zip(old, new, strict=True):
            changed = replace(self, parents=parents)
            parents = changed._parents(after.id, before.elements, after.elements)
        blocks = self.blocks.updated({element.id: element for element in new})
        return self._with(blocks, parents)

    def _with(self, blocks: BlockSequence, parents: ParentIndex) -> "Document":
        return replace(self, blocks=blocks, parents=parents)

    def _parents(self, holder: str, old: Sequence[Element], new: Sequence[Element]) -> ParentIndex:
        if not old and not new:
            return self.parents
        # Children that are the same objects on both sides are skipped with all that is below them.
        common_ids = {id(element) for element in old} & {id(element) for element in new}
        removed = [e for element in old if id(element) not in common_ids for e in walk(element)]
        added = [element for element in new if id(element) not in common_ids]
        if not removed and not added:
            return self.parents
        pairs = [pair for element in added for pair in parent_pairs(element, holder)]
        return self.parents.changed((element.id for element in removed), pairs)

    def to_json(self) -> dict[str, Json]:
        """Return the document as JSON for storage."""
        return {
            **self.to_json_without_blocks(),
            "blocks": [element_to_json(block) for block in self.blocks],
        }

    def to_json_without_blocks(self) -> dict[str, Json]:
        """Return the members of `to_json` but for the blocks."""
        properties = {"properties": self.properties} if self.properties else {}
        return {
            "version": self.version,
            **properties,
            "style": self.style,
            "reference": list(self.references.values()),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Document":
        """Parse the output of `to_json`; nothing is checked."""
        blocks = [element_from_json(block) for block in stored["blocks"]]
        references = {reference["id"]: reference for reference in stored["reference"]}
        pairs = [pair for block in blocks for pair in parent_pairs(block, "")]
        parents = ParentIndex().changed((), pairs)
        return cls(
            BlockSequence(blocks),
            stored["style"],
            references,
            stored["version"],
            stored.get("properties", {}),
            parents,
        )


def parent_pairs(element: Element, holder: str) -> list[tuple[str, str]]:
    """Return the ids of an element and of all elements below it, each with its parent's id."""
    pairs = [(element.id, holder)]
    for child in element.elements:
        pairs.extend(parent_pairs(child, element.id))
    return pairs

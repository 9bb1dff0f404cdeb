"""Leaves and elements, the nodes of a document, and their JSON form.

An element has leaves or elements as children, and no reference to its parent. Nodes are
immutable; two versions of a document share all nodes that an edit did not change.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


# Types of top-level blocks.
VOID_TYPES = ("equation", "code", "image", "author")
PROSE_TYPES = ("title", "paragraph", "abstract", "h1", "h2", "h3")
BLOCK_TYPES = (*PROSE_TYPES, "label", "list", "table", *VOID_TYPES)
# Types of elements inside a block.
PART_TYPES = ("label-item", "list-item", "table-row", "table-cell")
ELEMENT_TYPES = (*BLOCK_TYPES, *PART_TYPES)
# Types whose children are leaves only.
LEAVES_ONLY_TYPES = frozenset({*PROSE_TYPES, "label-item", "table-cell"})

# The type of the child elements of an element type.
HOLDS = {
    "label": "label-item",
    "list": "list-item",
    "list-item": "list",
    "table": "table-row",
    "table-row": "table-cell",
}

# The fields of an element type besides children and style.
CONTENT_KEYS: dict[str, tuple[str, ...]] = {
    "equation": ("equation",),
    "code": ("code", "language"),
    "image": ("image",),
    "author": ("author", "institution"),
    "table": ("rowLength", "colLength"),
    "table-cell": ("colSpan", "rowSpan"),
    "label-item": ("name",),
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A run of text with the same type, marks and citation.

    Attributes:
        text: the text; LaTeX for type `latex`.
        type: default, latex, inlinecode or url.
        decoration: underline or line-through, or None.
        color: a CSS colour, or None.
        url: target of a leaf of type `url`; None for other types.
        cite: the id of a reference, or None.
    """

    text: str
    type: str = "default"
    bold: bool = False
    italic: bool = False
    decoration: str | None = None
    color: str | None = None
    url: str | None = None
    cite: str | None = None

    @property
    def cites(self) -> tuple[str, ...]:
        """The citation in the form of `Element.cites`."""
        return () if self.cite is None else (self.cite,)

    def same_marks(self, other: "Leaf") -> bool:
        """Return whether two leaves are equal except for their text."""
        return (
            self.type == other.type
            and self.bold == other.bold
            and self.italic == other.italic
            and self.decoration == other.decoration
            and self.color == other.color
            and self.url == other.url
            and self.cite == other.cite
        )


# The only leaf of a new text block without text.
EMPTY_LEAF = Leaf("")


@dataclass(frozen=True, slots=True)
class Element:
    """A block or a part of one.

    Attributes:
        id: assigned by the server, never reused.
        type: one of `ELEMENT_TYPES`.
        children: leaves or elements, depending on the type.
        style: an ElementStyle, see `services.articles.tree.style`.
        content: the fields of the type (`CONTENT_KEYS`), as JSON.
        cites: ids of the references cited below, each once, in order of appearance.
    """

    id: str
    type: str
    children: tuple["Node", ...] = ()
    style: Mapping[str, Json] = field(default_factory=dict)
    content: Mapping[str, Json] = field(default_factory=dict)
    cites: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Collect the citations of the children."""
        object.__setattr__(self, "cites", joined_cites(self.children))

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The children that are leaves."""
        return tuple(child for child in self.children if isinstance(child, Leaf))

    @property
    def elements(self) -> tuple["Element", ...]:
        """The children that are elements."""
        return tuple(child for child in self.children if isinstance(child, Element))

    def with_children(self, children: Sequence["Node"]) -> "Element":
        """Return the element with other children."""
        return replace(self, children=tuple(children))


Node: TypeAlias = Leaf | Element


def joined_cites(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the references that the nodes cite, each once, in order of appearance."""
    return tuple(dict.fromkeys(cite for node in nodes for cite in node.cites))


def shown_files(element: Element) -> Iterator[str]:
    """Yield the ids of the files that a block shows."""
    if element.type == "image":
        pictures: Any = element.content["image"]
        for picture in pictures or ():
            if "fileId" in picture:
                yield picture["fileId"]


def walk(element: Element) -> Iterator[Element]:
    """Yield an element and all elements below it, in reading order."""
    yield element
    for child in element.children:
        if isinstance(child, Element):
            yield from walk(child)


def all_leaves(element: Element) -> Iterator[Leaf]:
    """Yield all leaves below an element, in reading order."""
    for child in element.children:
        if isinstance(child, Element):
            yield from all_leaves(child)
        else:
            yield child


def height(element: Element) -> int:
    """Return the number of elements on the longest path down, including this one."""
    return 1 + max((height(child) for child in element.elements), default=0)


def leaf_to_json(leaf: Leaf) -> dict[str, Json]:
    """Return a leaf as a TextLeaf, without fields that are not set."""
    json_object: dict[str, Json] = {"type": leaf.type, "text": leaf.text}
    if leaf.bold:
        json_object["bold"] = True
    if leaf.italic:
        json_object["italic"] = True
    if leaf.decoration is not None:
        json_object["textDecoration"] = leaf.decoration
    if leaf.color is not None:
        json_object["color"] = leaf.color
    if leaf.url is not None:
        json_object["url"] = leaf.url
    if leaf.cite is not None:
        json_object["cite"] = leaf.cite
    return json_object


def leaf_from_json(stored: Mapping[str, Any]) -> Leaf:
    """Parse the output of `leaf_to_json`; nothing is checked."""
    return Leaf(
        stored["text"],
        stored["type"],
        stored.get("bold", False),
        stored.get("italic", False),
        stored.get("textDecoration"),
        stored.get("color"),
        stored.get("url"),
        stored.get("cite"),
    )


def element_to_json(element: Element) -> dict[str, Json]:
    """Return an element as an ElementBlock, the form that is stored and that callers read."""
    json_object: dict[str, Json] = {"id": element.id, "type": element.type}
    json_object.update(element.content)
    json_object["children"] = [node_to_json(child) for child in element.children]
    if element.style:
        json_object["style"] = element.style
    return json_object


def element_from_json(stored: Mapping[str, Any]) -> Element:
    """Parse the output of `element_to_json`; nothing is checked."""
    kind: str = stored["type"]
    keys = CONTENT_KEYS.get(kind, ())
    return Element(
        stored["id"],
        kind,
        tuple([node_from_json(child) for child in stored["children"]]),
        stored.get("style", {}),
        {key: stored[key] for key in keys},
    )


def node_to_json(node: Node) -> dict[str, Json]:
    """Return a node as a TextLeaf or an ElementBlock."""
    return leaf_to_json(node) if isinstance(node, Leaf) else element_to_json(node)


def node_from_json(stored: Mapping[str, Any]) -> Node:
    """Parse the output of `node_to_json`; nothing is checked."""
    return element_from_json(stored) if "id" in stored else leaf_from_json(stored)

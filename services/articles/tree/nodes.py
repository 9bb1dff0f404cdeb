"""Leaves and elements, the nodes of a document, and their JSON form.

An element has leaves or elements as children, and no reference to its parent. Nodes are
immutable; two versions of a document share all nodes that an edit did not change.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


# Types of top-level blocks.
VOID_TYPES = ("equation", "code", "image", "author")
HEADING_TYPES = ("h1", "h2", "h3", "h4", "h5", "h6")
PROSE_TYPES = ("title", "paragraph", "abstract", *HEADING_TYPES, "quote")
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
# The fields that it may have, which are absent by default.
OPTIONAL_KEYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*HEADING_TYPES, "equation", "code", "image"), ("label",)),
    "table": ("label", "align"),
    "list": ("start",),
}
# Types of blocks that are counted, and can have a label.
LABELLED_TYPES = frozenset(kind for kind, keys in OPTIONAL_KEYS.items() if "label" in keys)
# Types with a caption, which is text beside the children.
CAPTIONED_TYPES = ("image", "table")

# The text of a leaf that stands for something else in a text: a note, or a reference to a block.
OBJECT = "\ufffc"
OBJECT_TYPES = ("note", "ref")
# Types of leaves that can be links: texts, which have a type of their own then, and code.
LINKED_TYPES = ("url", "inlinecode")


class Citation(NamedTuple):
    """A cited reference, with the words beside its number.

    Attributes:
        id: the id of the reference.
        prefix: text before the number.
        locator: the place in the source, such as "p. 3".
        suffix: text at the end.
        narrative: whether the names of the authors come before the brackets.
    """

    id: str
    prefix: str = ""
    locator: str = ""
    suffix: str = ""
    narrative: bool = False


# The id of a reference, or several citations in one pair of brackets.
Cite: TypeAlias = str | tuple[Citation, ...]


# No node can be part of a cycle: the collector need not visit those of long documents.
class Leaf(Struct, frozen=True, gc=False):
    """A run of text with the same type, marks and citation.

    Attributes:
        text: the text; LaTeX for type `latex`, `OBJECT` for `note` and `ref`.
        type: default, latex, inlinecode, url, note or ref.
        decoration: underline or line-through, or None.
        color: a CSS colour, or None.
        url: target of a leaf of type `url`, or of code that is a link; None for other leaves.
        cite: what it cites, or None.
        script: super or sub, or None.
        form: "display" for a formula on a line of its own, "number" for a reference to a block by
            its number alone; None otherwise.
        ref: the label of a block, for type `ref`.
        note: the text of a footnote, for type `note`.
    """

    text: str
    type: str = "default"
    bold: bool = False
    italic: bool = False
    decoration: str | None = None
    color: str | None = None
    url: str | None = None
    cite: Cite | None = None
    script: str | None = None
    form: str | None = None
    ref: str | None = None
    note: tuple["Leaf", ...] = ()

    @property
    def cites(self) -> tuple[str, ...]:
        """The references that it cites, in the form of `Element.cites`."""
        cite = self.cite
        if cite is None:
            return joined_cites(self.note) if self.note else ()
        return (cite,) if isinstance(cite, str) else tuple([citation.id for citation in cite])

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The citations of the leaf."""
        cite = self.cite
        if cite is None:
            return ()
        return (Citation(cite),) if isinstance(cite, str) else cite

    @property
    def is_object(self) -> bool:
        """Whether the leaf stands for something that is no text: a note, or a block."""
        return self.type in OBJECT_TYPES

    def same_marks(self, other: "Leaf") -> bool:
        """Return whether two leaves are equal except for their text."""
        return self == replace(other, text=self.text)


# The only leaf of a new text block without text.
EMPTY_LEAF = Leaf("")


class Element(Struct, frozen=True, gc=False):
    """A block or a part of one.

    Attributes:
        id: assigned by the server, never reused.
        type: one of `ELEMENT_TYPES`.
        children: leaves or elements, depending on the type.
        style: an ElementStyle, see `services.articles.tree.style`.
        content: the fields of the type (`CONTENT_KEYS`, `OPTIONAL_KEYS`), as JSON.
        caption: the caption of an image or a table.
        cites: ids of the references cited below, each once, in order of appearance; set from the
            children and the caption.
    """

    id: str
    type: str
    children: tuple["Node", ...] = ()
    style: Mapping[str, Json] = field(default_factory=dict)
    content: Mapping[str, Json] = field(default_factory=dict)
    caption: tuple[Leaf, ...] = ()
    cites: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Collect the citations of the children."""
        nodes = (*self.children, *self.caption) if self.caption else self.children
        force_setattr(self, "cites", joined_cites(nodes))

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The children that are leaves."""
        if self.type in LEAVES_ONLY_TYPES:
            return self.children  # type: ignore[return-value]  # as the type has no others
        return tuple([child for child in self.children if isinstance(child, Leaf)])

    @property
    def elements(self) -> tuple["Element", ...]:
        """The children that are elements."""
        if self.type in LEAVES_ONLY_TYPES:
            return ()
        return tuple([child for child in self.children if isinstance(child, Element)])

    @property
    def label(self) -> str | None:
        """The label by which references to the block name it."""
        label = self.content.get("label")
        return None if label is None else str(label)

    def with_children(self, children: Sequence["Node"]) -> "Element":
        """Return the element with other children."""
        return replace(self, children=tuple(children))


Node: TypeAlias = Leaf | Element


def joined_cites(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return the references that the nodes cite, each once, in order of appearance."""
    return tuple(dict.fromkeys([cite for node in nodes for cite in node.cites]))


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
    """Yield all leaves below an element, in reading order, with those of notes and captions."""
    for child in element.children:
        if isinstance(child, Element):
            yield from all_leaves(child)
        else:
            yield child
            yield from child.note
    for leaf in element.caption:
        yield leaf
        yield from leaf.note


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
        json_object["cite"] = cite_to_json(leaf.cite)
    if leaf.script is not None:
        json_object["script"] = leaf.script
    if leaf.form is not None:
        json_object["form"] = leaf.form
    if leaf.is_object:
        json_object["text"] = ""
        if leaf.type == "ref":
            json_object["ref"] = leaf.ref
        else:
            json_object["children"] = [leaf_to_json(child) for child in leaf.note]
    return json_object


def leaf_from_json(stored: Mapping[str, Any]) -> Leaf:
    """Parse the output of `leaf_to_json`; nothing is checked."""
    leaf_type = stored["type"]
    return Leaf(
        OBJECT if leaf_type in OBJECT_TYPES else stored["text"],
        leaf_type,
        stored.get("bold", False),
        stored.get("italic", False),
        stored.get("textDecoration"),
        stored.get("color"),
        stored.get("url"),
        cite_from_json(stored.get("cite")),
        stored.get("script"),
        stored.get("form"),
        stored.get("ref"),
        tuple([leaf_from_json(child) for child in stored.get("children", ())]),
    )


def cite_to_json(cite: Cite | None) -> Json:
    """Return a citation as callers write it."""
    if cite is None or isinstance(cite, str):
        return cite
    return [
        {name: value for name, value in citation._asdict().items() if value} for citation in cite
    ]


def cite_from_json(stored: Any) -> Cite | None:
    """Parse the output of `cite_to_json` into its normal form; nothing is checked."""
    if stored is None or isinstance(stored, str):
        return stored
    citations = tuple(
        [Citation(one["id"], **{k: v for k, v in one.items() if v and k != "id"}) for one in stored]
    )
    return normal_cite(citations)


def normal_cite(citations: tuple[Citation, ...]) -> Cite | None:
    """Return citations in normal form: one without words is the id of its reference."""
    if len(citations) == 1 and citations[0] == Citation(citations[0].id):
        return citations[0].id
    return citations or None


def element_to_json(element: Element) -> dict[str, Json]:
    """Return an element as an ElementBlock, the form that is stored and that callers read."""
    json_object: dict[str, Json] = {"id": element.id, "type": element.type}
    json_object.update(element.content)
    if element.caption:
        json_object["caption"] = [leaf_to_json(leaf) for leaf in element.caption]
    json_object["children"] = [node_to_json(child) for child in element.children]
    if element.style:
        json_object["style"] = element.style
    return json_object


def element_from_json(stored: Mapping[str, Any]) -> Element:
    """Parse the output of `element_to_json`; nothing is checked."""
    kind: str = stored["type"]
    content = {key: stored[key] for key in CONTENT_KEYS.get(kind, ())}
    content.update({key: stored[key] for key in OPTIONAL_KEYS.get(kind, ()) if key in stored})
    return Element(
        stored["id"],
        kind,
        tuple([node_from_json(child) for child in stored["children"]]),
        stored.get("style", {}),
        content,
        tuple([leaf_from_json(leaf) for leaf in stored.get("caption", ())]),
    )


def node_to_json(node: Node) -> dict[str, Json]:
    """Return a node as a TextLeaf or an ElementBlock."""
    return leaf_to_json(node) if isinstance(node, Leaf) else element_to_json(node)


def node_from_json(stored: Mapping[str, Any]) -> Node:
    """Parse the output of `node_to_json`; nothing is checked."""
    return element_from_json(stored) if "id" in stored else leaf_from_json(stored)

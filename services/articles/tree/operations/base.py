"""The protocol of operations, and functions that several operations share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from services.articles.bibliography.entries import Omission
from services.articles.tree.document import Document, Path
from services.articles.tree.errors import EditError, EditErrorCode, join_pointer
from services.articles.tree.nodes import (
    Element,
    Json,
    Leaf,
    Node,
    height,
    normal_cite,
    walk,
)
from services.articles.tree.normalise import normal_children, normal_leaves
from services.articles.tree.parsing import with_checked_children
from services.articles.tree.values import schema_error
from services.common.articles import limits


class EditOutcome(NamedTuple):
    """The outcome of an edit.

    Attributes:
        ids: ids of the roots of inserted blocks in order, of added references, or of the blocks
            in which a text was replaced.
        omitted: parts of the edit that the document does not hold.
    """

    ids: tuple[str, ...] = ()
    omitted: tuple[Omission, ...] = ()


class Change(Struct, frozen=True):
    """The result of applying an operation.

    Attributes:
        document: the document with the operation applied.
        inverse: operation that restores the document, ids and styles included.
        ids: see `EditOutcome`.
        operation: the operation for the log, if it is another one than was applied.
        omitted: see `EditOutcome`.
        of_edits: if several edits were applied together, the outcome of each.
        copied_characters: characters of the document that the log stores again.
    """

    document: Document
    inverse: "Operation"
    ids: tuple[str, ...] = ()
    operation: "Operation | None" = None
    omitted: tuple[Omission, ...] = ()
    of_edits: tuple[EditOutcome, ...] = ()
    copied_characters: int = 0


class DocumentEdit(Protocol):
    """An edit as a value, independent of the document that it is applied to.

    Everything that depends on the document is resolved when the edit is applied. If another edit
    came first, it is applied again, to the newer document.
    """

    def apply(self, document: Document) -> Change:
        """Return the change of a document, or raise `EditError`."""
        ...


class Operation(DocumentEdit, Protocol):
    """An edit that the log can store."""

    name: ClassVar[str]

    def to_json(self) -> dict[str, Json]:
        """Return the operation's fields as JSON."""
        ...

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`; nothing is checked."""
        ...


def find_element(
    document: Document, block_id: str, pointer: str = "/blockId"
) -> tuple[Path, Element]:
    """Return the path of an element, and the element.

    Raises:
        EditError: no element has that id.
    """
    path = document.path_of(block_id)
    element = None if path is None else document.node_at(path)
    if path is None or not isinstance(element, Element):
        raise EditError(EditErrorCode.NO_BLOCK, pointer, "no block with this id in the document")
    return path, element


def find_leaf(document: Document, path: Path) -> tuple[Path, Element, int]:
    """Return the path of a leaf's parent, the parent, and the leaf's position in it.

    Raises:
        EditError: there is an element at the path, or no node.
    """
    node = document.node_at(path)
    if node is None:
        raise EditError(EditErrorCode.NO_LEAF, "/leafPath", "no text leaf at this path")
    if isinstance(node, Element):
        raise EditError(
            EditErrorCode.PATH, "/leafPath", f"path of a {node.type}, not of a text leaf"
        )
    holder = document.node_at(path[:-1])
    assert isinstance(holder, Element)
    return path[:-1], holder, path[-1]


def replace_element(document: Document, path: Path, element: Element, pointer: str) -> Document:
    """Return the document with the element at a path replaced by another state of it.

    A row is checked within its table.
    """
    if element.type == "table-row":
        table = document.node_at(path[:-1])
        assert isinstance(table, Element)
        index = path[-1]
        rows = (*table.children[:index], element, *table.children[index + 1 :])
        return document.replaced(path[:-1], with_checked_children(table, rows, pointer))
    return document.replaced(path, element)


def restored(
    document: Document, elements: Sequence[Element]
) -> tuple[Document, tuple[Element, ...]]:
    """Return the document with earlier states of elements, and the states that they replace."""
    replaced = []
    check_labels(document, elements, lambda index: "/blockId")
    if len(elements) > 1 and all(document.parents.get(element.id) == "" for element in elements):
        for element in elements:
            check_cites(document, element, "/blockId")
            replaced.append(find_element(document, element.id)[1])
        return document.with_blocks(replaced, elements), tuple(replaced)
    for element in elements:
        path, now = find_element(document, element.id)
        check_cites(document, element, "/blockId")
        document = replace_element(document, path, element, "/blockId")
        replaced.append(now)
    return document, tuple(replaced)


def map_leaves(element: Element, change: Callable[[Leaf], Leaf]) -> Element:
    """Return the element with every leaf below it and of its caption changed, in normal form.

    Parts in which nothing changes stay the same objects. Notes are leaves; what is in them is not.
    """
    caption = tuple([change(leaf) for leaf in element.caption])
    if any(new is not old for new, old in zip(caption, element.caption, strict=True)):
        element = replace(element, caption=normal_leaves(caption))
    children: list[Node] = [
        change(child) if isinstance(child, Leaf) else map_leaves(child, change)
        for child in element.children
    ]
    if all(new is old for new, old in zip(children, element.children, strict=True)):
        return element
    return element.with_children(normal_children(element.type, children))


def with_leaf(element: Element, index: int, leaf: Leaf) -> Element:
    """Return the element with another leaf at a place, in normal form."""
    children = (*element.children[:index], leaf, *element.children[index + 1 :])
    return element.with_children(normal_children(element.type, children))


def check_labels(
    document: Document,
    elements: Sequence[Element],
    pointer: Callable[[int], str],
    replaced_ids: Iterable[str] = (),
) -> None:
    """Check that no other block has a label of elements that are new, or new states.

    Args:
        document: the document without the change.
        elements: the elements.
        pointer: returns the pointer to an element, by its position.
        replaced_ids: ids of blocks that will be gone.
    """
    labels: set[str] = set()
    ids = {*replaced_ids, *(element.id for element in elements)}
    for index, element in enumerate(elements):
        label = element.label
        if label is None:
            continue
        holder = document.blocks.labelled(label)
        if label in labels or not (holder is None or holder in ids):
            which = "a block of this edit" if label in labels else f"the block {holder}"
            where = join_pointer(pointer(index), "label")
            raise schema_error(where, f"is the label of {which}")
        labels.add(label)


def check_cites(document: Document, element: Element, pointer: str) -> None:
    """Check that the references that an element cites exist; an error points to the citation."""
    if all(cite in document.references for cite in element.cites):
        return
    for index, child in enumerate(element.children):
        child_pointer = join_pointer(join_pointer(pointer, "children"), index)
        if isinstance(child, Element):
            check_cites(document, child, child_pointer)
        else:
            check_cites_of_leaf(document, child, child_pointer)
    for index, leaf in enumerate(element.caption):
        check_cites_of_leaf(document, leaf, f"{pointer}/caption/{index}")


def check_cites_of_leaf(document: Document, leaf: Leaf, pointer: str) -> None:
    """Check that the references that a leaf cites exist; an error points to the citation."""
    for index, citation in enumerate(leaf.citations):
        if citation.id not in document.references:
            where = join_pointer(pointer, "cite")
            raise unknown_reference_error(
                where if isinstance(leaf.cite, str) else f"{where}/{index}/id"
            )
    for index, child in enumerate(leaf.note):
        check_cites_of_leaf(document, child, f"{pointer}/children/{index}")


def unknown_reference_error(pointer: str) -> EditError:
    """Return the error for a reference id that the document does not have."""
    return EditError(
        EditErrorCode.NO_REFERENCE, pointer, "no reference with this id in the document"
    )


def check_size(
    document: Document,
    depth: int,
    removed: Sequence[Element],
    new: Sequence[Element],
    pointer: str,
) -> None:
    """Check the document's depth and size with `new` in place of `removed` at a depth."""
    if any(height(element) + depth - 1 > limits.DEPTH for element in new):
        raise schema_error(pointer, f"would be nested more than {limits.DEPTH} elements deep")
    added_count = sum(1 for element in new for _ in walk(element))
    removed_count = sum(1 for element in removed for _ in walk(element))
    if (
        added_count > removed_count
        and len(document.parents) + added_count - removed_count > limits.ELEMENTS
    ):
        raise schema_error(pointer, f"a document can have at most {limits.ELEMENTS} elements")


def without_cite(leaf: Leaf, reference_id: str) -> Leaf:
    """Return the leaf without its citations of a reference, also in a note."""
    if reference_id not in leaf.cites:
        return leaf
    remaining = tuple([one for one in leaf.citations if one.id != reference_id])
    note = [without_cite(child, reference_id) for child in leaf.note]
    return replace(
        leaf, cite=normal_cite(remaining), note=normal_leaves(note) if note else leaf.note
    )

"""Operations that move and duplicate elements, alone or with their section."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

from services.articles.tree.document import Document, Path
from services.articles.tree.errors import EditError, EditErrorCode
from services.articles.tree.nodes import Element, Json, Leaf, Node
from services.articles.tree.operations.base import Change, find_element
from services.articles.tree.operations.blocks import InsertBlocks
from services.articles.tree.parsing import NewId, with_checked_children
from services.articles.tree.sections import is_heading, section_end
from services.articles.tree.texts import count_characters
from services.articles.tree.values import schema_error


class BlockPlace(Struct, frozen=True):
    """A place between elements: before the node at a path, or before an element.

    Attributes:
        path: child indices from the root, in the document as it is.
        before_id: the element; None if the path counts.
    """

    path: Path = ()
    before_id: str | None = None

    def resolve(self, document: Document) -> Path:
        """Return the path of the place in a document."""
        if self.before_id is None:
            return self.path
        return find_element(document, self.before_id, "/beforeId")[0]

    @property
    def pointer(self) -> str:
        """The JSON pointer to the place."""
        return "/path" if self.before_id is None else "/beforeId"


class MoveElements(Struct, frozen=True):
    """Move adjacent elements, which keep their ids.

    Attributes:
        block_ids: ids of the elements in document order.
        path: path of the first of them afterwards.
    """

    name: ClassVar[str] = "move"
    block_ids: tuple[str, ...]
    path: Path

    def apply(self, document: Document) -> Change:
        """Move all or none."""
        source, first = find_element(document, self.block_ids[0])
        if first.type == "table-cell":
            raise schema_error("/blockId", "a cell cannot be moved; table/edit changes tables")
        start, stop = source[-1], source[-1] + len(self.block_ids)
        nodes = [document.node_at((*source[:-1], index)) for index in range(start, stop)]
        elements = tuple([node for node in nodes if isinstance(node, Element)])
        if tuple(element.id for element in elements) != self.block_ids:
            raise EditError(EditErrorCode.NO_BLOCK, "/blockId", "the blocks are no longer adjacent")
        remaining = _without(document, source[:-1], start, stop)
        try:
            moved = InsertBlocks(self.path, elements).apply(remaining).document
        except EditError as error:
            pointer = "/blockId" if error.pointer.startswith("/blocks") else error.pointer
            raise EditError(error.code, pointer, error.problem) from None
        return Change(moved, MoveElements(self.block_ids, source))

    def to_json(self) -> dict[str, Json]:
        """Return ids and path."""
        return {"blockIds": list(self.block_ids), "path": list(self.path)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the output of `to_json`."""
        return cls(tuple(stored["blockIds"]), tuple(stored["path"]))


class MoveBlock(Struct, frozen=True):
    """Move an element to a place.

    Attributes:
        block_id: id of the element.
        place: the place.
        with_section: whether the blocks of the section that it begins move with it.
    """

    block_id: str
    place: BlockPlace
    with_section: bool = False

    def apply(self, document: Document) -> Change:
        """Move the element."""
        source, elements = _elements(document, self.block_id, self.with_section)
        target = self.place.resolve(document)
        path = _after_removal(target, source, len(elements), self.place.pointer)
        move = MoveElements(tuple([element.id for element in elements]), path)
        return replace(move.apply(document), operation=move)


class DuplicateBlock(Struct, frozen=True):
    """Insert a copy of an element, with new ids.

    Attributes:
        block_id: id of the element.
        place: the place of the copy; None for right after the original.
        new_id: returns an id that no element ever had.
        with_section: whether the blocks of the section that it begins are copied, too.
    """

    block_id: str
    place: BlockPlace | None
    new_id: NewId
    with_section: bool = False

    def apply(self, document: Document) -> Change:
        """Insert the copy; the ids of the change are those of the copied blocks."""
        source, elements = _elements(document, self.block_id, self.with_section)
        path: Path = (*source[:-1], source[-1] + len(elements))
        if self.place is not None:
            path = self.place.resolve(document)
        copies = tuple([copied(element, self.new_id) for element in elements])
        insertion = InsertBlocks(path, copies)
        return replace(
            insertion.apply(document),
            operation=insertion,
            copied_characters=count_characters(copies),
        )


def _elements(
    document: Document, block_id: str, with_section: bool
) -> tuple[Path, Sequence[Element]]:
    """Return the path of an element, and the element with those of its section, if asked for."""
    path, element = find_element(document, block_id)
    if not with_section:
        return path, (element,)
    if not is_heading(element.type):
        problem = f"a block of type {element.type} begins no section; name a heading"
        raise schema_error("/section", problem)
    return path, [document.blocks[at] for at in range(path[0], section_end(document, path[0]))]


def _after_removal(target: Path, source: Path, count: int, pointer: str) -> Path:
    """Return the path that a place has once `count` elements from `source` on are removed."""
    depth, start = len(source) - 1, source[-1]
    if len(target) <= depth or target[:depth] != source[:depth] or target[depth] <= start:
        is_inside = target[: len(source)] == source and len(target) > len(source)
    else:
        is_inside = len(target) > len(source) and target[depth] < start + count
        at = max(start, target[depth] - count)
        target = (*target[:depth], at, *target[depth + 1 :])
    if is_inside:
        raise EditError(EditErrorCode.PATH, pointer, "a block cannot be moved into itself")
    return target


def _without(document: Document, holder: Path, start: int, stop: int) -> Document:
    if not holder:
        return document.spliced(start, stop, ())
    old = document.node_at(holder)
    assert isinstance(old, Element)
    children = (*old.children[:start], *old.children[stop:])
    return document.replaced(holder, with_checked_children(old, children, "/blockId"))


def copied(element: Element, new_id: NewId) -> Element:
    """Return a copy of an element, with new ids."""
    children: list[Node] = [
        child if isinstance(child, Leaf) else copied(child, new_id) for child in element.children
    ]
    # A label is of one block.
    content = {key: value for key, value in element.content.items() if key != "label"}
    return replace(element, id=new_id(), children=tuple(children), content=content)

"""Builders of documents and edits for tests, and checks of what holds for every document."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from gateway.articles.v1 import edits_pb2 as pb
from services.articles.tree.document import Document
from services.articles.tree.edits import read_edit
from services.articles.tree.errors import EditError
from services.articles.tree.nodes import (
    HOLDS,
    LEAVES_ONLY_TYPES,
    OBJECT,
    VOID_TYPES,
    Element,
    Leaf,
    element_to_json,
    normal_cite,
)
from services.articles.tree.operations import Change, DocumentEdit

Body = dict[str, Any]


@dataclass
class Ids:
    """Generator of the ids e1, e2, …, with their count."""

    given: int = 0

    def __call__(self) -> str:
        self.given += 1
        return f"e{self.given}"


# Fields of the HTTP API that an edit's message names otherwise.
_NAMES = {
    "blockId": "block_id",
    "leafPath": "leaf_path",
    "referenceId": "reference_id",
    "cite": "reference_id",
}
# Of edits whose other fields are the change itself: the field that holds them as JSON.
_CHANGES = {"replace_text": "fields", "set_block_style": "properties", "set_leaf_style": "marks"}


KINDS = sorted(field.name for field in pb.Edit.DESCRIPTOR.fields)


def make_edit(kind: str, body: Body) -> pb.Edit:
    """Return an edit, described as the HTTP API does but for the session."""
    edit = pb.Edit()
    message = getattr(edit, kind)
    message.SetInParent()
    fields = {_NAMES.get(name, name): value for name, value in body.items()}
    message_fields = message.DESCRIPTOR.fields_by_name
    if changes := _CHANGES.get(kind):
        changed_properties = {
            name: value
            for name, value in body.items()
            if _NAMES.get(name, name) not in message_fields
        }
        fields = {name: value for name, value in fields.items() if name in message_fields}
        fields[changes] = changed_properties
    for name, value in fields.items():
        if message_fields[name].type == message_fields[name].TYPE_BYTES:
            setattr(message, name, json.dumps(value).encode())
        elif kind == "apply_edits":
            message.edits.extend(make_edit(*one) for one in value)
        elif kind == "edit_text" and name == "edits":
            message.edits.extend(pb.TextReplacement(**one) for one in value)
        elif isinstance(value, list):
            getattr(message, name).extend(value)
        elif value is not None:
            setattr(message, name, value)
    return edit


@dataclass
class Editor:
    """A document under edit; each method takes the body of an endpoint, by keywords."""

    document: Document = field(default_factory=Document)
    ids: Ids = field(default_factory=Ids)

    def read(self, kind: str, body: Body) -> DocumentEdit:
        return read_edit(make_edit(kind, body), self.ids)

    def edit(self, kind: str, body: Body) -> Change:
        change = self.read(kind, body).apply(self.document)
        self.document = change.document
        return change

    def insert(self, *blocks: Body, path: list[int] | None = None) -> str:
        """Insert blocks, at the end unless told otherwise; return the id of the first."""
        where = [len(self.document.blocks)] if path is None else path
        return self.edit("insert_blocks", {"path": where, "blocks": list(blocks)}).ids[0]

    def json(self, block_id: str) -> Any:
        """Return an element as a caller reads it."""
        element = self.document.element(block_id)
        assert element is not None
        return element_to_json(element)

    def children(self, block_id: str) -> Any:
        return self.json(block_id)["children"]

    def refuse(self, kind: str, body: Body, code: int, pointer: str | None = None) -> EditError:
        """Expect a refusal with a code (and a pointer), which changes nothing."""
        before = as_bytes(self.document)
        with pytest.raises(EditError) as refused:
            self.edit(kind, body)
        assert refused.value.code == code, refused.value.message
        if pointer is not None:
            assert refused.value.pointer == pointer, refused.value.message
        assert refused.value.message.startswith(refused.value.pointer)
        assert as_bytes(self.document) == before
        return refused.value


def as_bytes(document: Document) -> bytes:
    return json.dumps(document.to_json(), sort_keys=True).encode()


def text(value: str, **marks: Any) -> Body:
    return {"text": value, **marks}


def paragraph(*leaves: str | Body, kind: str = "paragraph", **fields: Any) -> Body:
    children = [text(leaf) if isinstance(leaf, str) else leaf for leaf in leaves]
    return {"type": kind, "children": children, **fields}


def item(*children: str | Body) -> Body:
    return paragraph(*children, kind="list-item")


def bullets(*items: str | Body, **fields: Any) -> Body:
    made = [item(entry) if isinstance(entry, str) else entry for entry in items]
    return {"type": "list", "children": made, **fields}


def cell(content: str | Body = "", **spans: int) -> Body:
    return paragraph(content, kind="table-cell", **spans)


def row(*cells: str | Body) -> Body:
    made = [cell(entry) if isinstance(entry, str) else entry for entry in cells]
    return {"type": "table-row", "children": made}


def table(*rows: Body) -> Body:
    return {"type": "table", "children": list(rows)}


def label_item(name: str, *children: str | Body) -> Body:
    return paragraph(*children, kind="label-item", name=name)


def label(*items: Body) -> Body:
    return {"type": "label", "children": list(items)}


# --- what must always hold -------------------------------------------------------------------


def check(document: Document) -> None:
    """Assert that a document is valid and normal, and that ids lead where they should."""
    seen: set[str] = set()
    for place, block in enumerate(document.blocks):
        assert block.type not in ("label-item", "list-item", "table-row", "table-cell")
        assert document.blocks[place] is block
        for path, element in located((place,), block):
            assert element.id not in seen
            seen.add(element.id)
            assert document.path_of(element.id) == path
            assert document.node_at(path) is element
            assert len(path) <= 8
            check_element(element)
    assert len(document.parents) == len(seen)
    assert set(reading_order(document)) <= document.references.keys()
    check_labels(document)
    numbers = {cite: n for n, cite in enumerate(dict.fromkeys(reading_order(document)), 1)}
    assert document.numbers() == numbers
    assert all(document.references[key]["id"] == key for key in document.references)


def reading_order(document: Document) -> Iterator[str]:
    def below(element: Element) -> Iterator[str]:
        for child in element.children:
            if isinstance(child, Element):
                yield from below(child)
            else:
                yield from cited(child)
        for leaf in element.caption:
            yield from cited(leaf)

    def cited(leaf: Leaf) -> Iterator[str]:
        yield from [citation.id for citation in leaf.citations]
        for child in leaf.note:
            yield from cited(child)

    for block in document.blocks:
        yield from below(block)


def check_labels(document: Document) -> None:
    labels = [block.label for block in document.blocks if block.label is not None]
    assert len(set(labels)) == len(labels)
    assert document.label_numbers().keys() == set(labels)
    for block in document.blocks:
        if block.label is not None:
            assert document.blocks.labelled(block.label) == block.id


def located(path: tuple[int, ...], element: Element) -> Iterator[tuple[tuple[int, ...], Element]]:
    yield path, element
    for place, child in enumerate(element.children):
        if isinstance(child, Element):
            yield from located((*path, place), child)


def check_element(element: Element) -> None:
    leaves, elements = element.leaves, element.elements
    assert all(child.type == HOLDS.get(element.type) for child in elements)
    if element.type in VOID_TYPES:
        assert not element.children
    elif element.type in LEAVES_ONLY_TYPES:
        assert leaves and not elements
    elif element.type == "list-item":
        assert leaves and len(elements) <= 1
        assert element.children == (*leaves, *elements)
    elif element.type == "label":
        assert bool(leaves) != bool(elements)
    else:
        assert not leaves
    check_leaves(leaves)
    check_leaves(element.caption)
    if element.type == "table":
        check_grid(element)


def check_leaves(leaves: tuple[Leaf, ...]) -> None:
    assert len(leaves) <= 1 or all(leaf.text or leaf.cite for leaf in leaves)
    for leaf in leaves:
        check_leaves(leaf.note)
        assert leaf.is_object == (leaf.text == OBJECT)
        assert bool(leaf.note) == (leaf.type == "note")
        assert leaf.cite == normal_cite(leaf.citations)
    for one, other in pairwise(leaves):
        assert one.is_object or not one.same_marks(other)


def check_grid(table: Element) -> None:
    height = len(table.children)
    width = table.content["colLength"]
    assert table.content["rowLength"] == height
    align: Any = table.content.get("align")
    assert align is None or (len(align) == width and any(align))
    taken: set[tuple[int, int]] = set()
    for y, line in enumerate(table.elements):
        x = 0
        for one in line.elements:
            while (y, x) in taken:
                x += 1
            spans: Any = one.content
            for dy in range(spans["rowSpan"]):
                for dx in range(spans["colSpan"]):
                    assert (y + dy, x + dx) not in taken
                    taken.add((y + dy, x + dx))
    assert isinstance(width, int)
    assert taken == {(y, x) for y in range(height) for x in range(width)}

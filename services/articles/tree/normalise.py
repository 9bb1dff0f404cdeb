"""The normal form of children, and the grid of a table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from services.articles.tree.nodes import (
    EMPTY_LEAF,
    LEAVES_ONLY_TYPES,
    OBJECT_TYPES,
    Element,
    Json,
    Leaf,
    Node,
)
from services.articles.tree.values import schema_error
from services.common.articles import limits

# Types of leaves that are not joined with an equal one. Citations are some while Markdown is read.
_SINGLE_TYPES = frozenset({*OBJECT_TYPES, "citation"})


def normal_leaves(leaves: Iterable[Leaf]) -> tuple[Leaf, ...]:
    """Return leaves with neighbours of equal marks joined, and empty ones dropped.

    An empty leaf with a citation stays: it is a citation without words. The result is never empty:
    without any text or citation the first leaf stays, or an empty one is made.
    """
    leaf_list = list(leaves)
    runs: list[list[Leaf]] = []
    for leaf in leaf_list:
        if not leaf.text and leaf.cite is None:
            continue
        if runs and leaf.type not in _SINGLE_TYPES and runs[-1][0].same_marks(leaf):
            runs[-1].append(leaf)
        else:
            runs.append([leaf])
    # A run is joined at once: joining each leaf to the one before takes quadratic time.
    normal = tuple(
        [
            replace(run[0], text="".join([leaf.text for leaf in run])) if len(run) > 1 else run[0]
            for run in runs
        ]
    )
    return normal or (leaf_list[0] if leaf_list else EMPTY_LEAF,)


def appended(leaves: tuple[Leaf, ...], more: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """Return the normal form of leaves, which are in it already, with further ones at their end."""
    last = leaves[-1]
    if len(more) == 1 and last.text and more[0].text and more[0].type not in _SINGLE_TYPES:
        # Nearly all are some more words.
        is_joined = last.same_marks(more[0])
        return (
            (*leaves[:-1], replace(last, text=last.text + more[0].text))
            if is_joined
            else (*leaves, more[0])
        )
    return normal_leaves((*leaves, *more))


def normal_children(kind: str, children: Sequence[Node]) -> tuple[Node, ...]:
    """Return the normal form of children that fit the type."""
    if kind in LEAVES_ONLY_TYPES:
        return normal_leaves(cast(Sequence[Leaf], children))
    leaves = [child for child in children if isinstance(child, Leaf)]
    if kind == "list-item":
        return (*normal_leaves(leaves), *(c for c in children if isinstance(c, Element)))
    if kind == "label" and len(leaves) == len(children):
        return normal_leaves(leaves)
    return tuple(children)


def normal_align(content: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the content of a table with an alignment for each column, or with none at all."""
    align: Any = content.get("align")
    if align is None:
        return content
    width = int(str(content["colLength"]))
    columns = [*align[:width], *[None] * (width - len(align))]
    others = {key: value for key, value in content.items() if key != "align"}
    return {**others, "align": columns} if any(columns) else others


def grid(rows: Sequence[Element], pointer: str) -> dict[str, Json]:
    """Lay out the cells of a table, and return its count of rows and columns.

    Every slot is taken by exactly one cell: its own, or one that spans over it.

    Raises:
        EditError: a span overlaps or leaves the table, a row is too short or too long, or the
            table is larger than the limits.
    """
    if not rows:
        return {"rowLength": 0, "colLength": 0}
    if len(rows) > limits.TABLE_ROWS:
        raise schema_error(pointer, f"a table can have at most {limits.TABLE_ROWS} rows")
    width = sum(_spans(cell)[0] for cell in rows[0].elements)
    if width == 0:
        raise schema_error(pointer, "the first row of a table must have a cell")
    if width > limits.TABLE_COLUMNS:
        raise schema_error(pointer, f"a table can have at most {limits.TABLE_COLUMNS} columns")
    # For each column, the first row that no cell from above spans into.
    free_from = [0] * width
    for y, row in enumerate(rows):
        _lay_row(row, y, len(rows), free_from, pointer)
    return {"rowLength": len(rows), "colLength": width}


def _lay_row(row: Element, y: int, height: int, free_from: list[int], pointer: str) -> None:
    x, width = 0, len(free_from)
    for cell in row.elements:
        while x < width and free_from[x] > y:
            x += 1
        columns, row_span = _spans(cell)
        cell_text = f"the cell at row {y}, column {x} of the table"
        if x + columns > width:
            raise schema_error(pointer, f"{cell_text} extends beyond the last column, {width - 1}")
        if y + row_span > height:
            raise schema_error(pointer, f"{cell_text} spans beyond the last row")
        for column in range(x, x + columns):
            if free_from[column] > y:
                raise schema_error(
                    pointer, f"{cell_text} overlaps a cell that spans down from above"
                )
            free_from[column] = y + row_span
        x += columns
    if any(free <= y for free in free_from):
        raise schema_error(
            pointer, f"row {y} of the table has empty columns; all {width} must be covered"
        )


def _spans(cell: Element) -> tuple[int, int]:
    columns, rows = cell.content["colSpan"], cell.content["rowSpan"]
    assert isinstance(columns, int) and isinstance(rows, int)
    return columns, rows

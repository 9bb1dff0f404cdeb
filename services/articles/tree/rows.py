"""The rows of a table as cells in a grid, and back; deletion of rows."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from services.articles.tree.nodes import Element


class PlacedCell(NamedTuple):
    """A cell with the position of its upper left slot, and its numbers of rows and columns."""

    cell: Element
    row: int
    column: int
    row_span: int
    column_span: int


def placed_cells(rows: Sequence[Element]) -> Iterator[PlacedCell]:
    """Yield the cells of a valid table in reading order."""
    # The columns that cells from above take in a row, by the row.
    taken: dict[int, set[int]] = {}
    for index, row in enumerate(rows):
        column = 0
        taken_here = taken.pop(index, set())
        for cell in row.elements:
            while column in taken_here:
                column += 1
            columns, row_span = cell.content["colSpan"], cell.content["rowSpan"]
            assert isinstance(columns, int) and isinstance(row_span, int)
            yield PlacedCell(cell, index, column, row_span, columns)
            for below in range(index + 1, index + row_span):
                taken.setdefault(below, set()).update(range(column, column + columns))
            column += columns


def with_cells(rows: Sequence[Element], cells: Iterable[PlacedCell]) -> tuple[Element, ...]:
    """Return rows with the cells that are placed in them.

    Rows and cells that stay as they were stay the same objects.
    """
    cells_of: list[list[PlacedCell]] = [[] for _ in rows]
    for cell in cells:
        cells_of[cell.row].append(cell)
    changed = []
    for row, placed in zip(rows, cells_of, strict=True):
        placed.sort(key=lambda cell: cell.column)
        children = tuple([_with_spans(cell) for cell in placed])
        is_same = len(children) == len(row.children) and all(
            new is old for new, old in zip(children, row.children, strict=True)
        )
        changed.append(row if is_same else row.with_children(children))
    return tuple(changed)


def without_rows(rows: Sequence[Element], start: int, stop: int) -> tuple[Element, ...]:
    """Return the rows of a table without those from `start` to `stop`.

    Cells that span a deleted row and others shrink. A cell that begins in a deleted row and spans
    down moves to the first row that stays below.
    """
    cells = []
    for cell in placed_cells(rows):
        top, bottom = cell.row, cell.row + cell.row_span
        row_span = cell.row_span - max(0, min(bottom, stop) - max(top, start))
        if row_span:
            row = top - min(stop - start, max(0, top - start))
            cells.append(cell._replace(row=row, row_span=row_span))
    return with_cells((*rows[:start], *rows[stop:]), cells)


def _with_spans(placed: PlacedCell) -> Element:
    spans = {"colSpan": placed.column_span, "rowSpan": placed.row_span}
    return placed.cell if placed.cell.content == spans else replace(placed.cell, content=spans)

"""Deletion of table rows: cells that span a deleted row and others shrink."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from services.articles.tree.nodes import Element


class _PlacedCell(NamedTuple):
    """A cell with the position of its upper left slot, and its number of rows."""

    cell: Element
    row: int
    column: int
    row_span: int


def without_rows(rows: Sequence[Element], start: int, stop: int) -> tuple[Element, ...]:
    """Return the rows of a table without those from `start` to `stop`.

    A cell that begins in a deleted row and spans down moves to the first row that stays below.
    Rows and cells that keep their content stay the same objects.
    """
    cells_of: dict[int, list[_PlacedCell]] = {}
    for placed in _place(rows):
        top, bottom = placed.row, placed.row + placed.row_span
        row_span = placed.row_span - max(0, min(bottom, stop) - max(top, start))
        if not row_span:
            continue
        cell = placed.cell
        if row_span != placed.row_span:
            cell = replace(cell, content={**cell.content, "rowSpan": row_span})
        first_row = stop if start <= top < stop else top
        cells_of.setdefault(first_row, []).append(placed._replace(cell=cell))
    remaining = []
    for index, row in enumerate(rows):
        if start <= index < stop:
            continue
        cells = sorted(cells_of.get(index, ()), key=lambda placed: placed.column)
        children = tuple(placed.cell for placed in cells)
        is_same = all(new is old for new, old in zip(children, row.children, strict=False))
        if not is_same or len(children) != len(row.children):
            row = row.with_children(children)
        remaining.append(row)
    return tuple(remaining)


def _place(rows: Sequence[Element]) -> Iterator[_PlacedCell]:
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
            yield _PlacedCell(cell, index, column, row_span)
            for below in range(index + 1, index + row_span):
                taken.setdefault(below, set()).update(range(column, column + columns))
            column += columns

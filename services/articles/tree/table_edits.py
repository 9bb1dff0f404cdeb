"""Changes of the grid of a table. Cells keep their ids; those that span a change grow or shrink."""

from collections.abc import Sequence

from services.articles.tree.nodes import EMPTY_LEAF, Element, Json, Leaf
from services.articles.tree.normalise import normal_leaves
from services.articles.tree.parsing import NewId
from services.articles.tree.rows import PlacedCell, placed_cells, with_cells, without_rows
from services.articles.tree.values import schema_error


class TableEdit:
    """The rows of a table under change, and the ids of the elements that are made.

    Every position counts slots of the grid, from 0.

    Attributes:
        rows: the rows.
        content: the content of the table; counts of rows and columns are those before.
        ids: ids of the new rows, or of the new cells of rows that were there.
    """

    def __init__(self, table: Element, new_id: NewId) -> None:
        self.rows: tuple[Element, ...] = table.elements
        self.ids: list[str] = []
        self.content = table.content
        self._new_id = new_id
        self._height = len(self.rows)
        self._width = int(str(table.content["colLength"]))

    def insert_rows(self, at: int, count: int) -> None:
        """Insert empty rows before a row, or after the last."""
        self._check(at, self._height, "/row")
        width = max(1, self._width)
        cells: list[PlacedCell] = []
        free = [set(range(width)) for _ in range(count)]
        for cell in placed_cells(self.rows):
            if cell.row >= at:
                cells.append(cell._replace(row=cell.row + count))
            elif cell.row + cell.row_span > at:
                cells.append(cell._replace(row_span=cell.row_span + count))
                for columns in free:
                    columns.difference_update(range(cell.column, cell.column + cell.column_span))
            else:
                cells.append(cell)
        new_rows = [Element(self._new_id(), "table-row") for _ in range(count)]
        self.ids.extend(row.id for row in new_rows)
        for index, columns in enumerate(free):
            cells.extend(self._new_cell(at + index, column) for column in columns)
        self.rows = with_cells((*self.rows[:at], *new_rows, *self.rows[at:]), cells)

    def delete_rows(self, at: int, count: int) -> None:
        """Delete rows, but not all."""
        self._check_deletion(at, count, self._height, "/rows")
        self.rows = without_rows(self.rows, at, at + count)

    def insert_columns(self, at: int, count: int) -> None:
        """Insert empty columns before a column, or after the last."""
        self._check(at, self._width, "/column")
        cells: list[PlacedCell] = []
        free = set(range(self._height))
        for cell in placed_cells(self.rows):
            if cell.column >= at:
                cells.append(cell._replace(column=cell.column + count))
            elif cell.column + cell.column_span > at:
                cells.append(cell._replace(column_span=cell.column_span + count))
                free.difference_update(range(cell.row, cell.row + cell.row_span))
            else:
                cells.append(cell)
        for row in sorted(free):
            for column in range(at, at + count):
                cells.append(self._noted(self._new_cell(row, column)))
        self.rows = with_cells(self.rows, cells)
        if (align := self._align()) is not None:
            beside = align[at - 1] if at else None
            self._set_align([*align[:at], *[beside] * count, *align[at:]])

    def delete_columns(self, at: int, count: int) -> None:
        """Delete columns, but not all."""
        self._check_deletion(at, count, self._width, "/columns")
        cells: list[PlacedCell] = []
        for cell in placed_cells(self.rows):
            left, right = cell.column, cell.column + cell.column_span
            deleted = max(0, min(right, at + count) - max(left, at))
            if deleted < cell.column_span:
                column = left - min(count, max(0, left - at))
                cells.append(cell._replace(column=column, column_span=cell.column_span - deleted))
        self.rows = with_cells(self.rows, cells)
        if (align := self._align()) is not None:
            self._set_align([*align[:at], *align[at + count :]])

    def align_columns(self, at: int, count: int, align: str | None) -> None:
        """Set the alignment of columns; None leaves it to the style of the table."""
        self._check(at + count, self._width, "/columns")
        columns: list[Json] = list(self._align() or [None] * self._width)
        self._set_align([*columns[:at], *[align] * count, *columns[at + count :]])

    def _align(self) -> Sequence[Json] | None:
        align = self.content.get("align")
        return align if isinstance(align, list | tuple) else None

    def _set_align(self, align: Sequence[Json]) -> None:
        self.content = {**self.content, "align": align}

    def merge_cells(self, row: int, column: int, rows: int, columns: int) -> None:
        """Make one cell of those in a rectangle; their texts are joined by line breaks."""
        self._check(row + rows, self._height, "/rows")
        self._check(column + columns, self._width, "/columns")
        inside: list[PlacedCell] = []
        outside: list[PlacedCell] = []
        for cell in placed_cells(self.rows):
            bottom, right = cell.row + cell.row_span, cell.column + cell.column_span
            if min(bottom, row + rows) <= max(cell.row, row) or (
                min(right, column + columns) <= max(cell.column, column)
            ):
                outside.append(cell)
                continue
            inside.append(cell)
            is_whole = (
                *(cell.row >= row, cell.column >= column),
                *(bottom <= row + rows, right <= column + columns),
            )
            if not all(is_whole):
                at = f"row {cell.row}, column {cell.column}"
                raise schema_error("/rows", f"the cell at {at} would be cut; split it first")
        leaves = normal_leaves(_joined([placed.cell for placed in inside]))
        merged = inside[0].cell.with_children(leaves)
        self.rows = with_cells(
            self.rows, [*outside, PlacedCell(merged, row, column, rows, columns)]
        )

    def split_cell(self, row: int, column: int) -> None:
        """Reduce a cell to the first of its slots, and fill the others with empty cells."""
        self._check(row + 1, self._height, "/row")
        self._check(column + 1, self._width, "/column")
        cells: list[PlacedCell] = []
        for cell in placed_cells(self.rows):
            lines = range(cell.row, cell.row + cell.row_span)
            across = range(cell.column, cell.column + cell.column_span)
            if row not in lines or column not in across:
                cells.append(cell)
                continue
            cells.append(cell._replace(row_span=1, column_span=1))
            slots = [(y, x) for y in lines for x in across]
            cells.extend(self._noted(self._new_cell(*slot)) for slot in slots[1:])
        self.rows = with_cells(self.rows, cells)

    def _new_cell(self, row: int, column: int) -> PlacedCell:
        content = {"colSpan": 1, "rowSpan": 1}
        cell = Element(self._new_id(), "table-cell", (EMPTY_LEAF,), content=content)
        return PlacedCell(cell, row, column, 1, 1)

    def _noted(self, placed: PlacedCell) -> PlacedCell:
        self.ids.append(placed.cell.id)
        return placed

    @staticmethod
    def _check(end: int, length: int, pointer: str) -> None:
        if end > length:
            problem = f"leaves the table: the last slot would be {end - 1}, and there are {length}"
            raise schema_error(pointer, problem)

    def _check_deletion(self, at: int, count: int, length: int, pointer: str) -> None:
        self._check(at + count, length, pointer)
        if count == length:
            raise schema_error(pointer, "must leave some; block/delete deletes a table")


def _joined(cells: Sequence[Element]) -> list[Leaf]:
    leaves: list[Leaf] = []
    for cell in cells:
        if cell.children == (EMPTY_LEAF,):
            continue
        if leaves:
            leaves.append(Leaf("\n"))
        leaves.extend(cell.leaves)
    return leaves

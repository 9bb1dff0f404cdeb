"""Convert XLSX sheets to Markdown tables."""

import datetime
import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.worksheet._reader import DATA_TAG, ROW_TAG, WorkSheetParser
from openpyxl.worksheet.formula import ArrayFormula
from openpyxl.xml.functions import iterparse

from services.media.conversion import markdown
from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import MAX_CELLS, MAX_COLUMNS, MAX_ROWS, MAX_TEXT
from services.media.conversion.parts import PageText

_GOES_ON = "… the sheet goes on"
_SEPARATOR_SIZE = 3  # of two cells
_DAMAGED = (InvalidFileException, KeyError, ValueError, OSError, SyntaxError, zipfile.BadZipFile)


def as_pages(content: bytes, max_pages: int) -> tuple[PageText, ...]:
    """Return a page per sheet, hidden sheets included, titled by its name.

    A formula is shown as its cached value, or as the formula itself if there is none. Of all sheets
    together, `MAX_ROWS` and `MAX_CELLS` are read; a page says where its sheet goes on.
    """
    try:
        values, formulas = (
            openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=data_only)
            for data_only in (True, False)
        )
        names = [sheet.title for sheet in values.worksheets]
        if len(names) > max_pages:
            raise ConversionError(
                f"the document has {len(names)} sheets; at most {max_pages} are converted"
            )
        reader = _Reader()
        return tuple(
            PageText(number, f"## {name}\n\n{reader.read(values[name], formulas[name])}")
            for number, name in enumerate(names, start=1)
        )
    except _DAMAGED as error:
        raise ConversionError("the XLSX is damaged") from error


class _Reader:
    """Reads the sheets of one workbook."""

    def __init__(self) -> None:
        self._rows = MAX_ROWS
        self._cells = MAX_CELLS

    def read(self, values: Any, formulas: Any) -> str:
        """Return a sheet without empty rows and empty outer columns."""
        rows, goes_on = self._texts(values, formulas)
        first = min((min(row) for row in rows), default=0)
        last = max((max(row) for row in rows), default=0)
        if last - first >= MAX_COLUMNS:
            last, goes_on = first + MAX_COLUMNS - 1, True
        size = len(rows) * (last + 1 - first) * _SEPARATOR_SIZE
        if size + sum(len(text) for row in rows for text in row.values()) > MAX_TEXT:
            raise ConversionError(f"the document has more than {MAX_TEXT >> 20} MiB of text")
        columns = range(first, last + 1)
        table = markdown.table([[row.get(column, "") for column in columns] for row in rows])
        return "\n\n".join(filter(None, (table, _GOES_ON if goes_on else "")))

    def _texts(self, values: Any, formulas: Any) -> tuple[Sequence[Mapping[int, str]], bool]:
        """Return the texts of each row by column, and whether there are more rows."""
        rows: list[Mapping[int, str]] = []
        for row, same in zip(_parsed(values), _parsed(formulas), strict=True):
            self._rows -= 1
            self._cells -= len(row)
            if self._rows < 0 or self._cells < 0:
                return rows, True
            texts = {
                cell["column"]: text
                for cell, same_cell in zip(row, same, strict=True)
                if (text := _text(cell["value"], same_cell["value"]))
            }
            if texts:
                rows.append(texts)
        return rows, False


def _parsed(sheet: Any) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield the cells of each row of a sheet's file, which has gaps, unlike `iter_rows`."""
    book = sheet.parent
    with sheet._get_source() as source:
        parser = WorkSheetParser(
            source,
            sheet._shared_strings,
            data_only=book.data_only,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        for _, element in iterparse(source):
            if element.tag == ROW_TAG:
                yield parser.parse_row(element)[1]
                element.clear()
            elif element.tag == DATA_TAG:
                return


def _text(value: Any, formula: Any) -> str:
    cell_value = formula if value is None else value
    match cell_value:
        case None:
            return ""
        case ArrayFormula():
            return str(cell_value.text)
        case bool():
            return "TRUE" if cell_value else "FALSE"
        case datetime.datetime() if cell_value.time() == datetime.time():
            return cell_value.date().isoformat()
        case datetime.datetime() | datetime.date() | datetime.time():
            return cell_value.isoformat()
        case float() if cell_value.is_integer() and abs(cell_value) < 1e15:
            return str(int(cell_value))
    return str(cell_value)

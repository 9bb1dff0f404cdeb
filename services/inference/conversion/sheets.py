"""Convert XLSX sheets to Markdown tables."""

import datetime
import io
import itertools
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

from services.inference.conversion import markdown
from services.inference.conversion.bounds import MAX_TEXT
from services.inference.conversion.errors import ConversionError
from services.inference.conversion.parts import PageText


def as_pages(content: bytes, max_pages: int) -> tuple[PageText, ...]:
    """Return a page per sheet, hidden sheets included, titled by its name.

    A formula is shown as its cached value, or as the formula itself if there is none.
    """
    try:
        values, formulas = (
            openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=data_only)
            for data_only in (True, False)
        )
    except (InvalidFileException, KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise ConversionError("the XLSX is damaged") from error
    names = [sheet.title for sheet in values.worksheets]
    if len(names) > max_pages:
        raise ConversionError(
            f"the document has {len(names)} sheets; at most {max_pages} are converted"
        )
    return tuple(
        PageText(number, f"## {name}\n\n{markdown.table(_rows(values[name], formulas[name]))}")
        for number, name in enumerate(names, start=1)
    )


def _rows(values: Any, formulas: Any) -> Sequence[Sequence[str]]:
    """Return the cells of a sheet without empty rows and empty outer columns."""
    size = 0
    rows = []
    for row in _pairs(values, formulas):
        texts = [_text(value, formula) for value, formula in row]
        if any(texts):
            size += sum(map(len, texts)) + len(texts)
            if size > MAX_TEXT:
                raise ConversionError(f"the document has more than {MAX_TEXT >> 20} MiB of text")
            rows.append(texts)
    first = min((_first(row) for row in rows), default=0)
    last = max((len(row) - _first(row[::-1]) for row in rows), default=0)
    return [row[first:last] for row in rows]


def _pairs(values: Any, formulas: Any) -> Iterator[Iterator[tuple[Any, Any]]]:
    for row, same in itertools.zip_longest(
        values.iter_rows(values_only=True), formulas.iter_rows(values_only=True), fillvalue=()
    ):
        yield itertools.zip_longest(row, same)


def _first(row: Sequence[str]) -> int:
    return next((place for place, text in enumerate(row) if text), len(row))


def _text(value: Any, formula: Any) -> str:
    shown = formula if value is None else value
    match shown:
        case None:
            return ""
        case bool():
            return "TRUE" if shown else "FALSE"
        case datetime.datetime() if shown.time() == datetime.time():
            return shown.date().isoformat()
        case datetime.datetime() | datetime.date() | datetime.time():
            return shown.isoformat()
        case float() if shown.is_integer() and abs(shown) < 1e15:
            return str(int(shown))
    return str(shown)

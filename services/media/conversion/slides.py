"""Convert PPTX slides to Markdown."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

import pptx
from pptx.enum.shapes import MSO_SHAPE_TYPE
from pptx.exc import PythonPptxError

from services.media.conversion import markdown
from services.media.conversion.embedded import PictureReader
from services.media.conversion.errors import ConversionError
from services.media.conversion.parts import Ocr, PageText

_MAX_DEPTH = 20  # maximum depth of nested groups


def as_pages(content: bytes, max_pages: int, ocr: Ocr) -> tuple[PageText, ...]:
    """Return a page per slide, hidden slides included: title, shapes from top to bottom, notes."""
    try:
        slides = list(pptx.Presentation(io.BytesIO(content)).slides)
    except (PythonPptxError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ConversionError("the PPTX is damaged") from error
    if len(slides) > max_pages:
        raise ConversionError(
            f"the document has {len(slides)} slides; at most {max_pages} are converted"
        )
    reader = PictureReader(ocr)
    return tuple(
        PageText(number, "\n\n".join(_blocks(slide, reader)))
        for number, slide in enumerate(slides, start=1)
    )


def _blocks(slide: Any, reader: PictureReader) -> Iterator[str]:
    title = slide.shapes.title
    if title is not None and title.text_frame.text.strip():
        yield f"# {' '.join(title.text_frame.text.split())}"
    for shape in _downwards(slide.shapes):
        if title is None or shape.shape_id != title.shape_id:
            yield from _shape(shape, reader, _MAX_DEPTH)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            yield f"Notes: {notes}"


def _downwards(shapes: Any) -> list[Any]:
    return sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))


def _shape(shape: Any, reader: PictureReader, depth: int) -> Iterator[str]:
    """Yield the blocks of a shape and of its nested shapes."""
    if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
        if depth:
            for inner in _downwards(shape.shapes):
                yield from _shape(inner, reader, depth - 1)
    elif shape.has_table if hasattr(shape, "has_table") else False:
        yield markdown.table([[cell.text for cell in row.cells] for row in shape.table.rows])
    elif getattr(shape, "has_chart", False):
        yield _chart(shape.chart)
    elif hasattr(shape, "image"):
        yield reader.read(_image(shape), _description(shape))
    elif shape.has_text_frame and shape.text_frame.text.strip():
        yield "\n".join(_paragraphs(shape.text_frame))


def _paragraphs(frame: Any) -> Iterator[str]:
    for paragraph in frame.paragraphs:
        text = "".join(run.text for run in paragraph.runs).strip()
        if text:
            yield f"{'  ' * (paragraph.level - 1)}- {text}" if paragraph.level else text


def _chart(chart: Any) -> str:
    rows = []
    if chart.has_title and chart.chart_title.has_text_frame:
        rows.append(chart.chart_title.text_frame.text)
    for plot in chart.plots:
        series = list(plot.series)
        head = ["", *(data_series.name or "" for data_series in series)]
        body = [
            [str(category), *(str(data_series.values[place]) for data_series in series)]
            for place, category in enumerate(plot.categories)
        ]
        rows.append(markdown.table([head, *body]))
    return "\n\n".join(rows)


def _image(shape: Any) -> bytes:
    try:
        content: bytes = shape.image.blob
        return content
    except (KeyError, ValueError):  # linked, not embedded
        return b""


def _description(shape: Any) -> str:
    descriptions = shape._element.xpath(".//p:cNvPr/@descr")
    return str(descriptions[0]) if descriptions else ""

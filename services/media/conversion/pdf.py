"""Convert PDF pages to text and pictures with pdfium."""

import io
import itertools
import math
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pypdfium2 as pdfium
from PIL import Image
from pypdfium2 import raw

from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import (
    MAX_OBJECTS,
    MAX_SEARCHED_OBJECTS,
    MAX_SIDE,
)
from services.media.conversion.loading import load
from services.media.conversion.parts import Ocr, PagePicture, PageText, Picture
from services.media.conversion.pdf_rendering import PdfRenderer
from services.media.conversion.reading_order import Line, columns_alternate, in_order

# pdfium's mark of a hyphenated line end; it omits the hyphen.
_BROKEN_WORD = re.compile("(?<![^\\s\ufffe])(?P<before>[^\\s\ufffe]*)\ufffe")
# Direction marks added by pdfium, ligatures and private-use characters.
_MARKS = dict.fromkeys(map(ord, "\u202a\u202b\u202c\u202d\u202e\u0000\u00ad"))
_LIGATURES = {
    0xFB00 + number: letters
    for number, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl", "ft", "st"))
}
# Pixels per point of a page rendered for OCR: 200 dpi.
_OCR_SCALE = 200 / 72
# A page with fewer characters than this and mostly covered by pictures is a scan.
_LITTLE_TEXT = 50
_LARGE_PICTURE = 0.3
_DRAWN = (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING)
_MAX_DEPTH = 5
# Maximum number of text pieces whose positions are analysed; a page with more is a drawing.
_MAX_BOXES = 1_000
_NO_CHARACTERS = {"Cc", "Cf", "Cn", "Co", "Cs"}
_MAX_UNKNOWN = 0.3
# A larger PNG is sent as JPEG.
_LARGE_PNG = 1 << 20


def pages_as_text(content: bytes, max_pages: int, when: Ocr) -> tuple[PageText, ...]:
    """Return the text of each page."""
    renderer = PdfRenderer()
    with _opened(content, max_pages) as document:
        return tuple(
            _page_text(number, page, when, renderer)
            for number, page in enumerate(_counted(_with_fields(document)), start=1)
        )


def pages_as_pictures(content: bytes, max_pages: int) -> tuple[Picture, ...]:
    """Return a picture of each page."""
    renderer = PdfRenderer()
    with _opened(content, max_pages) as document:
        return tuple(
            _picture(number, renderer.render(page, math.inf, MAX_SIDE))
            for number, page in enumerate(document, start=1)
        )


def page_picture(content: bytes, number: int, longest: int) -> PagePicture:
    """Return a picture of one page, whose sides have at most `longest` pixels."""
    with _opened(content, sys.maxsize) as document:
        count = len(document)
        if number > count:
            return PagePicture(count, b"", "")
        picture = _picture(number, PdfRenderer().render(document[number - 1], math.inf, longest))
        return PagePicture(count, picture.content, picture.mime_type)


@contextmanager
def _opened(content: bytes, max_pages: int) -> Iterator[pdfium.PdfDocument]:
    try:
        document = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise ConversionError("the PDF is encrypted; send it without a password") from None
        if error.err_code == raw.FPDF_ERR_SECURITY:
            raise ConversionError("the PDF is encrypted in a way that is not supported") from None
        raise ConversionError("the PDF cannot be opened; it is damaged") from None
    try:
        if not len(document):
            raise ConversionError("the PDF has no pages")
        if len(document) > max_pages:
            raise ConversionError(
                f"the document has {len(document)} pages; at most {max_pages} are converted"
            )
        if document.get_formtype() != raw.FORMTYPE_NONE:
            document.init_forms()
        yield document
    finally:
        document.close()


def _counted(pages: Iterable[pdfium.PdfPage]) -> Iterator[pdfium.PdfPage]:
    """Yield pages while they draw at most `MAX_OBJECTS` together."""
    objects_left = MAX_OBJECTS
    for page in pages:
        objects_left -= raw.FPDFPage_CountObjects(page)
        if objects_left < 0:
            raise ConversionError(f"the PDF draws more than {MAX_OBJECTS:,} objects")
        yield page


def _with_fields(document: pdfium.PdfDocument) -> Iterator[pdfium.PdfPage]:
    """Yield the pages with the text of form fields rendered."""
    for place in range(len(document)):
        page = document[place]
        if page.formenv is not None:
            page.flatten()
            page = document[place]
        yield page


def _page_text(number: int, page: pdfium.PdfPage, when: Ocr, renderer: PdfRenderer) -> PageText:
    text = _own_text(page)
    if when is Ocr.NEVER or (when is Ocr.AUTO and not _is_scan(page, text)):
        return PageText(number, text)
    ocr = load("ocr")
    image = renderer.render(page, _OCR_SCALE, ocr.MAX_SIDE)
    return PageText(number, ocr.read(image), recognised=True)


def _is_scan(page: pdfium.PdfPage, text: str) -> bool:
    """Return whether a page needs OCR.

    Scans may have a line of text added by a program. If most characters are unmapped, the fonts do
    not define the meaning of their glyphs.
    """
    letters = [char for char in text if not char.isspace()]
    if len(letters) >= _LITTLE_TEXT:
        unknown = sum(unicodedata.category(char) in _NO_CHARACTERS for char in letters)
        return unknown > _MAX_UNKNOWN * len(letters)
    width, height = page.get_size()
    picture_area = 0.0
    objects = page.get_objects(max_depth=_MAX_DEPTH)
    for page_object in itertools.islice(objects, MAX_SEARCHED_OBJECTS):
        if page_object.type == raw.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = page_object.get_bounds()
            picture_area += (right - left) * (top - bottom)
        elif not letters and page_object.type in _DRAWN:
            return True  # perhaps letters drawn as shapes
    return bool(picture_area > _LARGE_PICTURE * width * height)


def _own_text(page: pdfium.PdfPage) -> str:
    """Return the text of a page in drawing order, or in reading order if drawing order jumps."""
    textpage = page.get_textpage()
    text = textpage.get_text_range()
    boxes = [textpage.get_rect(place) for place in range(min(textpage.count_rects(), _MAX_BOXES))]
    if columns_alternate([_line(box) for box in boxes]):
        text = "\n".join(in_order([_line(box, textpage.get_text_bounded(*box)) for box in boxes]))
    text = _BROKEN_WORD.sub(_joined, text).translate(_MARKS).translate(_LIGATURES)
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(lines).strip()


def _line(box: tuple[float, float, float, float], text: str = "") -> Line:
    """Return a text piece as a line; the y axis of a PDF points upwards."""
    left, bottom, right, top = box
    return Line(left, -top, right, -bottom, text)


def _joined(match: re.Match[str]) -> str:
    """Join a hyphenated word; keep the hyphen of compound words: state-of-the-art."""
    before = match["before"]
    return f"{before}-" if "-" in before else before


def _picture(number: int, image: Image.Image) -> Picture:
    packed = io.BytesIO()
    image.save(packed, "PNG")
    if packed.tell() <= _LARGE_PNG:
        return Picture(number, packed.getvalue(), "image/png")
    packed = io.BytesIO()
    image.save(packed, "JPEG", quality=85)
    return Picture(number, packed.getvalue(), "image/jpeg")

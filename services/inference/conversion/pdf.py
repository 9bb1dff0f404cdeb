"""PDF: the text of its pages, and pictures of them, by pdfium."""

import io
import math
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

import pypdfium2 as pdfium
from PIL import Image
from pypdfium2 import raw

from services.inference.conversion.bounds import MAX_SIDE
from services.inference.conversion.errors import ConversionError
from services.inference.conversion.loading import load
from services.inference.conversion.parts import Ocr, PageText, Picture
from services.inference.conversion.reading_order import Line, columns_alternate, in_order

# A line that ends within a word: pdfium says so, and leaves the hyphen out.
_BROKEN_WORD = re.compile("(?P<before>\\S*)\ufffe")
# Marks of direction that pdfium adds, ligatures and characters that only fonts know.
_MARKS = dict.fromkeys(map(ord, "\u202a\u202b\u202c\u202d\u202e\u0000\u00ad"))
_LIGATURES = {
    0xFB00 + number: letters
    for number, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl", "ft", "st"))
}
# Pixels for each point of a page whose text is recognised: 200 dpi.
_OCR_SCALE = 200 / 72
# A page with fewer characters has next to no text of its own; it is a scan where pictures cover
# so much of it.
_LITTLE_TEXT = 50
_LARGE_PICTURE = 0.3
_DRAWN = (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING)
_MAX_DEPTH = 5
# Pieces of text whose places are looked at; a page with more of them is a drawing.
_MAX_BOXES = 1_000
_NO_CHARACTERS = {"Cc", "Cf", "Cn", "Co", "Cs"}
_MAX_UNKNOWN = 0.3
# A PNG above it is sent as JPEG.
_LARGE_PNG = 1 << 20


def pages_as_text(content: bytes, max_pages: int, when: Ocr) -> tuple[PageText, ...]:
    """Return the text of each page."""
    with _opened(content, max_pages) as document:
        return tuple(
            _page_text(number, page, when)
            for number, page in enumerate(_with_fields(document), start=1)
        )


def pages_as_pictures(content: bytes, max_pages: int) -> tuple[Picture, ...]:
    """Return a picture of each page."""
    with _opened(content, max_pages) as document:
        return tuple(_picture(number, page) for number, page in enumerate(document, start=1))


@contextmanager
def _opened(content: bytes, max_pages: int) -> Iterator[pdfium.PdfDocument]:
    try:
        document = pdfium.PdfDocument(content)
    except pdfium.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise ConversionError(
                "the PDF is encrypted; send one that opens without a password"
            ) from None
        if error.err_code == raw.FPDF_ERR_SECURITY:
            raise ConversionError("the PDF is encrypted in a way that is not supported") from None
        raise ConversionError("the PDF cannot be opened; it is damaged") from None
    try:
        if not len(document):
            raise ConversionError("the PDF has no pages")
        if len(document) > max_pages:
            raise ConversionError(
                f"the document has {len(document)} pages, and at most {max_pages} are converted"
            )
        if document.get_formtype() != raw.FORMTYPE_NONE:
            document.init_forms()
        yield document
    finally:
        document.close()


def _with_fields(document: pdfium.PdfDocument) -> Iterator[pdfium.PdfPage]:
    """Return the pages, with what the fields of a form hold as text of theirs."""
    for place in range(len(document)):
        page = document[place]
        if page.formenv is not None:
            page.flatten()
            page = document[place]
        yield page


def _page_text(number: int, page: pdfium.PdfPage, when: Ocr) -> PageText:
    text = _own_text(page)
    if when is Ocr.NEVER or (when is Ocr.AUTO and not _is_scan(page, text)):
        return PageText(number, text)
    ocr = load("ocr")
    return PageText(number, ocr.read(_rendered(page, _OCR_SCALE, ocr.MAX_SIDE)), recognised=True)


def _is_scan(page: pdfium.PdfPage, text: str) -> bool:
    """Return whether what a page shows is not in its text.

    Scans may have a line of text that a program has added. Where most characters are none, the
    fonts do not say what their glyphs mean.
    """
    letters = [char for char in text if not char.isspace()]
    if len(letters) >= _LITTLE_TEXT:
        unknown = sum(unicodedata.category(char) in _NO_CHARACTERS for char in letters)
        return unknown > _MAX_UNKNOWN * len(letters)
    width, height = page.get_size()
    shown = 0.0
    for found in page.get_objects(max_depth=_MAX_DEPTH):
        if found.type == raw.FPDF_PAGEOBJ_IMAGE:
            left, bottom, right, top = found.get_bounds()
            shown += (right - left) * (top - bottom)
        elif not letters and found.type in _DRAWN:
            return True  # letters drawn as shapes, perhaps
    return bool(shown > _LARGE_PICTURE * width * height)


def _own_text(page: pdfium.PdfPage) -> str:
    """Return the text of a page in the order in which it was drawn, unless that jumps."""
    textpage = page.get_textpage()
    text = textpage.get_text_range()
    boxes = [textpage.get_rect(place) for place in range(min(textpage.count_rects(), _MAX_BOXES))]
    if columns_alternate([_line(box) for box in boxes]):
        text = "\n".join(in_order([_line(box, textpage.get_text_bounded(*box)) for box in boxes]))
    text = _BROKEN_WORD.sub(_joined, text).translate(_MARKS).translate(_LIGATURES)
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(lines).strip()


def _line(box: tuple[float, float, float, float], text: str = "") -> Line:
    """Return a piece of text; y grows upwards in a PDF."""
    left, bottom, right, top = box
    return Line(left, -top, right, -bottom, text)


def _joined(match: re.Match[str]) -> str:
    """Join a broken word, and keep the hyphen of one that has others: state-of-the-art."""
    before = match["before"]
    return f"{before}-" if "-" in before else before


def _picture(number: int, page: pdfium.PdfPage) -> Picture:
    image = _rendered(page, math.inf, MAX_SIDE)
    packed = io.BytesIO()
    image.save(packed, "PNG")
    if packed.tell() <= _LARGE_PNG:
        return Picture(number, packed.getvalue(), "image/png")
    packed = io.BytesIO()
    image.save(packed, "JPEG", quality=85)
    return Picture(number, packed.getvalue(), "image/jpeg")


def _rendered(page: pdfium.PdfPage, scale: float, longest: int) -> Image.Image:
    """Return a picture of a page: `scale` pixels for each point, but `longest` at most a side."""
    width, height = page.get_size()
    fitting = longest / max(float(width), float(height), 1.0)
    image: Image.Image = page.render(scale=min(scale, fitting)).to_pil()
    return image.convert("RGB")

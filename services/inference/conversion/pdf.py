"""PDF: the text of its pages, and pictures of them, by pdfium."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pypdfium2 as pdfium
from pypdfium2 import raw

from services.inference.conversion.bounds import MAX_SIDE
from services.inference.conversion.errors import ConversionError
from services.inference.conversion.parts import Ocr, PageText, Picture

# A line that ends within a word: pdfium says so, and leaves the hyphen out.
_BROKEN_WORD = re.compile("(?P<before>\\S*)\ufffe")
# Marks of direction that pdfium adds, ligatures and characters that only fonts know.
_MARKS = dict.fromkeys(map(ord, "\u202a\u202b\u202c\u202d\u202e\u0000\u00ad"))
_LIGATURES = {
    0xFB00 + number: letters
    for number, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl", "ft", "st"))
}
# A PNG above it is sent as JPEG.
_LARGE_PNG = 1 << 20


def pages_as_text(content: bytes, *, max_pages: int, ocr: Ocr) -> tuple[PageText, ...]:
    """Return the text of each page."""
    with _opened(content, max_pages) as document:
        return tuple(
            PageText(number, _own_text(page)) for number, page in enumerate(document, start=1)
        )


def pages_as_pictures(content: bytes, *, max_pages: int) -> tuple[Picture, ...]:
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


def _own_text(page: pdfium.PdfPage) -> str:
    text = page.get_textpage().get_text_range()
    text = _BROKEN_WORD.sub(_joined, text).translate(_MARKS).translate(_LIGATURES)
    lines = (line.rstrip() for line in text.splitlines())
    return "\n".join(lines).strip()


def _joined(match: re.Match[str]) -> str:
    """Join a broken word, and keep the hyphen of one that has others: state-of-the-art."""
    before = match["before"]
    return f"{before}-" if "-" in before else before


def _picture(number: int, page: pdfium.PdfPage) -> Picture:
    image = page.render(scale=_scale(page, MAX_SIDE)).to_pil()
    packed = io.BytesIO()
    image.save(packed, "PNG")
    if packed.tell() <= _LARGE_PNG:
        return Picture(number, packed.getvalue(), "image/png")
    packed = io.BytesIO()
    image.convert("RGB").save(packed, "JPEG", quality=85)
    return Picture(number, packed.getvalue(), "image/jpeg")


def _scale(page: pdfium.PdfPage, longest: int) -> float:
    """Return pixels for each point that make the long side of a page `longest` pixels."""
    width, height = page.get_size()
    return longest / max(float(width), float(height), 1.0)

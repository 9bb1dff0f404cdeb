"""The text and the pictures of documents, whatever their format."""

from services.inference.conversion import pdf
from services.inference.conversion.parts import Ocr, PageText, Picture, Source


def pages_as_text(source: Source, *, max_pages: int, ocr: str) -> tuple[PageText, ...]:
    """Return the text of a document; see `Converter.pages_as_text`."""
    return pdf.pages_as_text(source.content, max_pages=max_pages, ocr=Ocr(ocr))


def pages_as_pictures(source: Source, *, max_pages: int) -> tuple[Picture, ...]:
    """Return pictures of the pages of a document; see `Converter.pages_as_pictures`."""
    return pdf.pages_as_pictures(source.content, max_pages=max_pages)

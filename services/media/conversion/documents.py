"""Convert documents of any supported format into text or pictures."""

from services.media.conversion import formats, plain_text
from services.media.conversion.errors import ConversionError
from services.media.conversion.formats import DocumentFormat
from services.media.conversion.loading import load
from services.media.conversion.parts import Ocr, PagePicture, PageText, Picture, Source


def pages_as_text(source: Source, *, max_pages: int, ocr: str) -> tuple[PageText, ...]:
    """Return the text of a document; see `Converter.pages_as_text`."""
    content = source.content
    pages: tuple[PageText, ...]
    match formats.detect(content):
        case DocumentFormat.PDF:
            pages = load("pdf").pages_as_text(content, max_pages, Ocr(ocr))
        case DocumentFormat.DOCX:
            pages = (PageText(1, load("docx").as_markdown(content, Ocr(ocr))),)
        case DocumentFormat.PPTX:
            pages = load("slides").as_pages(content, max_pages, Ocr(ocr))
        case DocumentFormat.XLSX:
            pages = load("sheets").as_pages(content, max_pages)
        case DocumentFormat.TEXT:
            pages = (PageText(1, plain_text.decode(content, source.mime_type)),)
    return pages


def pages_as_pictures(source: Source, *, max_pages: int) -> tuple[Picture, ...]:
    """Return pictures of the pages of a document; see `Converter.pages_as_pictures`."""
    content = source.content
    kind = formats.detect(content)
    if kind is DocumentFormat.DOCX:
        content = load("typeset").docx_as_pdf(content)
    elif kind is not DocumentFormat.PDF:
        raise ConversionError(
            f"only pages of PDF and DOCX can be converted to images, not {kind.value}"
        )
    pictures: tuple[Picture, ...] = load("pdf").pages_as_pictures(content, max_pages)
    return pictures


def page_picture(source: Source, *, number: int, longest: int) -> PagePicture:
    """Return a picture of one page of a PDF; see `PooledConverter.page_picture`."""
    if formats.detect(source.content) is not DocumentFormat.PDF:
        raise ConversionError("the file is not a PDF")
    picture: PagePicture = load("pdf").page_picture(source.content, number, longest)
    return picture


def docx_as_pdf(source: Source) -> bytes:
    """Return a DOCX as PDF; see `PooledConverter.docx_as_pdf`."""
    if formats.detect(source.content) is not DocumentFormat.DOCX:
        raise ConversionError("the file is not a DOCX")
    content: bytes = load("typeset").docx_as_pdf(source.content)
    return content

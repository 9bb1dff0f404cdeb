"""The text and the pictures of documents, whatever their format."""

import io

from services.inference.conversion import (
    docx,
    formats,
    images,
    pdf,
    plain_text,
    sheets,
    slides,
    typeset,
)
from services.inference.conversion.errors import ConversionError
from services.inference.conversion.formats import Format
from services.inference.conversion.parts import Ocr, PageText, Picture, Source


def pages_as_text(source: Source, *, max_pages: int, ocr: str) -> tuple[PageText, ...]:
    """Return the text of a document; see `Converter.pages_as_text`."""
    when = Ocr(ocr)
    match formats.detect(source.content):
        case Format.PDF:
            return pdf.pages_as_text(source.content, max_pages=max_pages, when=when)
        case Format.DOCX:
            return (PageText(1, docx.as_markdown(source.content, when)),)
        case Format.PPTX:
            return slides.as_pages(source.content, max_pages, when)
        case Format.XLSX:
            return sheets.as_pages(source.content, max_pages)
        case Format.TEXT:
            return (PageText(1, plain_text.decode(source.content, source.mime_type)),)


def pages_as_pictures(source: Source, *, max_pages: int) -> tuple[Picture, ...]:
    """Return pictures of the pages of a document; see `Converter.pages_as_pictures`."""
    content = source.content
    found = formats.detect(content)
    if found is Format.DOCX:
        content = typeset.as_pdf(docx.as_html(content, _embedded))
    elif found is not Format.PDF:
        raise ConversionError(f"pages of PDF and DOCX are made into pictures, not {found.value}")
    return pdf.pages_as_pictures(content, max_pages=max_pages)


def _embedded(content: bytes, description: str) -> dict[str, str]:
    """Return the attributes of a picture in a document that is typeset."""
    try:
        with images.opened(content) as image:
            picture = images.upright(image)
    except ConversionError:
        return {"alt": f"[image: {description}]" if description else "[image]"}
    packed = io.BytesIO()
    picture.save(packed, "PNG")
    return {
        "src": typeset.data_uri(packed.getvalue(), "image/png"),
        "width": str(picture.width),
        "height": str(picture.height),
    }

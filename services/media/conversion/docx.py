"""Convert DOCX to Markdown and HTML, with tracked changes accepted."""

import io
import zipfile
import zlib
from collections.abc import Callable

import mammoth
import markdownify
from bs4 import Tag

from services.common.text.texts import parse_digits
from services.media.conversion.embedded import PictureReader
from services.media.conversion.errors import ConversionError
from services.media.conversion.parts import Ocr

_MAX_SPAN = 1_000
_PIPE = "\\|"
# Takes a picture's content and alternative text; returns the attributes of its `img`.
Picture = Callable[[bytes, str], dict[str, str]]


def as_markdown(content: bytes, ocr: Ocr) -> str:
    """Return a DOCX as Markdown, with footnotes, and text in place of pictures."""
    reader = PictureReader(ocr)
    html = as_html(content, lambda picture, text: {"alt": reader.read(picture, text)})
    markdown: str = _Markdown(heading_style="ATX", table_infer_header=True).convert(html)
    return markdown.strip()


def as_html(content: bytes, picture: Picture) -> str:
    """Return a DOCX as HTML; external pictures are not loaded.

    Raises:
        ConversionError: it is damaged.
    """

    def convert(image: "mammoth.documents.Image") -> dict[str, str]:
        try:
            with image.open() as stream:
                picture_bytes = stream.read()
        except (KeyError, ValueError, OSError, zipfile.BadZipFile, zlib.error):
            # The picture is external, missing or damaged; the rest can be read.
            picture_bytes = b""
        return picture(picture_bytes, image.alt_text or "")

    try:
        result = mammoth.convert_to_html(
            io.BytesIO(content), convert_image=mammoth.images.img_element(convert)
        )
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise ConversionError("the DOCX is damaged") from error
    html: str = result.value
    return html


class _Markdown(markdownify.MarkdownConverter):
    """Markdown converter in which pictures are already text, and footnotes keep their numbers."""

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return str(el.get("alt") or "")

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        span = parse_digits(str(el.get("colspan") or ""))
        cells = 1 if span is None else min(span, _MAX_SPAN)
        return f" {' '.join(text.split()).replace('|', _PIPE)} |" + " |" * (cells - 1)

    convert_th = convert_td

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        href = str(el.get("href") or "")
        if href.startswith(("#footnote-ref", "#endnote-ref")):
            return ""
        if href.startswith("#"):
            return text
        return f"[{text}]({href})" if href and text else text

"""The formats of documents by their names."""

from collections.abc import Mapping
from typing import NamedTuple


class ExportFormat(NamedTuple):
    """A format to export documents to.

    Attributes:
        extension: of the names of files.
        mime_type: of files.
        writer: pandoc's name; "" if pandoc does not write it.
        is_text: whether it is text.
        embeds_pictures: whether a document contains its pictures.
        shows_web_pictures: whether it can show pictures at web addresses.
        numbers_captions: whether it shows the numbers of figures and tables itself.
    """

    extension: str
    mime_type: str
    writer: str
    is_text: bool = True
    embeds_pictures: bool = True
    shows_web_pictures: bool = False
    numbers_captions: bool = False


_OFFICE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

EXPORT_FORMATS: Mapping[str, ExportFormat] = {
    "markdown": ExportFormat(
        "md", "text/markdown", "", embeds_pictures=False, shows_web_pictures=True
    ),
    "html": ExportFormat("html", "text/html", "html5", shows_web_pictures=True),
    "pdf": ExportFormat(
        "pdf",
        "application/pdf",
        "typst-citations",
        is_text=False,
        embeds_pictures=False,
        numbers_captions=True,
    ),
    "docx": ExportFormat("docx", _OFFICE, "docx", is_text=False),
    "latex": ExportFormat(
        "tex", "application/x-tex", "latex", embeds_pictures=False, numbers_captions=True
    ),
    "typst": ExportFormat(
        "typ", "text/plain", "typst-citations", embeds_pictures=False, numbers_captions=True
    ),
    "epub": ExportFormat("epub", "application/epub+zip", "epub3", is_text=False),
    "jats": ExportFormat("xml", "application/xml", "jats_archiving", shows_web_pictures=True),
    "odt": ExportFormat("odt", "application/vnd.oasis.opendocument.text", "odt", is_text=False),
    "bibtex": ExportFormat("bib", "application/x-bibtex", ""),
    "csl-json": ExportFormat("json", "application/json", ""),
}

# Formats to import documents from, with pandoc's names of all but Markdown.
IMPORT_FORMATS: Mapping[str, str] = {
    "markdown": "",
    "docx": "docx+citations",
    "latex": "latex",
    "html": "html+tex_math_dollars+tex_math_single_backslash",
    "jats": "jats",
}

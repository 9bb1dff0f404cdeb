"""Export of documents: their pictures, the conversion, and the file that holds the result."""

import base64
import binascii
import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import orjson

from gateway.articles.v1 import articles_pb2 as wire
from services.articles.bibliography.entries import Omission
from services.articles.bibliography.formats import FORMATS
from services.articles.cache import DocumentState
from services.articles.conversions import (
    DocumentConverter,
    check_pandoc,
    converted,
    format_name,
    has_pandoc,
    style_of,
)
from services.articles.edit_results import omission_messages
from services.articles.errors import FIELDS, IMAGE, SCHEMA, failure
from services.articles.files import FileAccess
from services.articles.markdown import ElementRenderer, joined
from services.articles.pandoc.formats import EXPORT_FORMATS, ExportFormat
from services.articles.pandoc.formatted import Formatted, with_formatted_citations
from services.articles.pandoc.from_document import Tree, TreeOptions, tree_of
from services.articles.pandoc.html import write_html
from services.articles.pandoc.latex import LatexCitations
from services.articles.pandoc.markdown import plain_references
from services.articles.reference_styles import apply_style, styled_entries
from services.articles.tree.document import Document
from services.articles.tree.nodes import Element
from services.common.articles import limits
from services.common.errors import GatewayError
from services.common.process.offload import offload_if
from services.media.conversion.pandoc import shows_years

# Bytes of a text in an answer, of a picture and of all pictures, and their number.
MAX_TEXT = 8 << 20
_MAX_PICTURE = 16 << 20
_MAX_PICTURES_BYTES = 48 << 20
_MAX_PICTURES = 500
# Size of a document from which on its tree is made in a thread.
_LARGE = 8 << 10
_EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/svg+xml": "svg",
    "image/webp": "webp",
}
_NOT_IN_NAMES = re.compile(r"[^\w]+")
_ZIP = "application/zip"


class PictureFile(NamedTuple):
    """A picture of a document, with the path that a text without it gives."""

    path: str
    mime_type: str
    content: bytes


class Exported(NamedTuple):
    """A document in a format."""

    content: bytes
    omitted: tuple[Omission, ...] = ()


class DocumentExporter:
    """Exports documents.

    Args:
        files: access to the file store.
        converter: converts in worker processes.
    """

    def __init__(self, files: FileAccess, converter: DocumentConverter) -> None:
        self._files = files
        self._converter = converter

    async def export(
        self, state: DocumentState, request: wire.ExportArticleRequest
    ) -> wire.ExportArticleResponse:
        """Return a document in a format.

        Raises:
            GatewayError: see ArticleEditorService.ExportArticle.
        """
        name = format_name(request.format)
        chosen = EXPORT_FORMATS.get(name)
        if chosen is None:
            raise failure(FIELDS, "/format", "is required")
        if not (request.as_file or chosen.is_text):
            raise failure(SCHEMA, "/as", f"must be file, as {name} is no text")
        exported, figures = await self._exported(name, chosen, state, request)
        filename = f"{_file_name(state.document)}.{chosen.extension}"
        mime_type, content = chosen.mime_type, exported.content
        if request.as_file and not chosen.embeds_pictures and figures:
            content = await offload_if(True, _packed, filename, content, figures)
            filename, mime_type = f"{_file_name(state.document)}.zip", _ZIP
        response = wire.ExportArticleResponse(
            filename=filename,
            mime_type=mime_type,
            size_bytes=len(content),
            omitted=omission_messages(exported.omitted[: limits.OMISSIONS]),
            revision=state.revision,
        )
        if request.as_file:
            response.file_id = await self._files.create(filename, mime_type, content)
        elif len(content) > MAX_TEXT:
            raise failure(SCHEMA, "/as", f"must be file, as the text has {len(content)} bytes")
        else:
            response.text = content.decode()
        return response

    async def _exported(
        self,
        name: str,
        chosen: ExportFormat,
        state: DocumentState,
        request: wire.ExportArticleRequest,
    ) -> tuple[Exported, list[PictureFile]]:
        document, is_large = state.document, state.size >= _LARGE
        if name in FORMATS:
            references: list[Any] = list(document.references.values())
            written = await offload_if(is_large, FORMATS[name].write, references)
            return Exported(written.text.encode(), tuple(written.omitted)), []
        style = style_of(document, request.style)
        if name == "markdown":
            formatted = None
            if style:
                formatted = (await apply_style(document, style, self._converter)).formatted
            return Exported(await offload_if(is_large, _markdown, document, formatted)), []
        if name not in ("html", "pdf"):
            check_pandoc("/format", f"the format {name}")
        figures = await self._figures(document)
        # Without pandoc, a PDF is made of a page.
        is_embedded = chosen.embeds_pictures or not has_pandoc()
        if name == "pdf":
            figures = {key: one._replace(path=f"{one.path}.svg") for key, one in figures.items()}
        addresses = {
            key: _data_url(figure) if is_embedded else figure.path
            for key, figure in figures.items()
        }
        options = TreeOptions(
            addresses,
            chosen.shows_web_pictures,
            bool(style),
            numbers_captions=not (chosen.numbers_captions and has_pandoc()),
            has_keywords=not chosen.writer.startswith("typst"),
            marks_texts=name in ("docx", "odt"),
            describes_authors=name == "jats",
            is_latex=name == "latex",
        )
        if name == "latex" and document.numbers():
            # LaTeX makes the citations; the style is applied to the references before.
            options, style = await self._with_latex(document, options, style), ""
        tree = await offload_if(is_large, tree_of, document, options)
        shown = list(figures.values())
        exported = await self._written(name, chosen, tree, style, shown)
        return exported, [] if name == "pdf" else shown

    async def _with_latex(
        self, document: Document, options: TreeOptions, style: str
    ) -> TreeOptions:
        has_years = bool(style) and await offload_if(True, shows_years, style)
        latex = LatexCitations.of(document.references.values(), has_years=has_years)
        entries = await styled_entries(document, style, self._converter) if style else {}
        return options._replace(latex=latex, entries=entries)

    async def _written(
        self, name: str, chosen: ExportFormat, tree: Tree, style: str, figures: list[PictureFile]
    ) -> Exported:
        omitted = tuple(tree.omitted)
        if not has_pandoc():
            page = (await offload_if(True, write_html, tree.root)).encode()
            omitted += _formulas_omitted(page)
            if name == "html":
                return Exported(page, omitted)
            return await self._typeset(page, omitted, is_typst=False)
        pandoc = partial(self._converter.pandoc, reader="json", writer=chosen.writer, style=style)
        content = await offload_if(True, orjson.dumps, tree.root)
        conversion = pandoc(content, is_standalone=True, numbers_sections=tree.numbers_sections)
        output = await converted(conversion, "/format")
        omitted += _omissions(output.warnings)
        if name == "pdf":
            packed = await offload_if(True, _packed, "main.typ", output.content, figures)
            return await self._typeset(packed, omitted, is_typst=True)
        return Exported(output.content, omitted)

    async def _typeset(
        self, content: bytes, omitted: tuple[Omission, ...], *, is_typst: bool
    ) -> Exported:
        output = await converted(self._converter.typeset(content, is_typst=is_typst), "/format")
        return Exported(output.content, omitted + _omissions(output.warnings))

    async def _figures(self, document: Document) -> dict[str, PictureFile]:
        """Return the pictures of a document that are stored here, by file id or `data:` URL."""
        figures: dict[str, PictureFile] = {}
        left = _MAX_PICTURES_BYTES
        for key in _stored(document):
            loaded = _inline(key) if key.lower().startswith("data:") else await self._load(key)
            if loaded is None or len(figures) == _MAX_PICTURES:
                continue
            mime_type, content = loaded
            if mime_type not in _EXTENSIONS or len(content) > min(left, _MAX_PICTURE):
                continue
            left -= len(content)
            path = f"figures/figure-{len(figures) + 1}.{_EXTENSIONS[mime_type]}"
            figures[key] = PictureFile(path, mime_type, content)
        return figures

    async def _load(self, file_id: str) -> tuple[str, bytes] | None:
        """Return the type and the bytes of a file, None if it is too large or not there."""
        mime_type = ""
        chunks = []
        try:
            async for part in self._files.read(file_id):
                if part.HasField("chunk"):
                    chunks.append(part.chunk)
                    continue
                mime_type = part.opening.file.mime_type
                if part.opening.file.size_bytes > _MAX_PICTURE:
                    return None
        except GatewayError as error:
            if error.article_code == IMAGE:
                return None
            raise
        return mime_type, b"".join(chunks)


def _stored(document: Document) -> Iterator[str]:
    """Yield ids of files and `data:` URLs of pictures, each once."""
    keys: dict[str, None] = {}
    for block in document.blocks:
        if block.type == "image":
            pictures: Any = block.content["image"]
            for picture in pictures or ():
                key = picture.get("fileId") or picture["url"]
                if "fileId" in picture or key[:5].lower() == "data:":
                    keys[key] = None
    yield from keys


def _inline(url: str) -> tuple[str, bytes] | None:
    described, _, content = url[len("data:") :].partition(",")
    mime_type, *parameters = described.split(";")
    data = unquote_to_bytes(content)
    if "base64" in parameters:
        try:
            data = base64.b64decode(data)
        except binascii.Error:
            return None
    return mime_type.lower(), data


def _data_url(figure: PictureFile) -> str:
    return f"data:{figure.mime_type};base64,{base64.b64encode(figure.content).decode()}"


def _packed(filename: str, content: bytes, figures: list[PictureFile]) -> bytes:
    """Return an archive of a text and the pictures that it names."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(filename, content)
        for figure in figures:
            archive.writestr(figure.path, figure.content)
    return packed.getvalue()


def _markdown(document: Document, formatted: Formatted | None) -> bytes:
    blocks: Iterable[Element] = document.blocks
    references = plain_references(document) if formatted is None else []
    if formatted is not None:
        blocks = with_formatted_citations(document, formatted)
        references = [text for _, text in formatted.bibliography]
    parts = [joined(ElementRenderer(document).blocks(blocks))]
    if references:
        parts += ["# References", *references]
    return ("\n\n".join(filter(None, parts)) + "\n").encode()


def _omissions(warnings: tuple[str, ...]) -> tuple[Omission, ...]:
    return tuple(Omission("conversion", warning) for warning in warnings)


def _formulas_omitted(page: bytes) -> tuple[Omission, ...]:
    if b'class="math"' not in page:
        return ()
    problem = "formulas are LaTeX here; the operator can install pandoc, which converts them"
    return (Omission("formulas", problem),)


def _file_name(document: Document) -> str:
    for block in document.blocks:
        if block.type in ("title", "h1"):
            text = "".join(leaf.text for leaf in block.leaves)
            return _NOT_IN_NAMES.sub("-", text).strip("-")[:60] or "document"
    return "document"

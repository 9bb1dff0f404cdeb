"""Import of documents in other formats: the conversion, and files for their pictures."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import orjson

from gateway.articles.v1 import articles_pb2 as wire
from services.articles.archives import BEGIN, SUFFIXES, PaperArchive
from services.articles.bibliography import bibtex, csl
from services.articles.bibliography.entries import Omission, SyntaxProblem
from services.articles.codec import to_gateway_error
from services.articles.conversions import (
    DocumentConverter,
    check_pandoc,
    converted,
    format_name,
)
from services.articles.errors import FIELDS, SCHEMA, failure
from services.articles.files import FileAccess
from services.articles.pandoc.formats import IMPORT_FORMATS
from services.articles.pandoc.jats_authors import authors_of
from services.articles.pandoc.latex_source import readable
from services.articles.pandoc.searches import picture_addresses
from services.articles.pandoc.syntax import Node
from services.articles.pandoc.to_blocks import blocks_of
from services.articles.tree.edits import references_of
from services.articles.tree.errors import EditError
from services.articles.tree.nodes import Json
from services.articles.tree.operations import ImportDocument, ImportReferences, WriteMarkdown
from services.articles.tree.parsing import NewId
from services.articles.tree.picture_files import PictureFiles
from services.articles.tree.values import schema_error, string
from services.articles.tree.written_markdown import parse_blocks
from services.common.articles import limits
from services.common.process.offload import offload_if
from services.media.conversion.parts import EmbeddedFile, Source

# Bytes of a file, and of the tree that pandoc makes of it.
MAX_FILE = 16 << 20
_MAX_TREE = 8 << 20
# Characters from which on a text is parsed in a thread.
_LARGE = 2 << 10
# What stands between the preamble and the document in LaTeX, and the line in a warning.
_BEGIN = b"\\begin{document}"
# Addresses in Markdown, of pictures and others.
_ADDRESS = re.compile(r"\]\(<?([^()\s<>]{1,1000})")
_LINE = re.compile(r" at line (\d{1,9}) ", re.ASCII)
# Warnings about sizes, spaces, properties of files, and lists of references, which are read.
_OF_NO_CONTENT = re.compile(
    r"Skipped '\\(?:setlength\{\\(?:itemsep|parskip|parsep|topsep|tabcolsep)\}\{[^{}']{0,40}\}'"
    r"|(?:tiny|scriptsize|footnotesize|small|normalsize|large|Large|[;,:!]|quad|qquad|protect|maketitle"
    r"|linewidth|textwidth|columnwidth) ?'"
    r"|(?:begin|end)\{thebibliography\}'|bibliographystyle\{|hypersetup\{)"
)
_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "svg": "image/svg+xml",
    "webp": "image/webp",
}


class _Import(NamedTuple):
    """A document to import.

    Attributes:
        content: its bytes.
        pointer: the field of the request that has it.
        archive: the archive in which it is, if it is in one.
    """

    content: bytes
    pointer: str
    archive: PaperArchive | None = None

    def omissions(self, omitted: Iterable[Omission]) -> Iterator[Omission]:
        """Yield what is missing, but for the name of a bibliography that is in the archive."""
        if self.archive is None:
            yield from omitted
            return
        yield from self.archive.omitted
        for one in omitted:
            names_bibliography = "bibliography" in (one.place, one.reason.partition(",")[0])
            if not (names_bibliography and self.archive.bibliography):
                yield one


class _Converted(NamedTuple):
    """A document with the tree that pandoc made of it."""

    format: str
    source: _Import
    root: Node
    warnings: Sequence[str]

    def omissions(self) -> Iterator[Omission]:
        """Yield what pandoc left out after the preamble of LaTeX."""
        text = self.source.content
        begin = text[: text.find(_BEGIN) + 1].count(b"\n") + 1
        for warning in self.warnings:
            line = _LINE.search(warning)
            is_of_preamble = line is not None and int(line[1]) < begin
            if not is_of_preamble and not _OF_NO_CONTENT.match(warning):
                yield Omission("conversion", warning)


class DocumentImporter:
    """Reads documents in other formats.

    Args:
        files: access to the file store.
        converter: converts in worker processes.
        new_id: generator of ids of elements.
    """

    def __init__(self, files: FileAccess, converter: DocumentConverter, new_id: NewId) -> None:
        self._files = files
        self._converter = converter
        self._new_id = new_id

    async def read(self, request: wire.ImportArticleRequest) -> ImportDocument:
        """Return the edit that inserts a document; its pictures are stored before.

        Raises:
            GatewayError: see ArticleEditorService.ImportArticle.
        """
        name = format_name(request.format)
        reader = IMPORT_FORMATS.get(name)
        if reader is None:
            raise failure(FIELDS, "/format", f"must be one of {', '.join(IMPORT_FORMATS)}")
        if reader:
            check_pandoc("/format", f"the format {name}")
        source = await self._source(name, request)
        position = request.position if request.HasField("position") else None
        files = _picture_files(request)
        try:
            if source.content.startswith(BEGIN) and name in SUFFIXES:
                archive = await offload_if(True, PaperArchive, source.content, name)
                source = _Import(archive.text, source.pointer, archive)
            if reader:
                return await self._converted(name, reader, source, files, position)
            text = string(_decoded(source), source.pointer, limits.MARKDOWN_TEXT)
            if source.archive is not None:
                addresses = dict.fromkeys(_ADDRESS.findall(text))
                await self._store(addresses, source.archive.picture, files)
            is_large = len(text) >= _LARGE
            return await offload_if(is_large, self._markdown, text, source, files, position)
        except EditError as error:
            raise to_gateway_error(EditError(error.code, source.pointer, error.problem)) from None

    async def _source(self, name: str, request: wire.ImportArticleRequest) -> _Import:
        match request.WhichOneof("source"):
            case "text" if name == "docx":
                raise failure(FIELDS, "/fileId", "is required for docx, which is no text")
            case "text":
                return _Import(request.text.encode(), "/text")
            case "file_id":
                content = await self._files.load(request.file_id, MAX_FILE, "/fileId")
                return _Import(content, "/fileId")
        raise failure(FIELDS, "", "exactly one of text and fileId is required")

    def _markdown(
        self, text: str, source: _Import, files: PictureFiles, position: int | None
    ) -> ImportDocument:
        written = parse_blocks(text, files, self._new_id)
        omitted = tuple(source.omissions(written.omitted))
        blocks = WriteMarkdown(
            position, written.blocks, omitted, written.properties, files.pointers()
        )
        return ImportDocument(self._references(source, ()), blocks, source.pointer)

    def _references(self, source: _Import, items: Sequence[Json]) -> ImportReferences:
        """Return the references of an archive, and those of a document as items of CSL-JSON."""
        read = csl.parse_items(list(items))
        if source.archive is not None and source.archive.bibliography:
            text = string(source.archive.bibliography, source.pointer, limits.BIBLIOGRAPHY)
            try:
                entries = bibtex.parse(text)
            except SyntaxProblem as problem:
                raise schema_error(source.pointer, str(problem)) from None
            read.references.extend(entries.references)
            read.omitted.extend(entries.omitted)
        return ImportReferences(*references_of(read, self._new_id))

    async def _converted(
        self,
        name: str,
        reader: str,
        source: _Import,
        files: PictureFiles,
        position: int | None,
    ) -> ImportDocument:
        content = source.content if name == "docx" else _readable(name, _decoded(source))
        conversion = self._converter.pandoc(content, reader=reader, writer="json")
        output = await converted(conversion, source.pointer)
        if len(output.content) > _MAX_TREE:
            problem = f"the document has more than {_MAX_TREE >> 20} MiB of text and structure"
            raise failure(SCHEMA, source.pointer, problem)
        root: Node = await offload_if(True, orjson.loads, output.content)
        if name == "docx":
            reading = self._converter.embedded_files(Source(source.content, ""))
            embedded = {file.name: file for file in await converted(reading, source.pointer)}
            await self._store(picture_addresses(root), embedded.get, files)
        elif source.archive is not None:
            await self._store(picture_addresses(root), source.archive.picture, files)
        document = _Converted(name, source, root, output.warnings)
        return await offload_if(True, self._read, document, files, position)

    def _read(
        self, document: _Converted, files: PictureFiles, position: int | None
    ) -> ImportDocument:
        source = document.source
        omitted: list[Omission] = []
        authors = authors_of(source.content, omitted) if document.format == "jats" else {}
        read = blocks_of(document.root, files.get, self._new_id, authors)
        omitted += [*read.omitted, *document.omissions(), *files.unused()]
        blocks = WriteMarkdown(
            position,
            read.blocks,
            tuple(source.omissions(omitted)),
            read.properties,
            files.pointers(),
        )
        return ImportDocument(self._references(source, read.items), blocks, source.pointer)

    async def _store(
        self,
        addresses: Iterable[str],
        picture: Callable[[str], EmbeddedFile | None],
        files: PictureFiles,
    ) -> None:
        """Store the pictures with these addresses, unless the caller has named files for them."""
        for address in addresses:
            if files.get(address) is not None:
                continue
            embedded = await offload_if(True, picture, address)
            if embedded is None:
                continue
            path = PurePosixPath(embedded.name)
            mime_type = _TYPES.get(path.suffix.lower().removeprefix("."))
            if mime_type is not None:
                file_id = await self._files.create(path.name, mime_type, embedded.content)
                files.add(address, file_id)


def _picture_files(request: wire.ImportArticleRequest) -> PictureFiles:
    try:
        return PictureFiles(request.files)
    except EditError as error:
        raise to_gateway_error(error) from None


def _readable(name: str, text: str) -> bytes:
    return readable(text) if name == "latex" else text.encode()


def _decoded(source: _Import) -> str:
    try:
        return source.content.decode()
    except UnicodeDecodeError:
        raise failure(SCHEMA, source.pointer, "must be text in UTF-8") from None

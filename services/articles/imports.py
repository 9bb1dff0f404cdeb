"""Import of documents in other formats: the conversion, and files for their pictures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import orjson

from gateway.articles.v1 import articles_pb2 as wire
from services.articles.bibliography import csl
from services.articles.bibliography.entries import Omission
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
from services.articles.tree.operations import ImportDocument, ImportReferences, WriteMarkdown
from services.articles.tree.parsing import NewId
from services.articles.tree.picture_files import PictureFiles
from services.articles.tree.values import string
from services.articles.tree.written_markdown import parse_blocks
from services.common.articles import limits
from services.common.process.offload import offload_if
from services.media.conversion.parts import Source

# Bytes of a file, and of the tree that pandoc makes of it.
MAX_FILE = 16 << 20
_MAX_TREE = 8 << 20
# Characters from which on a text is parsed in a thread.
_LARGE = 2 << 10
# What stands between the preamble and the document in LaTeX, and the line in a warning.
_BEGIN = b"\\begin{document}"
_LINE = re.compile(r" at line (\d{1,9}) ", re.ASCII)
# Warnings about sizes, spaces, properties of files, and lists of references, which are read.
_OF_NO_CONTENT = re.compile(
    r"Skipped '\\(?:setlength\{\\(?:itemsep|parskip|parsep|topsep|tabcolsep)\}\{[^{}']{0,40}\}'"
    r"|(?:tiny|scriptsize|footnotesize|small|normalsize|large|Large|[;,:!]|quad|qquad|protect) ?'"
    r"|(?:begin|end)\{thebibliography\}'|hypersetup\{)"
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
    content: bytes
    pointer: str


class _Converted(NamedTuple):
    """A document with the tree that pandoc made of it."""

    format: str
    source: bytes
    root: Node
    warnings: Sequence[str]

    def omissions(self) -> Iterator[Omission]:
        """Yield what pandoc left out after the preamble of LaTeX."""
        begin = self.source[: self.source.find(_BEGIN) + 1].count(b"\n") + 1
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
            if not reader:
                text = _decoded(source)
                return await offload_if(
                    len(text) >= _LARGE, self._markdown, text, files, position, source.pointer
                )
            return await self._converted(name, reader, source, files, position)
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
        self, text: str, files: PictureFiles, position: int | None, pointer: str
    ) -> ImportDocument:
        written = parse_blocks(string(text, pointer, limits.MARKDOWN_TEXT), files, self._new_id)
        blocks = WriteMarkdown(position, *written, files.pointers())
        return ImportDocument(ImportReferences((), ()), blocks, pointer)

    async def _converted(
        self,
        name: str,
        reader: str,
        source: _Import,
        named: PictureFiles,
        position: int | None,
    ) -> ImportDocument:
        embedded: Mapping[str, bytes] = {}
        if name == "docx":
            reading = self._converter.embedded_files(Source(source.content, ""))
            pictures = await converted(reading, source.pointer)
            embedded = {file.name: file.content for file in pictures}
        content = source.content if name == "docx" else _readable(name, _decoded(source))
        conversion = self._converter.pandoc(content, reader=reader, writer="json")
        output = await converted(conversion, source.pointer)
        if len(output.content) > _MAX_TREE:
            problem = f"the document has more than {_MAX_TREE >> 20} MiB of text and structure"
            raise failure(SCHEMA, source.pointer, problem)
        root: Node = await offload_if(True, orjson.loads, output.content)
        stored = await self._store(root, embedded)
        document = _Converted(name, source.content, root, output.warnings)
        edit = await offload_if(True, self._read, document, stored, named, position)
        return ImportDocument(*edit, source.pointer)

    def _read(
        self,
        document: _Converted,
        stored: Mapping[str, str],
        named: PictureFiles,
        position: int | None,
    ) -> tuple[ImportReferences, WriteMarkdown]:
        def file_of(address: str) -> str | None:
            return stored.get(address) or named.get(address)

        omitted: list[Omission] = []
        authors = authors_of(document.source, omitted) if document.format == "jats" else {}
        read = blocks_of(document.root, file_of, self._new_id, authors)
        omitted += [*read.omitted, *document.omissions(), *named.unused()]
        references, skipped = references_of(csl.parse_items(list(read.items)), self._new_id)
        properties, pointers = read.properties, named.pointers()
        blocks = WriteMarkdown(position, read.blocks, tuple(omitted), properties, pointers)
        return ImportReferences(references, skipped), blocks

    async def _store(self, root: Node, embedded: Mapping[str, bytes]) -> dict[str, str]:
        """Store the pictures that a tree shows; return ids of files by their addresses."""
        files: dict[str, str] = {}
        for address in picture_addresses(root) if embedded else ():
            path = PurePosixPath(address)
            mime_type = _TYPES.get(path.suffix.lower().removeprefix("."))
            if address in embedded and mime_type is not None:
                files[address] = await self._files.create(path.name, mime_type, embedded[address])
        return files


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

"""Import of documents in other formats: the conversion, and files for their pictures."""

import re
from collections.abc import Mapping
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
from services.articles.pandoc.latex_source import readable
from services.articles.pandoc.searches import picture_addresses
from services.articles.pandoc.syntax import Node
from services.articles.pandoc.to_blocks import blocks_of
from services.articles.tree.edits import references_of
from services.articles.tree.errors import EditError
from services.articles.tree.operations import ImportDocument, ImportReferences, WriteMarkdown
from services.articles.tree.parsing import NewId
from services.articles.tree.values import string
from services.articles.tree.written_markdown import parse_blocks
from services.common.articles import limits
from services.common.process.offload import offload_if
from services.media.conversion.parts import PandocOutput, Source

# Bytes of a file, and of the tree that pandoc makes of it.
MAX_FILE = 16 << 20
_MAX_TREE = 8 << 20
# Characters from which on a text is parsed in a thread.
_LARGE = 2 << 10
# What stands between the preamble and the document in LaTeX, and the line in a warning.
_BEGIN = b"\\begin{document}"
_LINE = re.compile(r" at line (\d{1,9}) ", re.ASCII)
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
        try:
            if not reader:
                text = _decoded(source)
                return await offload_if(
                    len(text) >= _LARGE, self._markdown, text, position, source.pointer
                )
            return await self._converted(name, reader, source, position)
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

    def _markdown(self, text: str, position: int | None, pointer: str) -> ImportDocument:
        written = parse_blocks(string(text, pointer, limits.MARKDOWN_TEXT), self._new_id)
        blocks = WriteMarkdown(position, written.blocks, written.omitted, written.properties)
        return ImportDocument(ImportReferences((), ()), blocks, pointer)

    async def _converted(
        self, name: str, reader: str, source: _Import, position: int | None
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
        files = await self._store(root, embedded)
        begin = source.content[: source.content.find(_BEGIN) + 1].count(b"\n") + 1
        edit = await offload_if(True, self._read, root, output, begin, files, position)
        return ImportDocument(*edit, source.pointer)

    def _read(
        self,
        root: Node,
        output: PandocOutput,
        begin: int,
        files: Mapping[str, str],
        position: int | None,
    ) -> tuple[ImportReferences, WriteMarkdown]:
        read = blocks_of(root, files, self._new_id)
        warnings = [
            Omission("conversion", warning)
            for warning in output.warnings
            if not _is_of_preamble(warning, begin)
        ]
        references, skipped = references_of(csl.parse_items(list(read.items)), self._new_id)
        omitted = (*read.omitted, *warnings)
        blocks = WriteMarkdown(position, read.blocks, omitted, read.properties)
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


def _is_of_preamble(warning: str, begin: int) -> bool:
    """Return whether a warning is about a line before the one in which the document begins."""
    line = _LINE.search(warning)
    return line is not None and int(line[1]) < begin


def _readable(name: str, text: str) -> bytes:
    return readable(text) if name == "latex" else text.encode()


def _decoded(source: _Import) -> str:
    try:
        return source.content.decode()
    except UnicodeDecodeError:
        raise failure(SCHEMA, source.pointer, "must be text in UTF-8") from None

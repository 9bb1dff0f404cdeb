"""ZIP archives of papers: a text with what it includes, its references and its pictures."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from services.articles.bibliography.entries import Omission
from services.articles.tree.values import schema_error
from services.media.conversion.parts import EmbeddedFile

# Every ZIP archive begins with it, unless it is empty.
BEGIN = b"PK\x03\x04"
# The ends of the names of texts, by their format.
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "markdown": (".md", ".markdown"),
    "latex": (".tex",),
    "html": (".html", ".htm"),
    "jats": (".xml", ".nxml"),
}
# Ends that names of pictures lack in LaTeX, in the order in which they are tried. Of a picture in a
# PDF, which no document shows, there is often a copy in another format.
_PICTURE_ENDS = (".png", ".jpg", ".jpeg", ".svg", ".gif", ".webp")
_MAX_FILES = 2_000
_MAX_BYTES = 64 << 20
_MAX_TEXT = 16 << 20
_MAX_BIBLIOGRAPHIES = 20
_MAX_DEPTH = 8
_MAX_INCLUSIONS = 500
# A comment, or a file that is included.
_INCLUSION = re.compile(
    r"(?<!\\)%[^\n]*|\\(?:input|include|subfile)"
    r"(?:\s{0,9}\{([^{}\n]{1,300})\}|[ \t]{1,9}([\w./-]{1,300}))"
)
_DOCUMENT = re.compile(r"^[^%\n]{0,200}\\documentclass", re.MULTILINE)
_USUAL_NAMES = ("main", "paper", "article", "manuscript", "ms", "index")
# What the systems of its makers add to archives.
_HIDDEN = re.compile(r"(?:^|/)(?:\.|__MACOSX/)")


class PaperArchive(NamedTuple):
    """The parts of an archive.

    Attributes:
        text: the text, with the files that it includes.
        folder: the folder of the text, in which its addresses begin.
        bibliographies: texts in BibTeX.
        pictures: the other files, by their paths.
        omitted: files that could not be included.
    """

    text: bytes
    folder: PurePosixPath
    bibliographies: tuple[str, ...]
    pictures: Mapping[str, bytes]
    omitted: tuple[Omission, ...]

    def picture(self, address: str) -> EmbeddedFile | None:
        """Return the picture with an address in the text, if there is one."""
        path = PurePosixPath(unquote(address))
        for name in _names_of_picture(self.folder / path):
            if name in self.pictures:
                return EmbeddedFile(name, self.pictures[name])
        # The folders of pictures may be named elsewhere, as by LaTeX's graphicspath.
        for name in _names_of_picture(PurePosixPath(path.name)):
            matches = [one for one in self.pictures if PurePosixPath(one).name == name]
            if len(matches) == 1:
                return EmbeddedFile(name, self.pictures[matches[0]])
        return None


def read_archive(content: bytes, document_format: str) -> PaperArchive:
    """Return the parts of an archive.

    Args:
        content: the archive.
        document_format: the format of its text, one of `SUFFIXES`.

    Raises:
        EditError: it is damaged, encrypted or too large, or has no such text.
    """
    try:
        files = dict(_unpacked(content))
    except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, RuntimeError) as error:
        raise schema_error("", f"the archive cannot be read: {error}") from None
    main = _main(files, document_format)
    omitted: list[Omission] = []
    folder = PurePosixPath(main).parent
    text = files[main]
    if document_format == "latex":
        text = _Inclusions(files, folder, omitted).included(_decoded(text, main)).encode()
    bibliographies = [name for name in files if name.lower().endswith(".bib")]
    texts = [_decoded(files[name], name) for name in bibliographies[:_MAX_BIBLIOGRAPHIES]]
    pictures = {name: data for name, data in files.items() if name.lower().endswith(_PICTURE_ENDS)}
    return PaperArchive(text, folder, tuple(texts), pictures, tuple(omitted))


def _unpacked(content: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [one for one in archive.infolist() if not one.is_dir()]
        if len(members) > _MAX_FILES:
            raise schema_error("", f"the archive must have at most {_MAX_FILES:,} files")
        if sum(one.file_size for one in members) > _MAX_BYTES:
            problem = f"the archive must have at most {_MAX_BYTES >> 20} MiB when it is unpacked"
            raise schema_error("", problem)
        for member in members:
            # No more than its stated size is read of a file.
            if not _HIDDEN.search(member.filename):
                yield member.filename, archive.read(member)


def _main(files: Mapping[str, bytes], document_format: str) -> str:
    """Return the name of the file with the text: near the top, and of a usual name if several."""
    suffixes = SUFFIXES[document_format]
    names = [name for name in files if name.lower().endswith(suffixes)]
    if document_format == "latex":
        begun = [name for name in names if _DOCUMENT.search(files[name].decode(errors="replace"))]
        names = begun or names
    if not names:
        raise schema_error("", f"the archive has no file {' or '.join(suffixes)}")

    def rank(name: str) -> tuple[int, int, str]:
        path = PurePosixPath(name)
        stem = path.stem.lower()
        usual = _USUAL_NAMES.index(stem) if stem in _USUAL_NAMES else len(_USUAL_NAMES)
        return len(path.parts), usual, name

    return min(names, key=rank)


class _Inclusions:
    """Puts the files that a text in LaTeX includes into it."""

    def __init__(
        self, files: Mapping[str, bytes], folder: PurePosixPath, omitted: list[Omission]
    ) -> None:
        self._files = files
        self._folder = folder
        self._omitted = omitted
        self._left = _MAX_INCLUSIONS
        self._bytes = _MAX_TEXT

    def included(self, text: str, depth: int = 0) -> str:
        """Return a text with what it includes."""
        return _INCLUSION.sub(lambda match: self._replaced(match, depth), text)

    def _replaced(self, match: re.Match[str], depth: int) -> str:
        address = match[1] or match[2]
        if address is None:
            return match[0]
        path = str(self._folder / address.strip())
        name = next((one for one in (path, f"{path}.tex") if one in self._files), None)
        if name is None:
            self._omitted.append(Omission(address[:200], "a file that the archive does not have"))
            return ""
        self._left -= 1
        self._bytes -= len(self._files[name])
        if self._left < 0 or self._bytes < 0 or depth == _MAX_DEPTH:
            raise schema_error("", "the text includes too many files, or itself")
        return self.included(_decoded(self._files[name], name), depth + 1)


def _names_of_picture(path: PurePosixPath) -> Iterator[str]:
    name = str(path)
    if path.suffix.lower() in _PICTURE_ENDS:
        yield name
        return
    stem = name[: -len(path.suffix)] if path.suffix.lower() in (".pdf", ".eps") else name
    yield from (f"{stem}{end}" for end in _PICTURE_ENDS)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise schema_error("", f"{name} must be text in UTF-8") from None

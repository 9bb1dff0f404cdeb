"""ZIP archives of papers: a text with what it includes, its references and its pictures."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote

from services.articles.bibliography.entries import Omission
from services.articles.tree.errors import EditError
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
_ENCRYPTED = 1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
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


class PaperArchive:
    """The parts of an archive.

    Args:
        content: the archive.
        document_format: the format of its text, one of `SUFFIXES`.

    Attributes:
        text: the text, with the files that it includes.
        bibliography: the texts in BibTeX.
        omitted: files that could not be included.

    Raises:
        EditError: it is damaged, encrypted or too large, or has no such text.
    """

    def __init__(self, content: bytes, document_format: str) -> None:
        files = _Files(content)
        main = _main(files, document_format)
        self.omitted: list[Omission] = []
        self._folder = PurePosixPath(main).parent
        self.text = files.read(main)
        if document_format == "latex":
            inclusions = _Inclusions(files, self._folder, self.omitted)
            self.text = inclusions.included(_decoded(self.text, main)).encode()
        bibliographies = sorted(name for name in files.names if name.lower().endswith(".bib"))
        texts = [_decoded(files.read(one), one) for one in bibliographies[:_MAX_BIBLIOGRAPHIES]]
        self.bibliography = "\n\n".join(texts)
        self._files = files

    def picture(self, address: str) -> EmbeddedFile | None:
        """Return the picture with an address in the text, if there is one."""
        names = self._files.names
        path = PurePosixPath(unquote(address))
        for name in _names_of_picture(self._folder / path):
            if name in names:
                return EmbeddedFile(name, self._files.read(name))
        # The folders of pictures may be named elsewhere, as by LaTeX's graphicspath.
        for name in _names_of_picture(PurePosixPath(path.name)):
            matches = [one for one in names if PurePosixPath(one).name == name]
            if len(matches) == 1:
                return EmbeddedFile(name, self._files.read(matches[0]))
        return None


class _Files:
    """The files of an archive, which are unpacked when they are read.

    Attributes:
        names: their names, but those of hidden files.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, OSError) as error:
            raise _unreadable(error) from None
        members = [one for one in self._archive.infolist() if not one.is_dir()]
        if len(members) > _MAX_FILES:
            raise schema_error("", f"the archive must have at most {_MAX_FILES:,} files")
        if sum(one.file_size for one in members) > _MAX_BYTES:
            problem = f"the archive must have at most {_MAX_BYTES >> 20} MiB when it is unpacked"
            raise schema_error("", problem)
        if any(one.flag_bits & _ENCRYPTED or one.compress_type not in _METHODS for one in members):
            raise schema_error("", "the archive must be deflated, and not encrypted")
        names = [one.filename for one in members]
        self.names = frozenset([name for name in names if not _HIDDEN.search(name)])

    def read(self, name: str) -> bytes:
        """Return the content of a file, of which no more than its stated size is read."""
        try:
            return self._archive.read(name)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError) as error:
            raise _unreadable(error) from None


def _unreadable(error: Exception) -> EditError:
    return schema_error("", f"the archive cannot be read: {error}")


def _main(files: _Files, document_format: str) -> str:
    """Return the name of the file with the text: near the top, and of a usual name if several."""
    suffixes = SUFFIXES[document_format]
    names = [name for name in files.names if name.lower().endswith(suffixes)]
    if document_format == "latex":
        begun = [
            name for name in names if _DOCUMENT.search(files.read(name).decode(errors="replace"))
        ]
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

    def __init__(self, files: _Files, folder: PurePosixPath, omitted: list[Omission]) -> None:
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
        name = next((one for one in (path, f"{path}.tex") if one in self._files.names), None)
        if name is None:
            self._omitted.append(Omission(address[:200], "a file that the archive does not have"))
            return ""
        content = self._files.read(name)
        self._left -= 1
        self._bytes -= len(content)
        if self._left < 0 or self._bytes < 0 or depth == _MAX_DEPTH:
            raise schema_error("", "the text includes too many files, or itself")
        return self.included(_decoded(content, name), depth + 1)


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

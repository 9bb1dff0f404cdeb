"""Detect the format of a document by its content; the declared type may be wrong."""

import io
import zipfile
import zlib
from collections.abc import Sequence, Set
from enum import Enum

from services.media.conversion.errors import ConversionError
from services.media.conversion.limits import MAX_OTHER_TAGS, MAX_TAGS, MAX_UNPACKED

_READ = "supported documents are PDF, DOCX, PPTX, XLSX and text"
_PDF = b"%PDF-"
_ZIP = b"PK\x03\x04"
_ZIP_END = b"PK\x05\x06"
_ZIP_END_SIZE = 22
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Range in which PDF readers look for the header, and ZIP readers for the end of an archive.
_HEADER_WITHIN = 1024
_END_WITHIN = _ZIP_END_SIZE + 0xFFFF
_MAX_MEMBERS = 20_000
_ENCRYPTED = 0x1
_XML = (".xml", ".rels", ".vml")
# Beginnings of the names of parts that grow with the document.
_CONTENT = (
    *("word/document", "word/footnotes", "word/endnotes", "word/comments"),
    *("ppt/slides/", "ppt/notesSlides/", "xl/worksheets/", "xl/sharedStrings"),
)
_CHUNK = 1 << 20

# Signatures of other formats, which are not supported as documents.
_OTHERS = (
    (b"\x89PNG\r\n\x1a\n", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"RIFF", "an image or a recording"),
    (b"ID3", "a recording"),
    (b"OggS", "a recording"),
    (b"fLaC", "a recording"),
    (b"{\\rtf", "RTF"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
)


class DocumentFormat(Enum):
    """Supported document formats."""

    PDF = "PDF"
    DOCX = "DOCX"
    PPTX = "PPTX"
    XLSX = "XLSX"
    TEXT = "text"


def detect(content: bytes) -> DocumentFormat:
    """Return the format of a document; archives are checked to be safe to unpack.

    Raises:
        ConversionError: the format is unsupported or ambiguous.
    """
    if content.startswith(_PDF):
        if _ends_as_archive(content):
            raise ConversionError("the file is both a PDF and a ZIP archive; send only one of them")
        return DocumentFormat.PDF
    header = content.find(_PDF, 0, _HEADER_WITHIN)
    if content.startswith(_ZIP):
        if header > 0:
            raise ConversionError("the file is both a ZIP archive and a PDF; send only one of them")
        return _in_archive(content)
    if content.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in content:
            raise ConversionError("the document is encrypted; send it without a password")
        raise ConversionError(f"the file is in an Office format before 2007; {_READ}")
    for beginning, name in _OTHERS:
        if content.startswith(beginning):
            raise ConversionError(f"the file is {name}, not a document; {_READ}")
    if header > 0 and not content[:header].strip(b"\xef\xbb\xbf \t\r\n\0"):
        return DocumentFormat.PDF  # some programs write white space first
    if header > 0 and b"\nstartxref" in content.replace(b"\r", b"\n"):
        raise ConversionError("the file has other data before the PDF; send only the PDF")
    return DocumentFormat.TEXT


def _ends_as_archive(content: bytes) -> bool:
    """Return whether a ZIP reader, which looks at the end, would accept the content."""
    end = content.rfind(_ZIP_END, max(0, len(content) - _END_WITHIN))
    if end < 0 or end + _ZIP_END_SIZE > len(content):
        return False
    comment = int.from_bytes(content[end + 20 : end + 22], "little")
    return end + _ZIP_END_SIZE + comment == len(content)


def _in_archive(content: bytes) -> DocumentFormat:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_members(members)
            kind = _kind_of({member.filename for member in members})
            _check_tags(archive, members, kind)
    # NotImplementedError: the archive uses a later version of the format.
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError):
        raise ConversionError("the document is damaged: its archive cannot be opened") from None
    return kind


def _check_members(members: Sequence[zipfile.ZipInfo]) -> None:
    if len(members) > _MAX_MEMBERS or sum(member.file_size for member in members) > MAX_UNPACKED:
        raise ConversionError(
            f"the document unpacks to more than {MAX_UNPACKED >> 20} MiB or {_MAX_MEMBERS} files"
        )
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise ConversionError("the document is encrypted; send it without a password")


def _kind_of(names: Set[str]) -> DocumentFormat:
    for name, kind in (
        ("word/document.xml", DocumentFormat.DOCX),
        ("ppt/presentation.xml", DocumentFormat.PPTX),
        ("xl/workbook.xml", DocumentFormat.XLSX),
    ):
        if name in names:
            return kind
    raise ConversionError(f"the file is a ZIP archive, not a document; {_READ}")


def _check_tags(
    archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo], kind: DocumentFormat
) -> None:
    """Check that the XML of a document can be read within seconds."""
    tags_left = {True: MAX_TAGS[kind.value], False: MAX_OTHER_TAGS}
    for member in members:
        if not member.filename.lower().endswith(_XML):
            continue
        is_content = member.filename.startswith(_CONTENT)
        with archive.open(member) as part:
            while chunk := part.read(_CHUNK):
                tags_left[is_content] -= chunk.count(b"<")
                if tags_left[is_content] < 0:
                    max_tags = MAX_TAGS[kind.value] if is_content else MAX_OTHER_TAGS
                    raise ConversionError(
                        f"the document is too large: {member.filename[:100]} and the like have "
                        f"more than {max_tags:,} XML tags; send a part of it"
                    )

"""MIME types of files: by content first, then by the caller's claim, then by name.

A signature is decisive if it is long enough not to occur by chance. If a signature belongs to a
family of types (every Office document is a ZIP archive), the caller's claim and then the name
select a type of the family, never one outside of it. Text has no signature: content is text if it
contains no bytes that text cannot contain.
"""

import mimetypes
import re
from collections.abc import Iterable

# Bytes at the beginning of a file that are examined.
HEAD_SIZE = 8192

UNKNOWN = "application/octet-stream"
_ZIP = "application/zip"
_OLE = "application/x-ole-storage"
PDF = "application/pdf"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"

_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}", re.ASCII)
# Bytes that text does not contain: control characters except white space and escape.
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")

# Signatures at the beginning of files that could be taken for text, or that the library names
# differently.
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", PDF),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS", "application/postscript"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"BM", "image/bmp"),
)
_ZIP_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
_OLE_BEGINNING = bytes.fromhex("d0cf11e0a1b11ae1")
# Names of the first entries of an archive, and the type that they indicate.
_ZIP_ENTRIES: tuple[tuple[bytes, str], ...] = (
    (b"word/", WORD),
    (b"xl/", SHEET),
    (b"ppt/", SLIDES),
)
# An archive whose first entry is an uncompressed file `mimetype` declares its type there.
_STORED_TYPE = re.compile(rb"PK\x03\x04.{26}mimetype([a-z]+/[a-z0-9.+-]+)", re.DOTALL)
_ZIP_FAMILY = re.compile(
    r"application/(zip|epub\+zip|java-archive|vnd\.(openxmlformats|oasis|ms-|android|google-earth).*)"
)
_OLE_FAMILY = re.compile(r"application/(msword|vnd\.ms-.*|vnd\.visio|x-msi)")
_TEXT_FAMILY = re.compile(
    r"text/.+|.+\+(json|xml|yaml)|"
    r"application/(json|jsonl|x-ndjson|ndjson|jsonlines|x-jsonlines|xml|yaml|x-yaml|toml|sql|"
    r"javascript|x-javascript|typescript|x-sh|x-python|x-httpd-php|graphql|x-tex|x-latex)"
)
# Shorter signatures occur in too many other files.
_SIGNATURE_LENGTH = 4

# Without the machine's files of types, which would make results depend on the machine.
_BY_NAME = mimetypes.MimeTypes(filenames=())
_NAMES_ADDED = {
    ".md": "text/markdown",
    ".jsonl": "application/jsonl",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".webp": "image/webp",
    ".docx": WORD,
    ".xlsx": SHEET,
    ".pptx": SLIDES,
    ".m4a": "audio/mp4",
    ".ts": "text/plain",
}
# Types of the library for which the registry of MIME types has better names.
_BETTER = {
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "image/x-ms-bmp": "image/bmp",
    "application/x-gzip": "application/gzip",
    "video/avi": "video/x-msvideo",
}


def detect_type(head: bytes, claimed: str, filename: str) -> str:
    """Return the MIME type of a file, without parameters.

    Args:
        head: beginning of the file, up to `HEAD_SIZE` bytes.
        claimed: the type that the caller claims, or "".
        filename: name of the file.
    """
    hints = [hint for hint in (_claim(claimed), _by_name(filename)) if hint]
    if not head:
        return _first(hints, UNKNOWN)
    if head.startswith(_ZIP_BEGINNINGS):
        return _in_archive(head) or _first(filter(_ZIP_FAMILY.fullmatch, hints), _ZIP)
    if head.startswith(_OLE_BEGINNING):
        return _first(filter(_OLE_FAMILY.fullmatch, hints), _OLE)
    for beginning, kind in _BEGINNINGS:
        if head.startswith(beginning) and not (len(beginning) < 3 and _is_text(head)):
            return kind
    if _is_text(head):
        return _markup(head) or _first(filter(_TEXT_FAMILY.fullmatch, hints), "text/plain")
    return _by_signature(head, hints) or _first(
        (hint for hint in hints if not _TEXT_FAMILY.fullmatch(hint)), UNKNOWN
    )


def image_type(head: bytes, claimed: str) -> str:
    """Return the MIME type of an image by its first 12 bytes; `claimed` if they are unknown."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return claimed


def is_text_type(kind: str) -> bool:
    """Return whether files of a MIME type are text, including HTML and code."""
    return _TEXT_FAMILY.fullmatch(kind) is not None


def _first(types: Iterable[str], otherwise: str) -> str:
    return next(iter(types), otherwise)


def _claim(claimed: str) -> str:
    kind = claimed.partition(";")[0].strip().lower()
    return kind if kind != UNKNOWN and _TYPE.fullmatch(kind) else ""


def _by_name(filename: str) -> str:
    extension = filename[filename.rfind(".") :].lower() if "." in filename else ""
    return _NAMES_ADDED.get(extension) or _BY_NAME.guess_type(f"name{extension}")[0] or ""


def _in_archive(head: bytes) -> str | None:
    stored = _STORED_TYPE.match(head)
    if stored:
        return stored[1].decode()
    if b"[Content_Types].xml" in head:
        for entry, kind in _ZIP_ENTRIES:
            if entry in head:
                return kind
    return None


def _is_text(head: bytes) -> bool:
    return head.startswith(_WIDE_BOMS) or _NOT_TEXT.search(head) is None


def _markup(head: bytes) -> str | None:
    begins = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1024].lower()
    if begins.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    if begins.startswith(b"<svg") or (begins.startswith(b"<?xml") and b"<svg" in begins):
        return "image/svg+xml"
    return None


def _by_signature(head: bytes, hints: Iterable[str]) -> str | None:
    """Return the type with the longest matching signature; hints decide between equal lengths."""
    # Imported on demand: a megabyte of signatures, for files that are not text or of a family.
    import puremagic

    try:
        matches = puremagic.magic_string(head)
    except puremagic.PureError:
        return None
    matching = [
        (len(match.byte_match or b""), _BETTER.get(match.mime_type, match.mime_type))
        for match in matches
        if match.mime_type and len(match.byte_match or b"") >= _SIGNATURE_LENGTH
    ]
    longest = max((length for length, _ in matching), default=0)
    best = [kind for length, kind in matching if length == longest]
    return next((hint for hint in hints if hint in best), best[0] if best else None)

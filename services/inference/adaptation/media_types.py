"""Detect the type of a medium by its MIME type, file name and first bytes. Pure."""

from pathlib import PurePosixPath

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import MediaKind

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

_UNSPECIFIC = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_KINDS: dict[str, MediaKind.ValueType] = {
    "image": conversation_pb2.MEDIA_KIND_IMAGE,
    "audio": conversation_pb2.MEDIA_KIND_AUDIO,
    "video": conversation_pb2.MEDIA_KIND_VIDEO,
}
# MIME types of text outside of `text/`.
_TEXTS = frozenset(
    f"application/{name}"
    for name in (
        *("json", "jsonl", "x-ndjson", "xml", "yaml", "x-yaml", "toml", "sql", "graphql"),
        *("javascript", "x-javascript", "ecmascript", "typescript", "x-typescript"),
        *("x-sh", "x-shellscript", "x-python", "x-perl", "x-ruby", "x-php", "x-httpd-php"),
        *("x-tex", "x-latex", "x-subrip"),
    )
)
# Extensions of plain text files that often come without a MIME type.
_TEXT_SUFFIXES = frozenset(
    {
        *(".txt", ".md", ".rst", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml"),
        *(".toml", ".ini", ".cfg", ".conf", ".log", ".sql", ".tex", ".html", ".htm", ".css"),
        *(".py", ".js", ".mjs", ".ts", ".tsx", ".jsx", ".java", ".kt", ".go", ".rs", ".c"),
        *(".h", ".cc", ".cpp", ".hpp", ".cs", ".rb", ".php", ".pl", ".sh", ".swift", ".scala"),
        *(".lua", ".r", ".jl", ".hs", ".ex", ".erl", ".proto", ".graphql", ".vue", ".srt"),
    }
)
# File signatures.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", PDF),
)


def essence(mime_type: str) -> str:
    """Return a MIME type in lower case, without parameters."""
    return mime_type.partition(";")[0].strip().lower()


def sniffed(mime_type: str, content: bytes) -> str:
    """Return the MIME type of a medium: by its file signature, else as declared."""
    for signature, detected in _SIGNATURES:
        if content.startswith(signature):
            return detected
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return essence(mime_type)


def kind_of(mime_type: str, otherwise: MediaKind.ValueType) -> MediaKind.ValueType:
    """Return the kind of media of a MIME type; `otherwise` if the type is inconclusive."""
    if mime_type in _UNSPECIFIC:
        return otherwise
    return _KINDS.get(mime_type.partition("/")[0], conversation_pb2.MEDIA_KIND_DOCUMENT)


def is_text(mime_type: str, name: str) -> bool:
    """Return whether a file is text, by its MIME type or else by its name."""
    mime_type = essence(mime_type)
    if mime_type in _UNSPECIFIC:
        return PurePosixPath(name).suffix.lower() in _TEXT_SUFFIXES
    return (
        mime_type.startswith("text/")
        or mime_type in _TEXTS
        or mime_type.endswith(("+json", "+xml", "+yaml"))
    )


def utf8(content: bytes) -> str | None:
    """Decode UTF-8, or UTF-16 with a byte order mark; return None for other content."""
    try:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            return content.decode("utf-16")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None

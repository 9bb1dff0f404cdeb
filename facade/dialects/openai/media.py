"""Parse media in content parts: base64, data URLs, URLs and file ids."""

import base64
import binascii
import re
from pathlib import PurePosixPath

from facade.dialects.openai.types import File, ImageUrl, InputAudio
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Media, MediaKind
from services.common.errors import invalid

FILE_ID_PREFIX = "file-"

_DATA_URL = re.compile(
    r"data:(?P<mime>[\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,", re.IGNORECASE | re.ASCII
)
_ADDRESS = re.compile(r"https?://[^\s/]", re.IGNORECASE)

_KINDS: dict[str, MediaKind.ValueType] = {
    "image": conversation.MEDIA_KIND_IMAGE,
    "audio": conversation.MEDIA_KIND_AUDIO,
    "video": conversation.MEDIA_KIND_VIDEO,
}
_AUDIO_MIME_TYPES = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "m4a": "audio/mp4",
    "webm": "audio/webm",
}
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
# MIME types by file name extension, for files in plain base64. Others are detected by their first
# bytes.
_FILE_MIME_TYPES = {
    ".pdf": "application/pdf",
    ".docx": _DOCX,
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


def read_image(image: ImageUrl, path: str) -> Media:
    """Return the image of an `image_url` part; `path` is the path of its object.

    Raises:
        GatewayError: invalid, if it is neither a URL, an image in a data URL nor a file id.
    """
    return image_at(image["url"], image.get("detail"), f"{path}.url")


def image_at(url: str, detail: str | None, path: str) -> Media:
    """Return the image of a URL, data URL or file id; `path` is the path of that field.

    Raises:
        GatewayError: invalid, as `read_image`.
    """
    media = Media(kind=conversation.MEDIA_KIND_IMAGE, detail=detail or "")
    if is_address(url):
        media.url = url
    elif url.startswith(FILE_ID_PREFIX):
        media.file_id = url
    elif url[:5].lower() == "data:":
        media.mime_type, media.data = _read_data_url(url, path)
        if not media.mime_type.startswith("image/"):
            raise invalid(path, f"{path}: must be an image type, such as image/png")
    else:
        raise invalid(
            path, f"{path}: must be an http(s) URL, a base64 data URL or the id of a file"
        )
    return media


def is_address(url: str) -> bool:
    """Return whether a URL is an http or https address."""
    return _ADDRESS.match(url) is not None


def read_audio(audio: InputAudio, path: str) -> Media:
    """Return the recording of an `input_audio` part; `path` is the path of its object.

    Raises:
        GatewayError: invalid, if `data` is not base64.
    """
    return Media(
        kind=conversation.MEDIA_KIND_AUDIO,
        data=_decode(audio["data"], f"{path}.data"),
        mime_type=_AUDIO_MIME_TYPES[audio["format"]],
    )


def read_file(file: File, path: str) -> Media:
    """Return the medium of a `file` part; `path` is the path of its object.

    The MIME type determines the kind of medium. A stored file counts as a document until the file
    store returns its type.

    Raises:
        GatewayError: invalid, if there is not exactly one of `file_id` and valid `file_data`.
    """
    file_id, content = file.get("file_id"), file.get("file_data")
    name = file.get("filename") or ""
    if content and not file_id:
        return file_in(content, name, f"{path}.file_data")
    if file_id and not content:
        return Media(kind=conversation.MEDIA_KIND_DOCUMENT, file_id=file_id, name=name)
    raise invalid(path, f"{path}: must have either file_id or file_data")


def file_in(content: str, name: str, path: str) -> Media:
    """Return the medium in `file_data`: base64, or a base64 data URL.

    The MIME type determines the kind of medium.

    Raises:
        GatewayError: invalid, naming `path`.
    """
    if content[:5].lower() == "data:":
        mime_type, data = _read_data_url(content, path)
    else:
        mime_type, data = "", _decode(content, path)
    mime_type = mime_type or _mime_type(name, data)
    kind = _KINDS.get(mime_type.partition("/")[0], conversation.MEDIA_KIND_DOCUMENT)
    return Media(kind=kind, data=data, mime_type=mime_type, name=name)


def _read_data_url(url: str, path: str) -> tuple[str, bytes]:
    head = _DATA_URL.match(url)
    if head is None:
        raise invalid(path, f"{path}: must be a data URL like data:image/png;base64,…")
    return (head["mime"] or "").lower(), _decode(url[head.end() :], path)


def _decode(text: str, path: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise invalid(path, f"{path}: must be valid base64") from None
    if not data:
        raise invalid(path, f"{path}: must not be empty")
    return data


def _mime_type(name: str, data: bytes) -> str:
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    suffix = PurePosixPath(name).suffix.lower()
    return _FILE_MIME_TYPES.get(suffix, "application/octet-stream")

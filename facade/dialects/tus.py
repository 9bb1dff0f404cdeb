"""Headers of the tus protocol, version 1.0 (tus.io/protocols/resumable-upload). Pure."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final

from facade.dialects.mime_types import mime_type
from facade.dialects.purposes import parse_purpose
from gateway.files.v1.files_pb2 import CreateUploadRequest, FileHeader, FileTrailer, Upload
from services.common.errors import GatewayError, invalid
from services.common.settings import MAX_FILE_LIFETIME_S
from services.common.text.texts import INT64_DIGITS, parse_digits

VERSION: Final = "1.0.0"
EXTENSIONS: Final = (
    "creation,creation-defer-length,creation-with-upload,expiration,termination,checksum"
)
ALGORITHMS: Final = ("sha1", "md5", "sha256")
_LENGTH, _OFFSET, _METADATA = "Upload-Length", "Upload-Offset", "Upload-Metadata"
_DEFERRED, _CONCAT, _CHECKSUM = "Upload-Defer-Length", "Upload-Concat", "Upload-Checksum"
_IS_DEFERRED = "1"
_MAX_METADATA = 4_096
_LIFETIME = "expires_in_seconds"
_UNNAMED = "unnamed"
_DEFAULT_PURPOSE = "user_data"


class Checksum:
    """The digest that a request names for its content.

    Args:
        header: the value of `Upload-Checksum`.

    Raises:
        GatewayError: invalid, it names no known algorithm, or no digest.
    """

    def __init__(self, header: str) -> None:
        name, _, digest = header.partition(" ")
        if name not in ALGORITHMS:
            raise invalid(_CHECKSUM, f"{_CHECKSUM}: must begin with {', '.join(ALGORITHMS)}")
        self._hash = hashlib.new(name, usedforsecurity=False)
        self._expected = _decoded(_CHECKSUM, digest)

    def update(self, data: bytes) -> None:
        """Add the next bytes."""
        self._hash.update(data)

    def matches(self) -> bool:
        """Return whether the content has the digest."""
        return hmac.compare_digest(self._hash.digest(), self._expected)


def parse_creation(headers: Mapping[str, str]) -> CreateUploadRequest:
    """Parse the headers of a request that creates an upload.

    `Upload-Metadata` may have `filename` (or `name`), `filetype` (or `type`), `purpose`
    (`user_data` if absent) and `expires_in_seconds`; other keys are stored.

    Raises:
        GatewayError: invalid, naming the header.
    """
    if _CONCAT.lower() in headers:
        raise invalid(_CONCAT, f"{_CONCAT}: not supported; send the file in one upload")
    size, deferred = parse_size(headers), headers.get(_DEFERRED.lower())
    if deferred not in (None, _IS_DEFERRED):
        raise invalid(_DEFERRED, f"{_DEFERRED}: must be {_IS_DEFERRED}")
    if (size is None) == (deferred is None):
        raise invalid(_LENGTH, f"{_LENGTH}: is required, or {_DEFERRED}, but not both")
    written = headers.get(_METADATA.lower(), "")
    if len(written) > _MAX_METADATA:
        raise invalid(_METADATA, f"{_METADATA}: must have at most {_MAX_METADATA:,} characters")
    fields = _metadata(written)
    filename = fields.get("filename") or fields.get("name") or _UNNAMED
    claimed = fields.get("filetype") or fields.get("type") or ""
    try:
        trailer = FileTrailer(purpose=parse_purpose(fields.get("purpose") or _DEFAULT_PURPOSE))
    except GatewayError as error:
        raise invalid(_METADATA, f"{_METADATA}: {error.message}") from None
    if text := fields.get(_LIFETIME):
        seconds = parse_digits(text)
        if seconds is None or not 1 <= seconds <= MAX_FILE_LIFETIME_S:
            raise invalid(
                _METADATA, f"{_METADATA}: {_LIFETIME} must be 1 to {MAX_FILE_LIFETIME_S:,}"
            )
        trailer.expires_after_s = seconds
    return CreateUploadRequest(
        header=FileHeader(filename=filename, mime_type=mime_type(claimed)),
        trailer=trailer,
        size_bytes=size,
        metadata=written,
    )


def parse_size(headers: Mapping[str, str]) -> int | None:
    """Return the value of `Upload-Length`; None without one.

    Raises:
        GatewayError: invalid.
    """
    length = headers.get(_LENGTH.lower())
    size = None if length is None else parse_digits(length, INT64_DIGITS)
    if size is None and length is not None:
        raise invalid(_LENGTH, f"{_LENGTH}: must be the size of the file in bytes")
    return size


def parse_offset(headers: Mapping[str, str]) -> int:
    """Return the value of `Upload-Offset`.

    Raises:
        GatewayError: invalid.
    """
    offset = parse_digits(headers.get(_OFFSET.lower(), ""), INT64_DIGITS)
    if offset is None:
        raise invalid(_OFFSET, f"{_OFFSET}: is required and must be the bytes received so far")
    return offset


def progress(upload: Upload, received: int) -> dict[str, str]:
    """Return the headers that describe how much of an upload has been received, and its expiry."""
    return {
        _OFFSET: str(received),
        "Upload-Expires": format_datetime(datetime.fromtimestamp(upload.expires_at, UTC), True),
    }


def description(upload: Upload) -> dict[str, str]:
    """Return the headers that describe an upload."""
    is_sized = upload.HasField("size_bytes")
    size = {_LENGTH: str(upload.size_bytes)} if is_sized else {_DEFERRED: _IS_DEFERRED}
    headers = {**size, "Cache-Control": "no-store"}
    if upload.metadata:
        headers[_METADATA] = upload.metadata
    return {**progress(upload, upload.received_bytes), **headers}


def capabilities(max_file_bytes: int) -> dict[str, str]:
    """Return the headers that describe the server."""
    return {
        "Tus-Version": VERSION,
        "Tus-Extension": EXTENSIONS,
        "Tus-Max-Size": str(max_file_bytes),
        "Tus-Checksum-Algorithm": ",".join(ALGORITHMS),
    }


def _metadata(written: str) -> dict[str, str]:
    """Parse pairs of a key and a base64 value, which may be absent."""
    fields: dict[str, str] = {}
    for pair in filter(None, map(str.strip, written.split(","))):
        key, _, value = pair.partition(" ")
        if key in fields:
            raise invalid(_METADATA, f"{_METADATA}: the key {key[:64]} must be given only once")
        try:
            fields[key] = _decoded(_METADATA, value).decode()
        except UnicodeDecodeError:
            fields[key] = ""
    return fields


def _decoded(name: str, value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise invalid(name, f"{name}: must be base64 (RFC 4648)") from None

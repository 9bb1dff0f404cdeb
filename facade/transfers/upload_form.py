"""A streaming parser for the multipart form of a file upload.

The fields of the form are the same in both formats: `file`; `purpose`; `expires_after` as JSON, or
`expires_after[anchor]` and `expires_after[seconds]`; and `expires_in_seconds`, as in Anthropic's
own clients. Fields may come in any order, so the form is only validated completely at its end.
"""

from collections.abc import Iterator

import orjson

from facade.dialects.mime_types import mime_type
from facade.dialects.purposes import TAKES, parse_purpose
from facade.transfers import multipart
from facade.transfers.multipart import Mark, Part
from gateway.errors.v1 import errors_pb2
from gateway.files.v1.files_pb2 import FileHeader, FileTrailer
from services.common.errors import GatewayError, invalid
from services.common.settings import MAX_FILE_LIFETIME_S
from services.common.text.texts import parse_digits

MAX_FIELD = 8 << 10

_ANCHOR = "expires_after[anchor]"
_SECONDS = "expires_after[seconds]"
_IN_SECONDS = "expires_in_seconds"
# Default file name, for clients that need none.
_UNNAMED = "unnamed"
_TEXTS = frozenset({"purpose", "expires_after", _ANCHOR, _SECONDS, _IN_SECONDS})


class UploadForm:
    """An incremental form parser: returns the file's header and content, and the trailer at the
    end.
    """

    def __init__(self, boundary: bytes, *, max_file_bytes: int, anthropic_client: bool) -> None:
        """Create a parser.

        Args:
            boundary: the boundary between parts.
            max_file_bytes: maximum size of the file.
            anthropic_client: whether the client is Anthropic's own, which sends no purpose.
        """
        self._parser = multipart.Parser(boundary)
        self._max_file = max_file_bytes
        self._anthropic_client = anthropic_client
        self._part: Part | None = None
        self._in_file = False
        self._file_bytes = -1
        self._text = bytearray()
        self._texts: dict[str, str] = {}

    def feed(self, data: bytes) -> Iterator[FileHeader | bytes]:
        """Feed bytes of the body; return the file's header once, then its content.

        Raises:
            GatewayError: invalid, naming the field; too_large.
        """
        for event in self._parser.feed(data):
            if isinstance(event, Part):
                self._part = event
                self._in_file = self._is_file(event)
                if self._in_file:
                    yield self._begin_file(event)
                else:
                    self._begin_text(event.name)
            elif self._part is None:
                continue  # Only the end of the form is outside of its parts.
            elif isinstance(event, bytes):
                if self._in_file:
                    yield self._count(event)
                else:
                    self._add_text(self._part.name, event)
            elif event is Mark.PART and not self._in_file:
                self._end_text(self._part.name)

    def close(self) -> FileTrailer:
        """Return the trailer of the file, after the last bytes.

        Raises:
            GatewayError: invalid, naming the missing field.
        """
        self._parser.close()
        if self._file_bytes < 0:
            raise invalid("file", "file: is required and must be a part with a filename")
        if "purpose" not in self._texts and not self._anthropic_client:
            raise invalid("purpose", f"purpose: is required and {TAKES}")
        trailer = FileTrailer(purpose=parse_purpose(self._texts.get("purpose", "assistants")))
        seconds = self._seconds()
        if seconds is not None:
            trailer.expires_after_s = seconds
        return trailer

    def _is_file(self, part: Part) -> bool:
        # For bytes without a name, Anthropic's own clients send no filename.
        return part.filename is not None or (self._anthropic_client and part.name == "file")

    def _begin_file(self, part: Part) -> FileHeader:
        if part.name != "file":
            name = part.name[:64]
            raise invalid(name, f"{name}: must not be a file; send the file in the field `file`")
        if self._file_bytes >= 0:
            raise invalid("file", "file: must be given only once")
        self._file_bytes = 0
        filename = part.filename or (_UNNAMED if self._anthropic_client else "")
        return FileHeader(filename=filename, mime_type=mime_type(part.content_type))

    def _count(self, data: bytes) -> bytes:
        self._file_bytes += len(data)
        if self._file_bytes > self._max_file:
            raise too_large(self._max_file)
        return data

    def _begin_text(self, name: str) -> None:
        if name == "file":
            raise invalid("file", "file: must be a part with a filename, not a text field")
        if name in self._texts:
            raise invalid(name, f"{name}: must be given only once")
        if name == _IN_SECONDS and not self._anthropic_client:
            raise invalid(name, f"{name}: not supported in this format; use expires_after[seconds]")
        self._text.clear()

    def _add_text(self, name: str, data: bytes) -> None:
        self._text += data
        if len(self._text) > MAX_FIELD:
            name = name[:64]
            raise invalid(name, f"{name}: must have at most {MAX_FIELD:,} bytes")

    def _end_text(self, name: str) -> None:
        """Store a known field; invalid values are reported at once."""
        if name not in _TEXTS:
            return
        try:
            text = self._text.decode()
        except UnicodeDecodeError:
            raise invalid(name, f"{name}: must be UTF-8") from None
        self._texts[name] = text
        match name:
            case "purpose":
                parse_purpose(text)
            case "expires_after":
                _policy(text)
            case _ if name == _ANCHOR:
                _check_anchor(name, text)
            case _:
                _number(name, text)

    def _seconds(self) -> int | None:
        """Return the seconds until expiry, from either field."""
        set_fields = self._texts.keys() & {"expires_after", _IN_SECONDS}
        if self._texts.keys() & {_ANCHOR, _SECONDS}:
            set_fields = set_fields | {_SECONDS}
        if len(set_fields) > 1:
            raise invalid(
                "expires_after", f"expires_after: send only one of {', '.join(sorted(set_fields))}"
            )
        if "expires_after" in set_fields:
            return _policy(self._texts["expires_after"])
        if _IN_SECONDS in set_fields:
            return _number(_IN_SECONDS, self._texts[_IN_SECONDS])
        if not set_fields:
            return None
        for name in (_ANCHOR, _SECONDS):
            if name not in self._texts:
                raise invalid(name, f"{name}: is required with the other field of expires_after")
        return _number(_SECONDS, self._texts[_SECONDS])


def too_large(max_file_bytes: int, param: str = "file") -> GatewayError:
    """Return the error for a file that is too large, in the field `param`: 413."""
    return GatewayError(
        errors_pb2.REASON_TOO_LARGE,
        f"{param}: must have at most {max_file_bytes:,} bytes",
        param=param,
    )


def _policy(text: str) -> int:
    """Parse `{"anchor": "created_at", "seconds": …}`; return the seconds."""
    try:
        policy = orjson.loads(text)
    except orjson.JSONDecodeError:
        policy = None
    if not isinstance(policy, dict):
        raise invalid(
            "expires_after",
            "expires_after: must be a JSON object such as "
            '{"anchor": "created_at", "seconds": 3600}, or the fields '
            f"{_ANCHOR} and {_SECONDS}",
        )
    for key in policy:
        if key not in ("anchor", "seconds"):
            name = f"expires_after.{key[:64]}"
            raise invalid(name, f"{name}: unknown field; expires_after has only anchor and seconds")
    _check_anchor("expires_after.anchor", policy.get("anchor"))
    seconds = policy.get("seconds")
    return _in_range("expires_after.seconds", seconds if type(seconds) is int else 0)


def _check_anchor(name: str, value: object) -> None:
    if value != "created_at":
        raise invalid(name, f"{name}: must be created_at")


def _number(name: str, text: str) -> int:
    # Nine digits already exceed the range, and int() of many digits is slow.
    return _in_range(name, parse_digits(text) or 0)


def _in_range(name: str, seconds: int) -> int:
    if not 1 <= seconds <= MAX_FILE_LIFETIME_S:
        raise invalid(
            name, f"{name}: must be an integer from 1 to {MAX_FILE_LIFETIME_S:,}, in seconds"
        )
    return seconds

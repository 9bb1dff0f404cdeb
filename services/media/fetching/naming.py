"""Determine the type and name of a fetched medium from its header fields and URL. Pure."""

import re
import unicodedata
from email.message import Message
from email.utils import collapse_rfc2231_value
from urllib.parse import unquote

_MAX_NAME = 255
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_CHARSET = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._+-]{0,39}")


def type_and_charset(content_type: str) -> tuple[str, str]:
    """Return the media type and charset of a Content-Type field, "" for a missing one."""
    kind = content_type.partition(";")[0].strip().lower()
    charset = str(_message("content-type", content_type).get_param("charset") or "").strip()
    return (
        kind if _TYPE.fullmatch(kind) else "",
        charset if _CHARSET.fullmatch(charset) else "",
    )


def file_name(disposition: str, path: str) -> str:
    """Return the file name of a Content-Disposition field, else the last part of a path, or ""."""
    fields = _message("content-disposition", disposition).get_params([], "content-disposition")
    names = [value for field, value in fields if field.lower() == "filename"]
    # `filename*` has a charset, is parsed as a tuple and takes precedence (RFC 6266, section 4.3).
    names.sort(key=lambda name: isinstance(name, str))
    header_name = collapse_rfc2231_value(names[0]) if names else ""
    return _clean(header_name) or _clean(unquote(path.partition("?")[0].rpartition("/")[2]))


def _message(field: str, value: str) -> Message:
    message = Message()
    message[field] = field_text(value).replace("\r", " ").replace("\n", " ")
    return message


def field_text(value: str) -> str:
    """Decode a field value: many servers send UTF-8, which was decoded as Latin-1."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _clean(name: str) -> str:
    name = name.replace("\\", "/").rpartition("/")[2]
    name = "".join(
        character for character in name if unicodedata.category(character) not in ("Cc", "Cs")
    ).strip()
    return "" if name in (".", "..") else name[-_MAX_NAME:]

"""Decode text files of any encoding."""

import codecs
import re

from services.media.conversion.errors import ConversionError
from services.media.conversion.loading import load

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET = re.compile(r"charset=\"?([\w.:-]+)", re.IGNORECASE)
# Control characters that do not occur in text.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def decode(content: bytes, mime_type: str) -> str:
    """Decode a text file by its byte order mark, as UTF-8, by its declared charset, or by a guess.

    Raises:
        ConversionError: it is not text.
    """
    text = _declared(content, mime_type)
    if text is None:
        text = _decoded(content, load("charsets").guess(content))
    if text is None or _CONTROLS.search(text):
        raise ConversionError("the file is neither text nor a supported document")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _declared(content: bytes, mime_type: str) -> str | None:
    marked = [encoding for mark, encoding in _MARKS if content.startswith(mark)][:1]
    charset = _CHARSET.search(mime_type)
    for encoding in (*marked, "utf-8", *([charset[1]] if charset else [])):
        text = _decoded(content, encoding)
        if text is not None:
            return text
    return None


def _decoded(content: bytes, encoding: str | None) -> str | None:
    try:
        return None if encoding is None else content.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None

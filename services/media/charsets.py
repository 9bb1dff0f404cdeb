"""Decode text by its declared charsets and its content. Pure."""

import codecs

# Meaning of these labels on the web (https://encoding.spec.whatwg.org/#names-and-labels).
_MEANT = {
    "ascii": "cp1252",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
}
# Not charsets on the web; some decode in quadratic time.
_NOT_TEXT = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(content: bytes, *charsets: str) -> str | None:
    """Decode text; return None if no charset fits.

    In order: a byte order mark, valid UTF-8, then the declared charsets. Invalid bytes in a
    declared charset become U+FFFD.
    """
    for mark, charset in _BOMS:
        if content.startswith(mark):
            return content[len(mark) :].decode(charset, errors="replace")
    known_charsets = [codec for name in charsets if (codec := _codec(name))]
    # ASCII with escapes is valid UTF-8 too, and so is UTF-16 without a byte order mark.
    if not any(
        name.startswith(("iso2022", "utf-16", "utf-32", "hz")) for name in known_charsets[:1]
    ):
        try:
            return content.decode()
        except UnicodeDecodeError:
            pass
    return content.decode(known_charsets[0], errors="replace") if known_charsets else None


def _codec(name: str) -> str:
    """Return the codec of a charset, or ""."""
    try:
        info = codecs.lookup(name.strip())
    except (LookupError, ValueError):
        return ""
    # Codecs that are not text encodings have names of the same kind.
    if not getattr(info, "_is_text_encoding", True) or info.name in _NOT_TEXT:
        return ""
    return _MEANT.get(info.name, info.name)

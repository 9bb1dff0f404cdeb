"""Bytes as text, by what is said of their charset and by what they can be. Pure."""

import codecs

# What these names mean on the web (https://encoding.spec.whatwg.org/#names-and-labels).
_MEANT = {
    "ascii": "cp1252",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
}
# They are no charsets of text on the web; some take a square of the length.
_NOT_TEXT = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(content: bytes, *charsets: str) -> str | None:
    """Return bytes as text, or None where nothing says what they are.

    A byte order mark counts first. UTF-8 that is valid is no accident; after that count the
    charsets that were named, the first one first. Bytes that are wrong in a charset that was
    named become U+FFFD.
    """
    for mark, charset in _BOMS:
        if content.startswith(mark):
            return content[len(mark) :].decode(charset, errors="replace")
    named = [found for name in charsets if (found := _codec(name))]
    # What is ASCII and escapes is valid UTF-8 too, and so is UTF-16 without a mark.
    if not any(name.startswith(("iso2022", "utf-16", "utf-32", "hz")) for name in named[:1]):
        try:
            return content.decode()
        except UnicodeDecodeError:
            pass
    return content.decode(named[0], errors="replace") if named else None


def _codec(name: str) -> str:
    """Return the codec for a charset, or "" where there is none."""
    try:
        info = codecs.lookup(name.strip())
    except (LookupError, ValueError):
        return ""
    # Codecs between bytes and bytes, and text and text, are found by the same names.
    if not getattr(info, "_is_text_encoding", True) or info.name in _NOT_TEXT:
        return ""
    return _MEANT.get(info.name, info.name)

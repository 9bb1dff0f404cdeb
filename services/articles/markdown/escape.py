"""Text that must mean nothing but itself (CommonMark 0.31, GFM 0.29)."""

import re
from html import escape as html_escape
from urllib.parse import quote

# Whatever may begin something in the middle of a line. `!` matters before `[` alone.
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|$~&"})
_SCHEMES = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_INFO = re.compile(r"[\\&]")
_BROKEN = re.compile(r"(`(?=`)|~(?=~)|\](?=\())")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_NEWLINES = re.compile(r"\r\n?")

_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_LONE_DOLLAR = re.compile(r"(?<!\\)((?:\\\\)*)\$")


def newlines(text: str) -> str:
    """Write every line end as one newline."""
    return _NEWLINES.sub("\n", text) if "\r" in text else text


def escaped(text: str) -> str:
    """Escape text for the middle of a line; newlines stay."""
    return text.translate(_SPECIAL)


def one_line(text: str) -> str:
    """Escape text for a place that has no lines: a newline becomes a space."""
    return escaped(newlines(text).replace("\n", " "))


def attribute(value: str) -> str:
    """Escape the value of an HTML attribute."""
    return html_escape(value, quote=True)


def address(url: str) -> str:
    """Write an address with all that is unusual in one percent-encoded."""
    return quote(url, safe="/?#@:!&'*+,;=%~[]-._")


def destination(url: str) -> str:
    """Write an address so that it neither ends a link early nor leaves a table's cell."""
    return _ENTITY.sub("&amp;", address(url))


def info_string(language: str) -> str:
    """Write a language behind the fence of a block of code."""
    words = " ".join(language.lower().replace("`", "").split())
    return _INFO.sub(r"\\\g<0>", words)


def is_safe_link(url: str) -> bool:
    """Return whether an address leads to the web or a mailbox, and runs nothing."""
    return _SCHEMES.match(url) is not None


def formula(latex: str) -> str:
    """Write LaTeX so that a parser without mathematics sees no HTML, link or fence in it.

    A space behind `<`, inside `](` or between two backticks changes nothing in a formula.
    """
    return _TAG_START.sub("< ", _BROKEN.sub(r"\1 ", newlines(latex)))


def inline_formula(latex: str) -> str:
    """Write LaTeX for between two dollar signs, on one line."""
    # Not by a pattern: one that begins with white space looks at a long run of it over and over.
    inner = " ".join(filter(None, map(str.strip, formula(latex).split("\n"))))
    inner = _LONE_DOLLAR.sub(r"\1\\$", inner)
    backslashes = len(inner) - len(inner.rstrip("\\"))
    return f"{inner} " if backslashes % 2 else inner

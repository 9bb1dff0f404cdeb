"""Escaping of text for CommonMark 0.31 and GFM 0.29."""

import re
from html import escape as html_escape
from urllib.parse import quote

# Characters that may begin Markdown syntax within a line. `!` does so only before `[`.
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*[]<>|$~^"})
# `_` within a word and `&` before anything but an entity mean nothing. Escaped, they would end a
# bare address, which GFM makes a link. The text may go on in another leaf.
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
# An `@` that is not in an address would begin a citation.
_AT = re.compile(r"(?<![A-Za-z0-9._%+/-])@(?=[^\W_]|\{)")
_BRACE = re.compile(r"\{(?=[#.-])")
_AMPERSAND = re.compile(r"&(?=#?\w*(?:;|$))")
_SCHEMES = re.compile(r"(?:https?://|mailto:|#)", re.IGNORECASE)
_INFO = re.compile(r"[\\&]")
_BROKEN = re.compile(r"(`(?=`)|~(?=~)|\](?=\())")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_NEWLINES = re.compile(r"\r\n?")

_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_LONE_DOLLAR = re.compile(r"(?<!\\)((?:\\\\)*)\$")


def newlines(text: str) -> str:
    """Return text with all line ends as newlines."""
    return _NEWLINES.sub("\n", text) if "\r" in text else text


def escaped(text: str) -> str:
    """Return text escaped for the middle of a line; newlines stay."""
    text = text.translate(_SPECIAL)
    if "@" in text:
        text = _AT.sub(r"\\@", text)
    if "{" in text:
        text = _BRACE.sub(r"\\{", text)
    if "_" in text:
        text = _UNDERSCORE.sub(r"\\_", text)
    return _AMPERSAND.sub(r"\\&", text) if "&" in text else text


def one_line(text: str) -> str:
    """Return text escaped for one line: a newline becomes a space."""
    return escaped(newlines(text).replace("\n", " "))


def attribute(value: str) -> str:
    """Return the escaped value of an HTML attribute."""
    return html_escape(value, quote=True)


def address(url: str) -> str:
    """Return a URL with unusual characters percent-encoded."""
    return quote(url, safe="/?#@:!&'*+,;=%~[]-._")


def destination(url: str) -> str:
    """Return a URL escaped so that it ends neither a link nor a table cell early."""
    return _ENTITY.sub("&amp;", address(url))


def info_string(language: str) -> str:
    """Return a language as the info string of a fenced code block."""
    words = " ".join(language.lower().replace("`", "").split())
    return _INFO.sub(r"\\\g<0>", words)


def is_safe_link(url: str) -> bool:
    """Return whether a URL is one of http, https or mailto, or names a place in the document."""
    return _SCHEMES.match(url) is not None


def formula(latex: str) -> str:
    """Return LaTeX in which a parser without math support finds no HTML, link or fence.

    A space after `<`, inside `](` or between two backticks does not change a formula.
    """
    return _TAG_START.sub("< ", _BROKEN.sub(r"\1 ", newlines(latex)))


def inline_formula(latex: str) -> str:
    """Return LaTeX on one line, to be put between two dollar signs."""
    # No regular expression: one that begins with white space takes quadratic time on long runs.
    inner = " ".join(filter(None, map(str.strip, formula(latex).split("\n"))))
    inner = _LONE_DOLLAR.sub(r"\1\\$", inner)
    backslashes = len(inner) - len(inner.rstrip("\\"))
    # A control space at the end: no parser takes a dollar sign after a space as the end.
    return f"{inner} {{}}" if backslashes % 2 else inner

"""Lines of a block from inline Markdown.

White space at the edges of a line would be lost, and is written as character references. The
beginning of a line might be parsed as a heading or a list, and is escaped.
"""

import re

# Beginnings of headings, lists, lines under a heading or a table's header, and rules.
_BLOCK_START = re.compile(
    r"#(?=#{0,5}(?:\s|$))|[+:-](?=\s|$)|[:-](?=-*:?$)|=(?==*$)|\d{1,9}[.)](?=\s|$)"
)
_CLOSING_HASHES = re.compile(r"(?<![^\s])#+$")
# Control characters without a reference that all parsers decode.
_UNREFERABLE = frozenset("\x0b\x1c\x1d\x1e\x1f\x85")


def paragraph(source: str) -> str:
    """Return the lines of a paragraph; newlines become hard breaks."""
    if "\n" not in source:
        return _line(source)
    text = source.rstrip("\n")
    # A backslash is a hard break only if another line follows.
    breaks = "<br>" * (len(source) - len(text))
    return "\\\n".join([_line(line) for line in text.split("\n")]) + breaks


def heading(source: str) -> str:
    """Return the content of a heading, which has one line."""
    line = kept_edges(source.replace("\n", " "))
    return _CLOSING_HASHES.sub(lambda hashes: f"\\{hashes[0]}", line)


def cell(source: str) -> str:
    """Return the content of a cell in a GFM table, which has one line."""
    parts = [kept_edges(part) for part in source.split("\n")]
    return "<br>".join(parts)


def kept_edges(line: str) -> str:
    """Return a line with white space at its edges as character references."""
    if not line[:1].isspace() and not line[-1:].isspace():
        return line
    # No regular expression: one for the end of the line takes quadratic time on long runs of white
    # space inside of it.
    start = len(line) - len(line.lstrip())
    end = max(start, len(line.rstrip()))
    return _references(line[:start]) + line[start:end] + _references(line[end:])


def _references(edge: str) -> str:
    return "".join(c if c in _UNREFERABLE else f"&#{ord(c)};" for c in edge)


def _line(line: str) -> str:
    line = kept_edges(line)
    if line.startswith("$$"):
        # Otherwise a block of its own.
        return f"<span></span>{line}"
    start = _BLOCK_START.match(line)
    if start is None:
        return line
    index = start.end() - 1
    return f"{line[:index]}\\{line[index:]}"

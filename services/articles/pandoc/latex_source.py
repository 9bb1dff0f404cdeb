r"""LaTeX before pandoc reads it: what it would read wrongly, written in another way.

Pandoc takes the rows that a `longtable` repeats on each page for rows of its body, and loses the
cell after them; it starts a list at 1 when its numbers are set after their form; and the macro that
it writes around pictures hides them from it. Lines keep their numbers, which its warnings name.
"""

import re
from collections.abc import Iterator

from services.articles.pandoc.bibitems import MACROS

_ENVIRONMENT = re.compile(
    r"\\(begin|end)\{(longtable|verbatim\*?|Verbatim|lstlisting|minted|comment)\}"
)
_LONG_TABLE = "longtable"
_PART_END = re.compile(r"\\end(firsthead|head|lastfoot|foot)(?![A-Za-z])")
# What pandoc writes after rules, and reads as a row.
_NOTHING = "\\noalign{}"
_OPTION = re.compile(r"\s{0,100}\[[^\[\]]{0,100}\]\s{0,100}")
# The macro around pictures gets another name, as `MACROS` define it as its argument.
_BOUNDED = "\\newcommand*\\pandocbounded"
_OTHER_NAME = "\\newcommand*\\otherbounded"
# As pandoc itself writes it: the form of the numbers, then the first number.
_LIST_START = re.compile(
    r"(\\def\\labelenum[iv]{1,3}\{(?:[^{}]|\{[^{}]{0,100}\}){0,100}\})(\s{0,100})"
    r"(\\setcounter\{enum[iv]{1,3}\}\{\d{1,5}\})"
)


def readable(latex: str) -> bytes:
    """Return LaTeX that pandoc reads as it is meant, with macros on its first line."""
    latex = latex.replace(_BOUNDED, _OTHER_NAME, 1)
    return MACROS + _LIST_START.sub(r"\3\2\1", "".join(_with_plain_tables(latex))).encode()


def _with_plain_tables(latex: str) -> Iterator[str]:
    copied = 0
    opened: re.Match[str] | None = None
    for bound in _ENVIRONMENT.finditer(latex):
        # What an environment contains is not looked at, as it may be a listing of LaTeX.
        if opened is None:
            opened = bound if bound[1] == "begin" else None
        elif bound[1] == "end" and bound[2] == opened[2]:
            if bound[2] == _LONG_TABLE:
                yield latex[copied : opened.end()]
                yield _plain(latex[opened.end() : bound.start()])
                copied = bound.start()
            opened = None
    yield latex[copied:]


def _plain(table: str) -> str:
    """Return the columns and rows of a table, each row once."""
    parts: dict[str, str] = {}
    start = begin = _after_columns(table)
    for end in _PART_END.finditer(table, start):
        parts[end[1]] = table[start : end.start()]
        start = end.end()
    if not parts:
        return table
    head = table[:begin] + parts.get("firsthead", parts.get("head", ""))
    body = "".join(f"{rows.strip()}\n" for rows in (table[start:], parts.get("lastfoot", "")))
    # Comments, as an empty line would end a row.
    left_out = "%\n" * (table.count("\n") - head.count("\n") - body.count("\n"))
    return (head + left_out + body).replace(_NOTHING, "")


def _after_columns(table: str) -> int:
    """Return the position after the option and the columns, such as `[c]{lr}`."""
    option = _OPTION.match(table)
    depth = 0
    for position in range(option.end() if option else 0, len(table)):
        depth += {"{": 1, "}": -1}.get(table[position], 0)
        if depth <= 0 and not table[position].isspace():
            return position + 1
    return len(table)

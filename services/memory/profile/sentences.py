"""Sentence splitting, without code, tables and quoted lines. Pure."""

import re

from services.common.text.texts import elide_middle

# Characters of a text that are used, half from its beginning, half from its end: longer texts
# were pasted.
MAX_TEXT = 20_000

_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINES = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_ROWS = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
# The marker of a heading or of a list item.
_MARK = re.compile(r"^[\s#*•-]*(?:\d{1,3}[.)]\s+)?[\s*_]*")
_ABBREVIATIONS = "Dr. Mr. Ms. Mrs. St. Prof. vs. e.g. i.e. No. approx.".split()
_END = re.compile(
    r"\n+|(?<=[\u3002\uff01\uff1f])|"
    + "".join(rf"(?<!\b{re.escape(one)})" for one in _ABBREVIATIONS)
    + r"(?<=[.!?…])[\"'\u201d\u2019)*_]*\s+"
)


def strip_non_prose(text: str) -> str:
    """Return a text without code blocks, tables and quoted lines."""
    text = elide_middle(text, MAX_TEXT, "\n")
    for left_out in (_FENCED, _QUOTED_LINES, _ROWS):
        text = left_out.sub("\n", text)
    return text


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, without the markers of headings and lists."""
    cut = (_MARK.sub("", " ".join(one.split()), count=1) for one in _END.split(text))
    return [one.rstrip("*_ ") for one in cut if one.strip("*_ ")]

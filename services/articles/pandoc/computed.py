"""Numbers that documents compute by themselves, in texts of formats that have them as words."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from services.articles.pandoc.syntax import Node
from services.articles.tree.labels import all_names
from services.articles.tree.nodes import Leaf

# "Figure {}", not "Eq. ({})" or "第 {} 节", which stand before no caption.
_NAMES = "|".join(
    sorted(
        re.escape(name.removesuffix("{}").rstrip()) for name in all_names() if name.endswith("{}")
    )
)
_NUMBER = r"\d{1,4}(?:\.\d{1,4}){0,3}"
_BEFORE_CAPTION = re.compile(rf"(?:{_NAMES})[ \xa0]?{_NUMBER}(?:[:.\uff1a][ \xa0]*|$)")
_AFTER_EQUATION = re.compile(rf"(?:\\qquad|\\quad ?\\quad) ?\({_NUMBER}\)$")
# The class of the number of a section, before the space before its text.
_SECTION_NUMBER = "header-section-number"


def without_number(caption: Sequence[Leaf]) -> list[Leaf]:
    """Return a caption without the name and the number before it."""
    if not caption or caption[0].type != "default":
        return list(caption)
    first = caption[0].text
    match = _BEFORE_CAPTION.match(first)
    if match is None:
        return list(caption)
    shortened = [replace(caption[0], text=first[match.end() :])] if match.end() < len(first) else []
    return [*shortened, *caption[1:]]


def without_section_number(heading: Sequence[Node]) -> Sequence[Node]:
    """Return a heading without its number, as far as it is marked as one (in HTML)."""
    is_marked = heading and heading[0]["t"] == "Span" and _SECTION_NUMBER in heading[0]["c"][0][1]
    return heading[2:] if is_marked else heading


def without_equation_number(latex: str) -> str:
    """Return a formula without the number after it."""
    return _AFTER_EQUATION.sub("", latex.strip()).strip()


def is_name(text: str) -> bool:
    """Return whether a text is nothing but the name and the number of a block."""
    match = _BEFORE_CAPTION.match(text)
    return match is not None and match.end() == len(text)

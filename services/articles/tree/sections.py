"""Sections: a heading with the blocks below it, up to the next heading that is not lower."""

from services.articles.tree.document import Document
from services.articles.tree.nodes import HEADING_TYPES

# Headings, the highest first.
_LEVELS = {"title": 0, **{kind: level for level, kind in enumerate(HEADING_TYPES, 1)}}


def is_heading(kind: str) -> bool:
    """Return whether blocks of a type begin a section."""
    return kind in _LEVELS


def section_end(document: Document, start: int) -> int:
    """Return the position after the section of the heading at a position."""
    level = _LEVELS[document.blocks[start].type]
    for position in range(start + 1, len(document.blocks)):
        if _LEVELS.get(document.blocks[position].type, level + 1) <= level:
            return position
    return len(document.blocks)

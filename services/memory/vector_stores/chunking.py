"""Cuts text into chunks that overlap. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from services.common.text.tokens import estimate_tokens

# Segments that a chunk of the maximum size has at least: chunks begin and end between two.
_SEGMENTS = 16
_MIN_SEGMENT = 16  # characters


class _Segment(NamedTuple):
    """A part of the text, from `start` to `end`, and its tokens."""

    start: int
    end: int
    tokens: int


def cut(text: str, max_tokens: int, overlap_tokens: int) -> list[str]:
    """Return the chunks of a text, none of them blank.

    Args:
        text: the text.
        max_tokens: maximum of `estimate_tokens` for a chunk, at least 100.
        overlap_tokens: about how many tokens a chunk shares with the one before it; at most half
            of `max_tokens`.
    """
    segments = list(_segments(text, max(_MIN_SEGMENT, max_tokens // _SEGMENTS)))
    chunks: list[str] = []
    first = 0
    while first < len(segments):
        total, last = 0, first
        while last < len(segments) and total + segments[last].tokens <= max_tokens:
            total += segments[last].tokens
            last += 1
        last = max(last, first + 1)
        if chunk := text[segments[first].start : segments[last - 1].end].strip():
            chunks.append(chunk)
        if last == len(segments):
            break
        shared, begin = 0, last
        while begin - 1 > first and shared + segments[begin - 1].tokens <= overlap_tokens:
            begin -= 1
            shared += segments[begin].tokens
        first = begin
    return chunks


def _segments(text: str, size: int) -> Iterator[_Segment]:
    """Yield parts of at most `size` characters, which end after white space where possible."""
    start = 0
    while start < len(text):
        end = min(start + size, len(text))
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space + 1 if space >= 0 else end
        yield _Segment(start, end, estimate_tokens(text[start:end]))
        start = end

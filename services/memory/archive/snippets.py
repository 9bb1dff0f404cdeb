"""Truncation of texts to a common budget of tokens. Pure."""

from collections import Counter
from collections.abc import Sequence

from services.common.text.texts import normalized
from services.common.text.tokens import estimate_tokens, longest_within
from services.memory.archive.words import located_terms

CUT = "…"


def cut_to_budget(texts: Sequence[str], asked: frozenset[str], max_tokens: int) -> list[str]:
    """Return the texts; long ones are cut to the part that matches a question best.

    Short texts stay whole, long ones share the rest of the budget evenly. A text whose share has
    room for no word becomes empty.

    Args:
        texts: the texts.
        asked: terms of the question.
        max_tokens: maximum size of all texts together.
    """
    sizes = [estimate_tokens(text) for text in texts]
    share = _share(sizes, max_tokens)
    return [
        text if size <= share else _cut_around_terms(text, size, asked, share)
        for text, size in zip(texts, sizes, strict=True)
    ]


def _share(sizes: Sequence[int], total: int) -> int:
    """Return the size to cut each text to, so that all together stay within the total."""
    left = total
    for place, size in enumerate(sorted(sizes)):
        share = max(0, left) // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _cut_around_terms(text: str, tokens: int, asked: frozenset[str], max_tokens: int) -> str:
    """Return as much of a text around the terms of a question as the tokens allow."""
    whole = normalized("NFKC", text)
    scale = len(text) / len(whole)
    hits = [(int(place * scale), term) for place, term in located_terms(whole, asked)]
    middle = _densest(hits, len(text) * max_tokens // tokens)
    return longest_within(max_tokens, len(text), lambda size: _window(text, middle, size))


def _densest(hits: Sequence[tuple[int, str]], size: int) -> int:
    """Return the middle of the window of `size` characters with the most distinct terms."""
    held: Counter[str] = Counter()
    distinct = most = middle = oldest = 0
    for place, term in hits:
        distinct += not held[term]
        held[term] += 1
        while hits[oldest][0] < place - size:
            gone = hits[oldest][1]
            held[gone] -= 1
            distinct -= not held[gone]
            oldest += 1
        if distinct > most:
            most, middle = distinct, (hits[oldest][0] + place) // 2
    return middle


def _window(text: str, middle: int, size: int) -> str:
    """Return the whole words of about `size` characters around the middle."""
    start = max(0, min(middle - size // 2, len(text) - size))
    end = start + size
    part = text[start:end]
    if start:
        part = part.split(maxsplit=1)[-1] if part.strip() else ""
    if end < len(text):
        part = part.rsplit(maxsplit=1)[0] if part.strip() else ""
    return f"{CUT if start else ''}{part}{CUT if end < len(text) else ''}" if part else ""

"""Truncation of texts to a common budget of tokens. Pure."""

from collections import Counter
from collections.abc import Callable, Sequence

from services.common.tokens import estimate_tokens
from services.memory.archive.words import split_words

CUT = "…"


def cut_to_budget(texts: Sequence[str], asked: frozenset[str], max_tokens: int) -> list[str]:
    """Return the texts, long ones cut to the part that matches a question best.

    Short texts stay whole, long ones share the rest of the budget evenly. A text for which no
    word is left becomes empty.

    Args:
        texts: the texts.
        asked: terms of the question.
        max_tokens: for all of them.
    """
    sizes = [estimate_tokens(text) for text in texts]
    share = _share(sizes, max_tokens)
    return [
        text if size <= share else _cut_around_terms(text, asked, share)
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


def _cut_around_terms(text: str, asked: frozenset[str], max_tokens: int) -> str:
    """Return as many words around the terms of a question as the tokens allow."""
    found = list(split_words(text))
    hits = [
        (place, term) for place, word in enumerate(found) for term in asked.intersection(word.terms)
    ]

    def window(size: int) -> str:
        if not size:
            return ""
        first = _first(hits, len(found), size)
        start = found[first].start if first else 0
        last = first + size - 1
        return _marked(text, start, found[last].end if last + 1 < len(found) else len(text))

    cut_text = _longest(window, len(found), max_tokens)
    # A word may be longer than that by itself, or there may be none.
    start = found[hits[0][0]].start if hits else 0
    return cut_text or _longest(
        lambda size: _marked(text, start, start + size) if size else "",
        len(text) - start,
        max_tokens,
    )


def _longest(part: Callable[[int], str], most: int, max_tokens: int) -> str:
    """Return the largest part that the tokens allow, where size 0 is empty."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens(part(middle)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return part(low)


def _marked(text: str, start: int, end: int) -> str:
    return (CUT if start else "") + text[start:end] + (CUT if end < len(text) else "")


def _first(hits: Sequence[tuple[int, str]], places: int, size: int) -> int:
    """Return the start of the window of `size` words with most distinct terms of the question.

    The matches are centred in the window.
    """
    held: Counter[str] = Counter()
    most, middle = 0, 0
    oldest = 0
    for place, term in hits:
        held[term] += 1
        while hits[oldest][0] <= place - size:
            held[hits[oldest][1]] -= 1
            oldest += 1
        distinct = len(+held)
        if distinct > most:
            most, middle = distinct, (hits[oldest][0] + place) // 2
    return max(0, min(middle - size // 2, places - size))

"""The scores of turns by BM25F over their neighbours. Pure.

BM25F (Robertson, Zaragoza and Taylor 2004) whose fields are the turn, the one before it and the one
after: an answer need not repeat the words of its question. The frequencies of a term are added up
over the fields, and the document frequency counts every turn that has the term in one of them.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from services.memory.archive.top_k import top_k

# The free parameters of BM25: the saturation of term frequency, and the weight of length.
K1 = 1.2
B = 0.4
# The weights of the turns before and after a turn, whose own is 1.
PREVIOUS = 0.5
NEXT = 0.3


class Collection(NamedTuple):
    """The counts of turns and of terms in the archive of a memory."""

    turns: int
    terms: int


def score_turns(
    found: Sequence[bytes],
    collection: Collection,
    *,
    before_turn: int,
    recency: float,
    most: int,
) -> dict[int, float]:
    """Return the turns with the highest scores; of equals, the later.

    Args:
        found: the postings of each term of the question, as `postings.pack` packs them.
        collection: the counts of the archive.
        before_turn: that turn and later ones are left out.
        recency: the bonus of the newest turn over the first, as a share of its score.
        most: how many turns to return at most.
    """
    import numpy as np

    posting = np.dtype([("turn", "<u4"), ("count", "<u2"), ("length", "<u2")])
    read = [np.frombuffer(packed, posting) for packed in found]
    size = max((int(postings["turn"].max(initial=0)) for postings in read), default=0)
    # An element for each turn from 0, and one more at each end for the neighbours.
    scores = np.zeros(size + 3)
    mean_length = max(1, collection.terms) / collection.turns
    for postings in read:
        turns = postings["turn"].astype(np.int64)
        order = np.argsort(turns, kind="stable")
        turns = turns[order]
        # Frequencies: of the turns with the term, of those before, and of those after them.
        own = (postings["count"] / (1 - B + B * postings["length"] / mean_length))[order]
        # Else a turn would gain from a newer one, which the question asks for.
        before = np.zeros_like(own) if recency else NEXT * own
        after = PREVIOUS * own
        # Turns that several reach count once, with the sum of what reaches them.
        gaps = np.diff(turns)
        is_adjacent = gaps == 1
        own[1:] += after[:-1] * is_adjacent
        own[:-1] += before[1:] * is_adjacent
        after[:-1] += before[1:] * (gaps == 2)
        after[:-1] *= ~is_adjacent
        before[1:] *= gaps > 2
        reached = 3 * len(turns) - int(np.maximum(3 - gaps, 0).sum())
        # Neighbours of turns at the ends of the archive may not be in it.
        having = min(reached, collection.turns)
        rarity = math.log1p((collection.turns - having + 0.5) / (having + 0.5))
        for offset, frequencies in enumerate((before, own, after)):
            scores[turns + offset] += rarity * frequencies / (K1 + frequencies)
    if recency:
        scores *= 1 + recency * np.arange(len(scores)) / len(scores)
    ranked = scores[1 : 1 + max(0, min(before_turn, size + 2))]
    best = top_k(ranked, most)
    scored = zip(best.tolist(), ranked[best].tolist(), strict=True)
    return {turn: score for turn, score in scored if score > 0}

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
    found: Sequence[Sequence[bytes]],
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
    read = [np.frombuffer(b"".join(blocks), posting) for blocks in found]
    # An element for each turn from 0, and one more at each end for the neighbours.
    size = max((int(postings["turn"].max(initial=0)) for postings in read), default=0)
    scores, frequencies = np.zeros((2, size + 3))
    has_term = np.zeros(size + 3, np.bool_)
    mean_length = max(1, collection.terms) / collection.turns
    for postings in read:
        turns = postings["turn"].astype(np.int64) + 1
        own = postings["count"] / (1 - B + B * postings["length"] / mean_length)
        frequencies[turns] = own
        frequencies[turns + 1] += PREVIOUS * own
        if not recency:
            # Else a turn would gain from a newer one, which the question asks for.
            frequencies[turns - 1] += NEXT * own
        # Faster than to sort the turns.
        has_term[turns] = True
        is_reached = has_term.copy()
        is_reached[1:] |= has_term[:-1]
        is_reached[:-1] |= has_term[1:]
        reached = np.flatnonzero(is_reached)
        weighted = frequencies[reached]
        # Neighbours of turns at the ends of the archive may not be in it.
        having = min(len(reached), collection.turns)
        rarity = math.log1p((collection.turns - having + 0.5) / (having + 0.5))
        scores[reached] += rarity * weighted / (K1 + weighted)
        frequencies[reached] = 0
        has_term[turns] = False
    if recency:
        scores *= 1 + recency * np.arange(len(scores)) / len(scores)
    ranked = scores[1 : 1 + max(0, min(before_turn, size + 2))]
    best = top_k(ranked, most)
    scored = zip(best.tolist(), ranked[best].tolist(), strict=True)
    return {turn: score for turn, score in scored if score > 0}

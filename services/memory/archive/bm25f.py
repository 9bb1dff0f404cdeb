"""The scores of turns by BM25F, with their neighbours as fields. Pure.

BM25F (Robertson, Zaragoza and Taylor 2004) whose fields are the turn, the one before it and the one
after: an answer need not repeat the words of its question. The frequencies of a term are added up
over the fields, and the document frequency counts every turn that has the term in some field.
"""

from collections.abc import Sequence
from typing import NamedTuple

from services.memory.archive import postings
from services.memory.archive.top_k import are_within, top_k

# The free parameters of BM25: the saturation of term frequency, and the normalization of length.
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
    ranges: Sequence[tuple[int, int]] | None = None,
) -> dict[int, float]:
    """Return the highest scores by turn; of turns with equal scores, the later.

    Args:
        found: the postings of each term of the question, as `postings.pack` packs them.
        collection: the counts of the archive.
        before_turn: that turn and later ones are left out.
        recency: the bonus of the newest turn over the first, as a share of its score.
        most: maximum number of turns.
        ranges: if given, other turns are left out; see `top_k.are_within`.
    """
    import numpy as np

    found = [packed for packed in found if packed]
    if not found:
        return {}
    sizes = [len(packed) // postings.SIZE for packed in found]
    posting = np.dtype([("turn", "<u4"), ("count", "<u2"), ("length", "<u2")])
    read = np.frombuffer(b"".join(found), posting)
    turns = read["turn"].astype(np.int64)
    size = int(turns.max())
    # All terms at once: each term has a range of numbers of its own for the turns.
    numbers = turns + np.repeat(np.arange(len(found)) * (size + 3), sizes)
    gaps = np.diff(numbers)
    mean_length = max(1, collection.terms) / collection.turns
    # Weighted frequencies for the turns with a term, the turns before and the turns after them.
    own = read["count"] / (1 - B + B * read["length"] / mean_length)
    if gaps.min(initial=1) < 1:  # not stored in order
        order = np.argsort(numbers, kind="stable")
        turns, own, gaps = turns[order], own[order], np.diff(numbers[order])
    # With recency, a turn must not gain from a newer turn, which the question asks for.
    before = np.zeros_like(own) if recency else NEXT * own
    after = PREVIOUS * own
    # A turn that several turns contribute to counts once, with the sum of the contributions.
    is_adjacent = gaps == 1
    own[1:] += after[:-1] * is_adjacent
    own[:-1] += before[1:] * is_adjacent
    after[:-1] += before[1:] * (gaps == 2)
    after[:-1] *= ~is_adjacent
    before[1:] *= gaps > 2
    reached = np.minimum(np.concatenate(([3], gaps)), 3)
    # Neighbours of turns at the ends of the archive may not exist.
    having = np.minimum(np.add.reduceat(reached, np.cumsum([0, *sizes[:-1]])), collection.turns)
    rarity = np.repeat(np.log1p((collection.turns - having + 0.5) / (having + 0.5)), sizes)
    # An element for each turn from 0, and one more at each end for the neighbours.
    scores = np.zeros(size + 3)
    for offset, frequencies in enumerate((before, own, after)):
        np.add.at(scores[offset:], turns, rarity * frequencies / (K1 + frequencies))
    if recency:
        scores *= 1 + recency * np.arange(len(scores)) / len(scores)
    ranked = scores[1 : 1 + max(0, min(before_turn, size + 2))]
    if ranges is not None:
        ranked = np.where(are_within(np.arange(len(ranked)), ranges), ranked, 0)
    best = top_k(ranked, most)
    return {int(turn): float(ranked[turn]) for turn in best if ranked[turn] > 0}

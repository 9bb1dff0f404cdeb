"""Packed postings of terms, and the ranking of turns by BM25. Pure.

A posting has eight bytes: the turn, the frequency of the term in it, and the count of terms in the
turn. The postings of a term are stored in blocks by turn, so that a new turn rewrites little; a
search reads only the blocks of its terms.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

SIZE = 8
# Turns a block.
BLOCK = 4096

_POSTING = struct.Struct("<IHH")
_MOST = 0xFFFF
# The free parameters of BM25: the saturation of term frequency, and the weight of length.
K1 = 1.2
B = 0.4


class Collection(NamedTuple):
    """The counts of turns and of terms in the archive of a memory."""

    turns: int
    terms: int


def pack(turn: int, count: int, length: int) -> bytes:
    """Return the posting of a term that occurs `count` times in a turn of `length` terms."""
    return _POSTING.pack(turn, min(count, _MOST), min(length, _MOST))


def keep_before(packed: bytes, first_turn: int) -> bytes:
    """Return the postings of turns before `first_turn`."""
    return b"".join(
        _POSTING.pack(*posting)
        for posting in _POSTING.iter_unpack(packed)
        if posting[0] < first_turn
    )


def select_rarest(found: Mapping[int, int], limit: int) -> list[int]:
    """Return the rarest terms, with at most `limit` postings together.

    Args:
        found: the document frequency of each term, by its key.
        limit: count of postings; the rarest term is returned however many it has.
    """
    chosen: list[int] = []
    total = 0
    for term, count in sorted(found.items(), key=lambda pair: (pair[1], pair[0])):
        total += count
        if chosen and total > limit:
            break
        chosen.append(term)
    return chosen


def rank_bm25(
    found: Sequence[Sequence[bytes]],
    collection: Collection,
    *,
    before_turn: int,
    neighbour_share: float,
    recency: float,
    most: int,
) -> list[int]:
    """Return the turns with the highest scores, the best first; of equals, the later.

    Args:
        found: the postings of each term of the question.
        collection: the counts of the archive.
        before_turn: that turn and later ones are left out.
        neighbour_share: the share of its better neighbour's score that is added to a turn's own.
        recency: the bonus of the newest turn over the first, as a share of its score.
        most: how many turns to return at most.
    """
    import numpy as np

    posting = np.dtype([("turn", "<u4"), ("count", "<u2"), ("length", "<u2")])
    read = [np.frombuffer(b"".join(blocks), posting) for blocks in found]
    # An element for each turn from 0, and one more at each end for the neighbours.
    size = max((int(postings["turn"].max(initial=0)) for postings in read), default=0)
    scores = np.zeros(size + 4)
    for postings in read:
        count = postings["count"].astype(np.float64)
        lengths = postings["length"] * (collection.turns / max(1, collection.terms))
        spread = K1 * (1 - B + B * lengths)
        rarity = math.log1p((collection.turns - len(count) + 0.5) / (len(count) + 0.5))
        scores[postings["turn"] + 1] += rarity * count / (count + spread)
    scores[1:-1] += neighbour_share * np.maximum(scores[:-2], scores[2:])
    scores *= 1 + recency * np.arange(len(scores)) / len(scores)
    ranked = scores[1 : 1 + max(0, min(before_turn, size + 2))]
    candidates = np.flatnonzero(ranked > 0)
    if len(candidates) > most:
        least = np.partition(ranked[candidates], -most)[-most]
        candidates = candidates[ranked[candidates] >= least]
    order = np.lexsort((-candidates, -ranked[candidates]))
    return [int(turn) for turn in candidates[order][:most]]

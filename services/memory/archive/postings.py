"""Which turns a term comes up in, packed, and how well turns fit a question by BM25.

A posting is eight bytes: the turn, how often the term comes up in it, and how many terms
the turn has. The postings of a term are kept in blocks by turn, so that a new turn
rewrites little; a question reads the blocks of its terms and no others.
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
# What BM25 leaves open: how fast more of a term counts for less, and how far long turns
# are held to have more terms just because they are long.
K1 = 1.2
B = 0.4


class Collection(NamedTuple):
    """All that is archived of a memory: how many turns, and of how many terms together."""

    turns: int
    terms: int


def pack(turn: int, count: int, length: int) -> bytes:
    """Return the posting of a term that comes up `count` times in a turn of `length` terms."""
    return _POSTING.pack(turn, min(count, _MOST), min(length, _MOST))


def keep_before(packed: bytes, first_turn: int) -> bytes:
    """Leave out the postings of `first_turn` and later."""
    return b"".join(
        _POSTING.pack(*posting)
        for posting in _POSTING.iter_unpack(packed)
        if posting[0] < first_turn
    )


def select_rarest(found: Mapping[int, int], most: int) -> list[int]:
    """Choose the terms to rank by: the rarest, of `most` postings together.

    Args:
        found: how many turns each term of a question comes up in, by its key.
        most: postings to read; the rarest term is taken however many it has.
    """
    chosen: list[int] = []
    total = 0
    for term, count in sorted(found.items(), key=lambda pair: (pair[1], pair[0])):
        total += count
        if chosen and total > most:
            break
        chosen.append(term)
    return chosen


def rank_bm25(
    found: Sequence[Sequence[bytes]],
    collection: Collection,
    *,
    before_turn: int,
    beside: float,
    recency: float,
    most: int,
) -> list[int]:
    """Return the turns that fit best, the best first; of equals, the later.

    Args:
        found: the postings of each term of the question.
        collection: what the postings are of.
        before_turn: that turn and later ones stay out.
        beside: what share of its neighbour's score a turn gets on top of its own.
        recency: what the newest turn gains over the first, as a share of its score.
        most: how many turns to give.
    """
    import numpy as np

    posting = np.dtype([("turn", "<u4"), ("count", "<u2"), ("length", "<u2")])
    read = [np.frombuffer(b"".join(blocks), posting) for blocks in found]
    # A place for each turn from 0, with two more for the neighbours of the first and last.
    size = max((int(postings["turn"].max(initial=0)) for postings in read), default=0)
    scores = np.zeros(size + 4)
    for postings in read:
        count = postings["count"].astype(np.float64)
        lengths = postings["length"] * (collection.turns / max(1, collection.terms))
        spread = K1 * (1 - B + B * lengths)
        rarity = math.log1p((collection.turns - len(count) + 0.5) / (len(count) + 0.5))
        scores[postings["turn"] + 1] += rarity * count / (count + spread)
    scores[1:-1] += beside * np.maximum(scores[:-2], scores[2:])
    scores *= 1 + recency * np.arange(len(scores)) / len(scores)
    ranked = scores[1 : 1 + max(0, min(before_turn, size + 2))]
    candidates = np.flatnonzero(ranked > 0)
    if len(candidates) > most:
        least = np.partition(ranked[candidates], -most)[-most]
        candidates = candidates[ranked[candidates] >= least]
    order = np.lexsort((-candidates, -ranked[candidates]))
    return [int(turn) for turn in candidates[order][:most]]

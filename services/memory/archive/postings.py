"""Packed postings of terms, and the scores of turns by BM25F. Pure.

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
# The weights of the turns before and after a turn, whose own is 1.
PREVIOUS = 0.5
NEXT = 0.3


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


def score_bm25f(
    found: Sequence[Sequence[bytes]],
    collection: Collection,
    *,
    before_turn: int,
    recency: float,
    most: int,
) -> dict[int, float]:
    """Return the turns with the highest scores; of equals, the later.

    BM25F (Robertson, Zaragoza and Taylor 2004) whose fields are the turn, the one before it and
    the one after: an answer need not repeat the words of its question. The frequencies of a term
    are added up over the fields, and the document frequency counts every turn that has the term
    in one of them.

    Args:
        found: the postings of each term of the question.
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
    mean_length = max(1, collection.terms) / collection.turns
    for postings in read:
        turns = postings["turn"].astype(np.int64) + 1
        own = postings["count"] / (1 - B + B * postings["length"] / mean_length)
        frequencies[turns] = own
        frequencies[turns + 1] += PREVIOUS * own
        if not recency:
            # Else a turn would gain from a newer one, which the question asks for.
            frequencies[turns - 1] += NEXT * own
        reached = np.unique(np.concatenate([turns - 1, turns, turns + 1]))
        weighted = frequencies[reached]
        # Neighbours of turns at the ends of the archive may not be in it.
        having = min(len(reached), collection.turns)
        rarity = math.log1p((collection.turns - having + 0.5) / (having + 0.5))
        scores[reached] += rarity * weighted / (K1 + weighted)
        frequencies[reached] = 0
    if recency:
        scores *= 1 + recency * np.arange(len(scores)) / len(scores)
    ranked = scores[1 : 1 + max(0, min(before_turn, size + 2))]
    candidates = np.flatnonzero(ranked > 0)
    if len(candidates) > most:
        least = np.partition(ranked[candidates], -most)[-most]
        candidates = candidates[ranked[candidates] >= least]
    order = np.lexsort((-candidates, -ranked[candidates]))
    return {int(turn): float(ranked[turn]) for turn in candidates[order][:most]}

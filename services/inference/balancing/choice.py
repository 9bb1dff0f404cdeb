"""The order in which the deployments of a model are asked. Pure.

Each deployment draws a number, and the one with the largest `rank` is first. Of random draws that
is a weighted random choice (Efraimidis and Spirakis, 2006); of draws that are hashes of the
deployment and of the conversation it is weighted rendezvous hashing: of a deployment that leaves,
only its own conversations move, each to the next in its own order.

Where loads are compared, the first two are, and the less loaded one is asked: with the power of
two choices (Mitzenmacher, 2001) processes that see different loads do not all choose alike.
"""

import math
from collections.abc import Sequence
from hashlib import blake2b

# A conversation leaves its deployment for the next one where that has half the load, or less.
STICKY_SLACK = 2.0

_DRAWS = 1 << 53  # as many as a float between 0 and 1 tells apart


def draw(affinity: bytes, deployment: str) -> float:
    """Return the draw of a deployment for a conversation, above 0 and below 1.

    Args:
        affinity: at most 64 bytes that stand for the conversation.
        deployment: a name of the deployment, the same in all processes.
    """
    digest = blake2b(deployment.encode(), digest_size=8, key=affinity).digest()
    return (int.from_bytes(digest) % (_DRAWS - 1) + 1) / _DRAWS


def rank(drawn: float, weight: float) -> float:
    """Return how early a deployment comes; 0 without weight.

    The probability that it has the largest rank is its share of all weights.
    """
    # As good as the n-th root of the draw, without its underflow at small weights.
    return -weight / math.log(min(max(drawn, 1 / _DRAWS), 1 - 1 / _DRAWS))


def ordered(
    draws: Sequence[float],
    weights: Sequence[float],
    waits: Sequence[float],
    loads: Sequence[float] | None = None,
    slack: float = 1.0,
) -> list[int]:
    """Return the indexes of deployments in the order in which they are asked.

    Args:
        draws: of each deployment, between 0 and 1.
        weights: their shares.
        waits: seconds until each is free; 0 for one that is. Free ones come before others, and of
            the others those that are free again first.
        loads: their loads; None where they are not compared.
        slack: how many times the load of the second the first may have and stay first.
    """
    order = sorted(
        range(len(draws)), key=lambda index: (waits[index], -rank(draws[index], weights[index]))
    )
    if loads is not None and len(order) > 1:
        first, second = order[:2]
        if not waits[second] and weights[second] and loads[first] > slack * loads[second]:
            order[:2] = second, first
    return order

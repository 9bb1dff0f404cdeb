"""The order in which the deployments of a model are called. Pure.

Each deployment draws a number, and the one with the largest `rank` is first. With random draws this
is a weighted random choice (Efraimidis and Spirakis, 2006). With hashes of the deployment and the
conversation it is weighted rendezvous hashing: if a deployment leaves, only its own conversations
move, each to the next deployment in its own order.

If loads are compared, only those of the first two are, and the less loaded one is called (power of
two choices, Mitzenmacher, 2001): processes do not all choose the same deployment.
"""

import math
from collections.abc import Sequence
from hashlib import blake2b

# A conversation moves to the next deployment if that has less than half the load.
STICKY_SLACK = 2.0

_DRAWS = 1 << 53  # the resolution of a float between 0 and 1


def draw(affinity: bytes, deployment: str) -> float:
    """Return the draw of a deployment for a conversation, above 0 and below 1.

    Args:
        affinity: the affinity key of the conversation, at most 64 bytes.
        deployment: a name of the deployment that is the same in all processes.
    """
    digest = blake2b(deployment.encode(), digest_size=8, key=affinity).digest()
    return (int.from_bytes(digest) % (_DRAWS - 1) + 1) / _DRAWS


def rank(drawn: float, weight: float) -> float:
    """Return the rank of a deployment, which is 0 if its weight is 0.

    The probability that a deployment has the largest rank is its share of all weights.
    """
    # Orders like `drawn ** (1 / weight)`, without its underflow at small weights.
    return -weight / math.log(min(max(drawn, 1 / _DRAWS), 1 - 1 / _DRAWS))


def ordered(
    draws: Sequence[float],
    weights: Sequence[float],
    waits: Sequence[float],
    loads: Sequence[float] | None = None,
    slack: float = 1.0,
) -> list[int]:
    """Return the indexes of deployments in the order in which they are called.

    Args:
        draws: the draw of each deployment, between 0 and 1.
        weights: the weights of the deployments.
        waits: seconds until each deployment is free, which is the first sort key; 0 if it is free.
        loads: the loads of the deployments; None if they are not compared.
        slack: the first deployment stays first up to this multiple of the second one's load.
    """
    order = sorted(
        range(len(draws)), key=lambda index: (waits[index], -rank(draws[index], weights[index]))
    )
    if loads is not None and len(order) > 1:
        first, second = order[:2]
        if not waits[second] and weights[second] and loads[first] > slack * loads[second]:
            order[:2] = second, first
    return order

"""Fusion of the scores of two searches. Pure."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

# The share of the vectors in a fused score.
ALPHA = 0.2


def fuse_scores(
    lexical: Mapping[Key, float], cosine: Mapping[Key, float], alpha: float = ALPHA
) -> dict[Key, float]:
    """Return a convex combination of two scores for each turn that has one of them.

    `alpha` is the share of the vectors.

    Lexical scores are divided by their maximum, and cosine similarities are scaled to between 0
    and 1 (Bruch, Gai and Ingber 2023). A turn that has only one of them has 0 for the other.
    """
    if not cosine:
        return dict(lexical)
    best = max(lexical.values(), default=1.0)
    least, most = min(cosine.values()), max(cosine.values())
    spread = (most - least) or 1.0
    scores = {turn: alpha * (value - least) / spread for turn, value in cosine.items()}
    for turn, value in lexical.items():
        scores[turn] = scores.get(turn, 0.0) + (1 - alpha) * value / best
    return scores

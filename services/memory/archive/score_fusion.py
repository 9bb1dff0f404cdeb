"""Fusion of the scores of two searches. Pure."""

from collections.abc import Mapping

# The share of the vectors in a fused score.
ALPHA = 0.2


def fuse_scores(lexical: Mapping[int, float], cosine: Mapping[int, float]) -> dict[int, float]:
    """Return a convex combination of two scores for each turn that has one of them.

    Lexical scores are divided by their maximum, and cosine similarities are scaled to between 0
    and 1 (Bruch, Gai and Ingber 2023). A turn that has only one of them has 0 for the other.
    """
    if not cosine:
        return dict(lexical)
    best = max(lexical.values(), default=1.0)
    least, most = min(cosine.values()), max(cosine.values())
    spread = (most - least) or 1.0
    scores = {turn: ALPHA * (value - least) / spread for turn, value in cosine.items()}
    for turn, value in lexical.items():
        scores[turn] = scores.get(turn, 0.0) + (1 - ALPHA) * value / best
    return scores

"""Fusion of several rankings into one. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

# The constant of reciprocal rank fusion: the larger, the less the first ranks stand out.
_RANK_OFFSET = 2
# The share of the best other turn of a session that is added to a turn's score.
_SESSION_BONUS = 0.05


class TurnTime(NamedTuple):
    """The time of a turn, and the first turn of its session."""

    created_at_ms: int
    session: int


def reciprocal_rank_fusion(lists: Sequence[Sequence[int]]) -> dict[int, float]:
    """Return the fused scores of turns, 1 for a turn that is first in all lists."""
    scores: dict[int, float] = {}
    for turns in lists:
        for rank, turn in enumerate(turns):
            score = _RANK_OFFSET / (_RANK_OFFSET + rank) / len(lists)
            scores[turn] = scores.get(turn, 0.0) + score
    return scores


def rank_with_sessions(
    scores: Mapping[int, float], times: Mapping[int, TurnTime]
) -> list[tuple[int, float]]:
    """Return turns with their scores, the best first; of equals the later.

    A turn gains from the best other turn of its session.

    Args:
        scores: those of `reciprocal_rank_fusion`.
        times: the times of turns; turns that are missing are left out.
    """
    there = {turn: score for turn, score in scores.items() if turn in times}
    sessions: dict[int, list[float]] = {}
    for turn, score in there.items():
        sessions.setdefault(times[turn].session, []).append(score)
    best_two = {session: sorted(held)[-2:] for session, held in sessions.items()}

    def gained(turn: int, score: float) -> float:
        *second, first = best_two[times[turn].session]
        other = (second[0] if second else 0.0) if score == first else first
        return score + _SESSION_BONUS * other

    found = [(turn, gained(turn, score)) for turn, score in there.items()]
    return sorted(found, key=lambda pair: (-pair[1], -pair[0]))

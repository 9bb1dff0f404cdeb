"""Brings what was found in several ways into one order."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

# How little the first places of a list stand out from those after them.
_RANK_OFFSET = 2
# What the best other turn of a session adds to a turn's score, as a share of its own.
_SESSION_BONUS = 0.05


class TurnTime(NamedTuple):
    """When a turn was said, and the first turn of the session in which it was."""

    created_at_ms: int
    session: int


def reciprocal_rank_fusion(lists: Sequence[Sequence[int]]) -> dict[int, float]:
    """Score the turns of some lists by their ranks in them, 1 for the first in all."""
    scores: dict[int, float] = {}
    for turns in lists:
        for rank, turn in enumerate(turns):
            score = _RANK_OFFSET / (_RANK_OFFSET + rank) / len(lists)
            scores[turn] = scores.get(turn, 0.0) + score
    return scores


def rank_with_sessions(
    scores: Mapping[int, float], said: Mapping[int, TurnTime]
) -> list[tuple[int, float]]:
    """Order turns, the best first; of equals the later.

    A turn gains from others of its session.

    Args:
        scores: as `fused` gives them.
        said: when; a turn that is not there is left out.
    """
    there = {turn: score for turn, score in scores.items() if turn in said}
    sessions: dict[int, list[float]] = {}
    for turn, score in there.items():
        sessions.setdefault(said[turn].session, []).append(score)
    best_two = {session: sorted(held)[-2:] for session, held in sessions.items()}

    def gained(turn: int, score: float) -> float:
        *second, first = best_two[said[turn].session]
        other = (second[0] if second else 0.0) if score == first else first
        return score + _SESSION_BONUS * other

    found = [(turn, gained(turn, score)) for turn, score in there.items()]
    return sorted(found, key=lambda pair: (-pair[1], -pair[0]))

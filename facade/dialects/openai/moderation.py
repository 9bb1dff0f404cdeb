"""The field `moderation` of OpenAI's dialects. Pure."""

from typing import Any


def blocks_by_moderation(moderation: Any) -> bool:
    """Return whether moderation is to block an input or an answer, and not only to rate it.

    Only OpenAI's servers can; any other answer would be one that its caller asked to be blocked.
    """
    policy = moderation.get("policy") if isinstance(moderation, dict) else None
    sides = policy.values() if isinstance(policy, dict) else ()
    return any(isinstance(side, dict) and side.get("mode") == "block" for side in sides)

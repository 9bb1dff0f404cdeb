"""Whole answers that are passed to a caller of Google's dialect as they are. Pure."""

import orjson

from gateway.conversation.v1.conversation_pb2 import DIALECT_GEMINI
from services.common.messages.passthrough_answer import PassthroughAnswer
from services.inference.providers.gemini.usage import (
    billed_usage,
    highest_counts,
    search_count,
    usage_of,
)

_ENDS = frozenset({"STOP", "MAX_TOKENS"})


def passthrough_answer(body: bytes, n: int, upstream: str) -> PassthroughAnswer | None:
    """Return a whole answer to pass through; None if it must be read part by part.

    Only answers whose candidates all have parts and a usual end.

    Args:
        body: the response.
        n: number of requested candidates.
        upstream: the provider's name for the model.
    """
    try:
        answer = orjson.loads(body)
        counts = highest_counts({}, answer["usageMetadata"])
        candidates = answer["candidates"]
        if len(candidates) != n or not all(map(_has_ended, candidates)):
            return None
        usage = usage_of(counts)
        # Counts that are billed separately; the caller is sent the body.
        usage.extra.dialect = DIALECT_GEMINI
        usage.extra.json = billed_usage(answer["usageMetadata"], search_count(candidates, upstream))
        return PassthroughAnswer(body, usage)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def _has_ended(candidate: object) -> bool:
    match candidate:
        case {"content": {"parts": [_, *_] as parts}, "finishReason": str(reason)}:
            return reason in _ENDS and all(isinstance(part, dict) and part for part in parts)
    return False

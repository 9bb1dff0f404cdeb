"""Token counts of Gemini's answers. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.conversation.v1.conversation_pb2 import Usage
from services.inference.providers.bounds import dump, tokens
from services.inference.providers.googles_models import is_before_3

Json = dict[str, Any]

BILLED = "server_tool_use"

_COUNTS = (
    *("promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount"),
    *("candidatesTokenCount", "thoughtsTokenCount"),
)


def highest_counts(before: Mapping[str, Any], usage: Mapping[str, Any]) -> Json:
    """Return the counts of usage, each the highest so far: they never fall, and some are left out.

    Raises:
        ValueError: a count is invalid.
    """
    reports = (before, usage)
    return {name: max(tokens(one.get(name) or 0) for one in reports) for name in _COUNTS}


def billed_usage(reported: Mapping[str, Any], searches: int) -> bytes:
    """Return usage as reported, as JSON, with the field from which searches are priced.

    See `pricing.counts`.
    """
    if not searches:
        return dump(reported)
    return dump({**reported, BILLED: {"web_search_requests": searches}})


def search_count(candidates: Iterable[Mapping[str, Any]], upstream: str) -> int:
    """Return the number of searches that Google bills for candidates."""
    count = 0
    for candidate in candidates:
        queries = (candidate.get("groundingMetadata") or {}).get("webSearchQueries")
        count += len(queries) if isinstance(queries, list) else 0
    return billed_count(count, upstream)


def billed_count(searches: int, upstream: str) -> int:
    """Return the number of billed searches: before Gemini 3, those of a request are one."""
    return min(searches, 1) if is_before_3(upstream) else searches


def usage_of(counts: Mapping[str, Any]) -> Usage:
    """Return the usage; Google counts cached tokens in the prompt, and thoughts separately."""
    cached, thoughts = counts["cachedContentTokenCount"], counts["thoughtsTokenCount"]
    read = counts["promptTokenCount"] + counts["toolUsePromptTokenCount"]
    return Usage(
        input_tokens=max(0, read - cached),
        output_tokens=counts["candidatesTokenCount"] + thoughts,
        cache_read_input_tokens=cached,
        reasoning_tokens=thoughts,
    )

"""Token counts of Gemini's answers. Pure."""

from collections.abc import Mapping
from typing import Any

from gateway.conversation.v1.conversation_pb2 import Usage
from services.inference.providers.bounds import tokens

Json = dict[str, Any]

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


def billed_searches(count: int) -> Json:
    """Return the field from which searches are priced; see `pricing.counts`."""
    return {"server_tool_use": {"web_search_requests": count}}


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

"""Counts of billed units, from the usage that a provider reports. Pure.

The canonical usage has tokens by their place in the conversation. Counts that are billed separately
are in its `extra` field, under each API's own names: tokens of audio, images and videos, cache
writes with a lifetime of an hour, web searches, and the length of recordings. Adapters add the
images that were made, and the characters that were spoken.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import Usage
from services.inference.pricing.price import Counts, Unit

# Fields of `extra` in which providers' adapters count what no provider reports.
IMAGES = "generated_images"
CHARACTERS = "spoken_characters"
_MOST = 2**53
_MOST_SECONDS = 10**9
# Matches an `extra` with such counts. Most have none, and are not parsed.
_BILLED_APART = re.compile(
    rb'(?:1h_input_tokens|web_search_requests|audio_tokens|image_tokens)" ?: ?[1-9]|okensDetails"'
    rb'|"seconds" ?: ?[0-9]|"(?:generated_images|spoken_characters)" ?: ?[1-9]'
)

# Gemini's names of media.
_INPUT_MEDIA = {"AUDIO": Unit.INPUT_AUDIO, "IMAGE": Unit.INPUT_IMAGE, "VIDEO": Unit.INPUT_VIDEO}
_CACHED_MEDIA = {"AUDIO": Unit.CACHED_AUDIO, "IMAGE": Unit.CACHED_IMAGE}
_OUTPUT_MEDIA = {
    "AUDIO": Unit.OUTPUT_AUDIO,
    "IMAGE": Unit.OUTPUT_IMAGE,
    "VIDEO": Unit.OUTPUT_VIDEO,
}


def counts_of(usage: Usage) -> Counts:
    """Return the billed units of an answer with this usage."""
    return counts_from(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
        usage.reasoning_tokens,
        counts_of_other_units(usage),
    )


def counts_from(
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int,
    cache_write_tokens: int,
    reasoning_tokens: int,
    other_units: Counts,
) -> Counts:
    """Return the billed units for tokens of the canonical usage.

    Args:
        input_tokens: input tokens that were neither read from a cache nor written to one.
        output_tokens: output tokens.
        cache_read_tokens: input tokens read from the cache.
        cache_write_tokens: input tokens written to the cache.
        reasoning_tokens: reasoning tokens, included in `output_tokens`.
        other_units: counts that are billed separately; its tokens are included above. See
            `counts_of_other_units`.
    """
    if not other_units:
        thoughts = min(reasoning_tokens, output_tokens)
        return {
            Unit.INPUT: input_tokens,
            Unit.OUTPUT: output_tokens - thoughts,
            Unit.CACHED_INPUT: cache_read_tokens,
            Unit.CACHE_WRITE: cache_write_tokens,
            Unit.REASONING: thoughts,
        }
    counts: dict[Unit, int] = {}
    other_units = dict(other_units)
    _take(
        counts,
        cache_write_tokens,
        Unit.CACHE_WRITE,
        {Unit.CACHE_WRITE_1H: other_units.pop(Unit.CACHE_WRITE_1H, 0)},
    )
    _take(
        counts,
        cache_read_tokens,
        Unit.CACHED_INPUT,
        {unit: other_units.pop(unit, 0) for unit in _CACHED_MEDIA.values()},
    )
    _take(
        counts,
        input_tokens,
        Unit.INPUT,
        {unit: other_units.pop(unit, 0) for unit in _INPUT_MEDIA.values()},
    )
    media = {unit: other_units.pop(unit, 0) for unit in _OUTPUT_MEDIA.values()}
    _take(counts, output_tokens, Unit.OUTPUT, {Unit.REASONING: reasoning_tokens} | media)
    return {unit: count for unit, count in (counts | other_units).items() if count}


def _take(counts: dict[Unit, int], tokens: int, remainder: Unit, parts: Mapping[Unit, int]) -> None:
    """Divide tokens among the units of `parts`; those that remain are of the unit `remainder`."""
    for unit, part_tokens in parts.items():
        part = min(part_tokens, tokens)
        counts[unit] = part
        tokens -= part
    counts[remainder] = tokens


def counts_of_other_units(usage: Usage) -> Counts:
    """Return the separately billed counts in the `extra` field of a usage."""
    if not usage.HasField("extra") or _BILLED_APART.search(usage.extra.json) is None:
        return {}
    try:
        usage_json = orjson.loads(usage.extra.json)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(usage_json, dict):
        return {}
    counts = {
        # Anthropic
        Unit.CACHE_WRITE_1H: _number(usage_json, "cache_creation", "ephemeral_1h_input_tokens"),
        Unit.WEB_SEARCH: _number(usage_json, "server_tool_use", "web_search_requests"),
        # OpenAI
        Unit.INPUT_AUDIO: _number(usage_json, "prompt_tokens_details", "audio_tokens"),
        Unit.INPUT_IMAGE: _number(usage_json, "prompt_tokens_details", "image_tokens"),
        Unit.OUTPUT_AUDIO: _number(usage_json, "completion_tokens_details", "audio_tokens"),
        Unit.OUTPUT_IMAGE: _number(usage_json, "completion_tokens_details", "image_tokens"),
        Unit.AUDIO_HOUR: _milliseconds(usage_json),
        # The gateway's own
        Unit.IMAGE: _number(usage_json, IMAGES),
        Unit.CHARACTER: _number(usage_json, CHARACTERS),
    }
    # Gemini
    _add_media(counts, usage_json.get("promptTokensDetails"), _INPUT_MEDIA)
    _add_media(counts, usage_json.get("cacheTokensDetails"), _CACHED_MEDIA)
    _add_media(counts, usage_json.get("candidatesTokensDetails"), _OUTPUT_MEDIA)
    for medium, cached in _CACHED_MEDIA.items():
        # Prompt tokens include cached tokens.
        uncached = _INPUT_MEDIA[medium]
        counts[uncached] = max(0, counts[uncached] - counts.get(cached, 0))
    return {unit: count for unit, count in counts.items() if count}


def _number(usage_json: Mapping[str, Any], *path: str) -> int:
    value: Any = usage_json
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if type(value) is int and 0 <= value < _MOST else 0


def _milliseconds(usage_json: Mapping[str, Any]) -> int:
    """Return the length of a recording that a model has transcribed, as OpenAI reports it."""
    seconds = usage_json.get("seconds")
    if not isinstance(seconds, int | float) or not 0 < seconds < _MOST_SECONDS:
        return 0
    return round(seconds * 1000)


def _add_media(counts: dict[Unit, int], details: Any, units: Mapping[str, Unit]) -> None:
    """Add counts from one of Gemini's lists of tokens by modality."""
    for entry in details if isinstance(details, list) else ():
        unit = units.get(entry.get("modality", "")) if isinstance(entry, dict) else None
        if unit is not None:
            counts[unit] = counts.get(unit, 0) + _number(entry, "tokenCount")

"""Billed units of what providers report: no token is counted twice."""

import orjson

from gateway.conversation.v1.conversation_pb2 import Opaque, Usage
from services.inference.pricing.counts import counts_of
from services.inference.pricing.price import Unit


def of_gemini(**details: dict[str, int]) -> Opaque:
    """Return usage metadata with tokens by modality."""
    lists = {
        name: [{"modality": medium, "tokenCount": count} for medium, count in counts.items()]
        for name, counts in details.items()
    }
    return Opaque(json=orjson.dumps(lists))


def test_cached_media_are_not_counted_as_uncached_too() -> None:
    # Gemini's prompt tokens include cached ones: 50 and 30 of 100 and 80 were read from the cache.
    usage = Usage(
        input_tokens=1_100,
        cache_read_input_tokens=180,
        extra=of_gemini(
            promptTokensDetails={"TEXT": 1_100, "AUDIO": 100, "IMAGE": 80},
            cacheTokensDetails={"TEXT": 100, "AUDIO": 50, "IMAGE": 30},
        ),
    )
    assert counts_of(usage) == {
        Unit.INPUT: 1_000,
        Unit.INPUT_AUDIO: 50,
        Unit.INPUT_IMAGE: 50,
        Unit.CACHED_INPUT: 100,
        Unit.CACHED_AUDIO: 50,
        Unit.CACHED_IMAGE: 30,
    }


def test_media_that_are_all_cached_leave_none_uncached() -> None:
    usage = Usage(
        input_tokens=5,
        cache_read_input_tokens=60,
        extra=of_gemini(promptTokensDetails={"AUDIO": 50}, cacheTokensDetails={"AUDIO": 60}),
    )
    assert counts_of(usage) == {Unit.INPUT: 5, Unit.CACHED_AUDIO: 60}

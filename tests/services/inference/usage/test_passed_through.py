"""Separately billed tools are counted in answers that are passed through, too."""

import json
from typing import Any

from services.inference.pricing.counts import counts_of
from services.inference.pricing.price import Unit
from services.inference.providers.anthropic.passthrough import passthrough_answer as of_anthropic
from services.inference.providers.openai.passthrough import passthrough_answer as of_openai


def test_cache_writes_of_an_hour() -> None:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 1,
            "output_tokens": 2,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 100,
            "cache_creation": {"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 60},
        },
    }
    passed = of_anthropic(json.dumps(message).encode())
    assert passed is not None and passed.passthrough
    counts = counts_of(passed.response().usage)
    assert (counts[Unit.CACHE_WRITE], counts[Unit.CACHE_WRITE_1H]) == (40, 60)


def test_tokens_of_audio() -> None:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "Hi", "refusal": None},
        "logprobs": None,
        "finish_reason": "stop",
    }
    answer: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt",
        "choices": [choice],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 7},
        },
    }
    passed = of_openai(json.dumps(answer).encode(), 1)
    assert passed is not None and passed.passthrough
    counts = counts_of(passed.response().usage)
    assert (counts[Unit.INPUT], counts[Unit.INPUT_AUDIO]) == (3, 7)

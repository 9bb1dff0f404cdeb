"""Models in Format A."""

import json

import openai.types

from facade.dialects.openai import render_model, render_model_list
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.inference.v1.inference_pb2 import Model, TokenPrices

KNOWN = Model(
    name="fast",
    display_name="Fast",
    provider="openai",
    created_at=1_700_000_000,
    context_window=128_000,
    max_output_tokens=4_096,
    inputs=[conversation.MEDIA_KIND_IMAGE, conversation.MEDIA_KIND_DOCUMENT],
    tools=True,
    thinking=False,
    efforts=["low", "high"],
)
TOLD = {
    "id": "fast",
    "object": "model",
    "created": 1_700_000_000,
    "owned_by": "openai",
    "lifecycle": "active",
    "deprecated_at": None,
    "shutdown_date": None,
    "display_name": "Fast",
    "max_input_tokens": 128_000,
    "max_output_tokens": 4_096,
    "pricing": None,
    "context_length": 128_000,
    "top_provider": {"context_length": 128_000, "max_completion_tokens": 4_096},
    "architecture": {
        "input_modalities": ["text", "image", "file"],
        "output_modalities": ["text"],
    },
    "supported_parameters": [
        *("max_tokens", "tools", "tool_choice", "response_format", "structured_outputs"),
    ],
    "capabilities": {
        "inputs": ["text", "image", "pdf"],
        "tools": True,
        "thinking": False,
        "structured_output": None,
        "efforts": ["low", "high"],
        "prompt_caching": None,
        "batch": False,
    },
}


def test_a_model_has_its_known_facts() -> None:
    raw = render_model(KNOWN)
    assert json.loads(raw) == TOLD
    assert openai.types.Model.model_validate_json(raw, strict=True).id == "fast"


def test_prices_are_dollars_for_a_million_tokens() -> None:
    prices = TokenPrices(
        input=75_000, output=300_000, cached_input=7_500, cache_write=0, reasoning=1
    )
    told = json.loads(render_model(Model(prices=prices)))
    assert told["capabilities"]["prompt_caching"] is True
    assert told["pricing"] == {
        # OpenRouter's are of one token.
        "prompt": "0.000000075",
        "completion": "0.0000003",
        "input_cache_read": "0.0000000075",
        "input_cache_write": "0",
        "internal_reasoning": "0.000000000001",
        "input": "0.075",
        "output": "0.3",
        "cached_input": "0.0075",
        "cache_write": "0",
        "reasoning": "0.000001",
    }


def test_what_is_not_known_is_null() -> None:
    parsed = json.loads(render_model(Model(name="x", display_name="x", provider="p")))
    assert (parsed["max_input_tokens"], parsed["max_output_tokens"]) == (None, None)
    assert parsed["capabilities"]["inputs"] == ["text"]
    assert parsed["capabilities"]["tools"] is None


def test_every_medium_has_a_name() -> None:
    kinds = list(conversation.MediaKind.values())[1:]
    parsed = json.loads(render_model(Model(inputs=kinds)))
    assert parsed["capabilities"]["inputs"] == ["text", "image", "pdf", "audio", "video"]


def test_a_list_keeps_its_order() -> None:
    raw = json.loads(render_model_list([KNOWN, Model(name="a")]))
    assert raw["object"] == "list"
    assert [model["id"] for model in raw["data"]] == ["fast", "a"]
    assert raw["data"][0] == TOLD
    assert json.loads(render_model_list([])) == {"object": "list", "data": []}

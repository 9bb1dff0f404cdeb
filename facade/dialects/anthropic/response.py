"""Whole answers in Anthropic's format."""

from typing import Any

import orjson

from facade.dialects.anthropic.parts import (
    block_json,
    is_shown,
    message_id,
    own_fields,
    raw_json,
    stop_fields,
    usage_json,
)
from gateway.inference.v1.inference_pb2 import CountTokensResponse, GenerateResponse


def render_message(response: GenerateResponse) -> bytes:
    """Return the JSON of an answer."""
    choice = response.choices[0]
    refused = any(block.WhichOneof("kind") == "refusal" for block in choice.blocks)
    message: dict[str, Any] = {
        **own_fields(response.extra),
        "id": message_id(response.id),
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": [
            raw_json(block.opaque) if block.HasField("opaque") else block_json(block)
            for block in choice.blocks
            if is_shown(block)
        ],
        **stop_fields(choice.finish, refused),
        "usage": usage_json(response.usage),
    }
    return orjson.dumps(message)


def render_count(response: CountTokensResponse) -> bytes:
    """Return the JSON of a token count."""
    return orjson.dumps({"input_tokens": response.input_tokens})

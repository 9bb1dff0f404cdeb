"""Whole answers in Anthropic's format."""

from typing import Any

import orjson

from facade.dialects.anthropic.parts import (
    block_json,
    is_shown,
    message_id,
    own_extra,
    raw_json,
    stop_fields,
    usage_json,
)
from gateway.inference.v1.inference_pb2 import CountTokensResponse, GenerateResponse


def render_message(response: GenerateResponse) -> bytes:
    """Return the JSON of an answer."""
    choice = response.choices[0]
    content: list[dict[str, Any] | orjson.Fragment | None] = []
    refused = False
    for block in choice.blocks:
        kind = block.WhichOneof("kind")
        refused = refused or kind == "refusal"
        if kind == "text" and not (block.HasField("extra") or block.citations):
            # Nearly all blocks are like this.
            if text := block.text:
                content.append({"type": "text", "text": text})
        elif is_shown(block):
            content.append(raw_json(block.opaque) if kind == "opaque" else block_json(block))
    message: dict[str, Any] = {
        **own_extra(response),
        "id": message_id(response.id),
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": content,
        **stop_fields(choice.finish, refused),
        "usage": usage_json(response.usage),
    }
    return orjson.dumps(message)


def render_count(response: CountTokensResponse) -> bytes:
    """Return the JSON of a token count."""
    return orjson.dumps({"input_tokens": response.input_tokens})

"""Whole answers in Anthropic's format."""

from typing import Any

import orjson

from facade.dialects.anthropic.parts import (
    block_json,
    is_shown,
    message_id,
    native_extra,
    raw_json,
    stop_fields,
    usage_json,
)
from gateway.inference.v1.inference_pb2 import Choice, CountTokensResponse, GenerateResponse
from services.common.messages.plain_answer import PlainAnswer


def render_message(response: GenerateResponse | PlainAnswer) -> bytes:
    """Return the JSON of an answer."""
    content: list[dict[str, Any] | orjson.Fragment | None]
    if isinstance(response, PlainAnswer):
        first_choice = response.choices[0]
        content, stop = (
            [{"type": "text", "text": first_choice.text}],
            stop_fields(first_choice, False),
        )
        further = {}
    else:
        choice = response.choices[0]
        refused = any(block.HasField("refusal") for block in choice.blocks)
        content, stop = _content(choice), stop_fields(choice.finish, refused)
        further = native_extra(response)
    message: dict[str, Any] = {
        **further,
        "id": message_id(response.id),
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": content,
        **stop,
        "usage": usage_json(response.usage),
    }
    return orjson.dumps(message)


def _content(choice: Choice) -> list[dict[str, Any] | orjson.Fragment | None]:
    content: list[dict[str, Any] | orjson.Fragment | None] = []
    for block in choice.blocks:
        kind = block.WhichOneof("kind")
        if kind == "text" and not (block.HasField("extra") or block.citations):
            # Nearly all blocks are like this.
            if text := block.text:
                content.append({"type": "text", "text": text})
        elif is_shown(block):
            content.append(raw_json(block.opaque) if kind == "opaque" else block_json(block))
    return content


def render_count(response: CountTokensResponse) -> bytes:
    """Return the JSON of a token count."""
    return orjson.dumps({"input_tokens": response.input_tokens})

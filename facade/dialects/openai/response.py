"""Whole answers of the canonical model as chat completions, and the words streams share."""

from collections.abc import Iterable
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, FinishReason, Opaque, ToolUse, Usage
from gateway.inference.v1.inference_pb2 import Choice, GenerateResponse

ID_PREFIX = "chatcmpl-"

# A pause has no word here. Sending the answer back continues it, as after any other stop.
FINISH_REASONS: dict[FinishReason.ValueType, str] = {
    conversation.FINISH_REASON_END_TURN: "stop",
    conversation.FINISH_REASON_STOP_SEQUENCE: "stop",
    conversation.FINISH_REASON_PAUSE_TURN: "stop",
    conversation.FINISH_REASON_MAX_TOKENS: "length",
    conversation.FINISH_REASON_CONTEXT_WINDOW: "length",
    conversation.FINISH_REASON_TOOL_USE: "tool_calls",
    conversation.FINISH_REASON_REFUSAL: "content_filter",
}


def render_completion(response: GenerateResponse, created: int) -> bytes:
    """Write a whole answer as a `chat.completion`; `created` is in Unix seconds.

    Thinking is told as `reasoning_content`, as DeepSeek does; thoughts that only a
    provider can read, and blocks of another dialect, have no place here.
    """
    return orjson.dumps(
        {
            **unnamed(response.extra),
            "id": completion_id(response.id),
            "object": "chat.completion",
            "created": created,
            "model": response.model,
            "choices": [_choice(index, choice) for index, choice in enumerate(response.choices)],
            "usage": usage_object(response.usage),
        }
    )


def completion_id(upstream: str) -> str:
    """Give an answer's id as clients of this dialect expect it; one that is so stays."""
    return upstream if upstream.startswith(ID_PREFIX) else ID_PREFIX + upstream


def unnamed(extra: Opaque) -> dict[str, Any]:
    """Give the fields without a name in the canonical model, where this dialect wrote them."""
    if extra.dialect != conversation.DIALECT_OPENAI or not extra.json:
        return {}
    fields: dict[str, Any] = orjson.loads(extra.json)
    return fields


def tool_call(use: ToolUse, arguments: str) -> dict[str, Any]:
    """Give a tool call with the arguments, or the beginning of them, that are known."""
    if use.freeform:
        custom = {"name": use.name, "input": arguments}
        return {"id": use.id, "type": "custom", "custom": custom}
    function = {"name": use.name, "arguments": arguments}
    return {"id": use.id, "type": "function", "function": function}


def usage_object(usage: Usage) -> dict[str, Any]:
    """Give the usage; tokens read from a cache, or put into one, are part of the prompt's."""
    cached, cache_writes = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    prompt = usage.input_tokens + cached + cache_writes
    further = unnamed(usage.extra)
    return {
        **further,
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {
            **(further.get("prompt_tokens_details") or {}),
            "cached_tokens": cached,
            "cache_write_tokens": cache_writes,
        },
        "completion_tokens_details": {
            **(further.get("completion_tokens_details") or {}),
            "reasoning_tokens": usage.reasoning_tokens,
        },
    }


def _choice(index: int, choice: Choice) -> dict[str, Any]:
    return {
        **unnamed(choice.finish.extra),
        "index": index,
        "message": _message(choice.blocks),
        "logprobs": orjson.loads(choice.logprobs) if choice.logprobs else None,
        "finish_reason": FINISH_REASONS[choice.finish.reason],
    }


def _message(blocks: Iterable[Block]) -> dict[str, Any]:
    further: dict[str, Any] = {}
    texts: list[str] = []
    thoughts: list[str] = []
    refusals: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in blocks:
        match block.WhichOneof("kind"):
            case "text":
                texts.append(block.text)
                _gather(further, unnamed(block.extra))
            case "thinking":
                thoughts.append(block.thinking.text)
            case "refusal":
                refusals.append(block.refusal)
            case "tool_use":
                use = block.tool_use
                arguments = use.input if use.input or use.freeform else "{}"
                calls.append(unnamed(block.extra) | tool_call(use, arguments))
            case "opaque":
                _gather(further, unnamed(block.opaque))
    message = {
        **further,
        "role": "assistant",
        # Null says that something else was said instead.
        "content": None if not texts and (calls or refusals) else "".join(texts),
        "refusal": "".join(refusals) or None,
    }
    if reasoning := "".join(thoughts):
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return message


def _gather(into: dict[str, Any], fields: dict[str, Any]) -> None:
    """Add the fields of one block to those of the message: several blocks may tell pictures."""
    for name, value in fields.items():
        known = into.get(name)
        if isinstance(known, list) and isinstance(value, list):
            known.extend(value)
        elif isinstance(known, dict) and isinstance(value, dict):
            _gather(known, value)
        else:
            into[name] = value

"""Whole answers as chat completions, and parts shared with streams."""

from itertools import count
from typing import Any

import orjson

from facade.dialects.gateway_objects import helpers_json
from facade.dialects.openai.signed_thinking import DETAILS, EXTRA, SentThinking, is_signed
from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Citation,
    FinishReason,
    Opaque,
    Thinking,
    Usage,
)
from gateway.inference.v1.inference_pb2 import Choice, Finish, GenerateResponse
from services.common.messages.passthrough_answer import TokenCounts
from services.common.messages.plain_answer import PlainAnswer, PlainChoice

ID_PREFIX = "chatcmpl-"

# The dialect has no reason for a pause; the caller can continue by sending the answer back.
FINISH_REASONS: dict[FinishReason.ValueType, str] = {
    conversation.FINISH_REASON_END_TURN: "stop",
    conversation.FINISH_REASON_STOP_SEQUENCE: "stop",
    conversation.FINISH_REASON_PAUSE_TURN: "stop",
    conversation.FINISH_REASON_MAX_TOKENS: "length",
    conversation.FINISH_REASON_CONTEXT_WINDOW: "length",
    conversation.FINISH_REASON_TOOL_USE: "tool_calls",
    conversation.FINISH_REASON_REFUSAL: "content_filter",
}


def render_completion(response: GenerateResponse | PlainAnswer, created: int) -> bytes:
    """Return an answer as `chat.completion`; `created` is in Unix seconds.

    Thinking is sent as `reasoning_content`, as by DeepSeek, and also under the provider's own name;
    signed or encrypted thinking also as `signed_thinking` has it. Blocks of another dialect are
    left out.
    """
    return orjson.dumps(completion(response, created))


def completion(response: GenerateResponse | PlainAnswer, created: int) -> dict[str, Any]:
    """Return the object that `render_completion` serializes."""
    return {
        **({} if isinstance(response, PlainAnswer) else _extra(response)),
        "id": completion_id(response.id),
        "object": "chat.completion",
        "created": created,
        "model": response.model,
        "choices": list(map(_choice, count(), response.choices)),
        "usage": usage_object(response.usage),
    }


def completion_id(upstream: str) -> str:
    """Return an answer's id with the prefix that clients of this dialect expect."""
    return upstream if upstream.startswith(ID_PREFIX) else ID_PREFIX + upstream


def native_fields(extra: Opaque) -> dict[str, Any]:
    """Return the unknown fields of an opaque object; none if it is of another dialect."""
    if extra.dialect != conversation.DIALECT_OPENAI or not extra.json:
        return {}
    fields: dict[str, Any] = orjson.loads(extra.json)
    return fields


def _extra(holder: GenerateResponse | Choice | Finish | Usage) -> dict[str, Any]:
    """Return the unknown fields of an answer, or of part of it.

    `HasField` is faster than reading an absent message.
    """
    return native_fields(holder.extra) if holder.HasField("extra") else {}


def tool_call(block: Block, arguments: str) -> dict[str, Any]:
    """Return a tool call with its arguments, or the beginning of them."""
    use, further = block.tool_use, native_fields(block.extra)
    kind, field = ("custom", "input") if use.freeform else ("function", "arguments")
    inner = further.get(kind)
    called = {**(inner if isinstance(inner, dict) else {}), "name": use.name, field: arguments}
    return {**further, "id": use.id, "type": kind, kind: called}


def reasoning_fields(thinking: Thinking, text: str) -> dict[str, Any]:
    """Return the fields for a text of a thinking block."""
    fields: dict[str, Any] = {"reasoning_content": text}
    if thinking.field and thinking.field != DETAILS:
        fields[thinking.field] = text
    return fields


def with_thinking(fields: dict[str, Any], sent: SentThinking) -> dict[str, Any]:
    """Return a call or a message with the signed thinking since the last call."""
    return fields | sent.take(fields.get(EXTRA))


def annotation(citation: Citation, before: int) -> dict[str, Any]:
    """Return a citation of a text after `before` characters of the message."""
    return {
        "type": "url_citation",
        "url_citation": {
            "start_index": before + citation.start_index,
            "end_index": before + citation.end_index,
            "url": citation.url,
            "title": citation.title,
        },
    }


def usage_object(usage: Usage | TokenCounts) -> dict[str, Any]:
    """Return the usage; cache reads and writes count as prompt tokens."""
    cached, cache_writes = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    prompt = usage.input_tokens + cached + cache_writes
    further: dict[str, Any] = {}
    if isinstance(usage, Usage):
        further = _extra(usage)
        if usage.helpers:
            further["gateway"] = {"helpers": helpers_json(usage.helpers)}
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


def _choice(index: int, choice: Choice | PlainChoice) -> dict[str, Any]:
    further: dict[str, Any] = {}
    logprobs = None
    if isinstance(choice, PlainChoice):
        message, reason = _assistant_message(choice.text), choice.reason
    else:
        message, reason = _text_message(choice) or _message(choice), choice.finish.reason
        further = _extra(choice.finish)
        logprobs = orjson.loads(choice.logprobs) if choice.logprobs else None
    return {
        **further,
        "index": index,
        "message": message,
        "logprobs": logprobs,
        "finish_reason": FINISH_REASONS[reason],
    }


def _text_message(choice: Choice) -> dict[str, Any] | None:
    """Return the message if it is a single text, as nearly all are; None for any other."""
    blocks = choice.blocks
    if len(blocks) != 1 or choice.HasField("extra"):
        return None
    block = blocks[0]
    if block.HasField("extra") or block.citations or not block.HasField("text"):
        return None
    return _assistant_message(block.text)


def _assistant_message(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "refusal": None}


def _message(choice: Choice) -> dict[str, Any]:
    further = _extra(choice)
    parts: list[dict[str, Any]] = []
    texts: list[str] = []
    refusals: list[str] = []
    annotations: list[dict[str, Any]] = []
    length = 0  # characters of the texts
    for block in choice.blocks:
        match block.WhichOneof("kind"):
            case "text":
                annotations += [annotation(one, length) for one in block.citations]
                length += len(block.text)
                texts.append(block.text)
                parts.append({"type": "text", "text": block.text})
                further |= native_fields(block.extra)
            case "refusal":
                refusals.append(block.refusal)
            case "opaque" if part := native_fields(block.opaque):
                parts.append(part)
    led = _thinking_and_calls(choice)
    said_otherwise = bool("tool_calls" in led or refusals or choice.extra.json)
    content: Any = "".join(texts)
    if len(parts) > len(texts):
        content = parts
    elif said_otherwise and not texts:
        content = None
    message = {
        **further,
        "role": "assistant",
        # Content is null if there is other output.
        "content": content,
        "refusal": "".join(refusals) or None,
    }
    if annotations:
        message["annotations"] = annotations
    return message | led


def _thinking_and_calls(choice: Choice) -> dict[str, Any]:
    """Return the fields of a message for its thinking and its calls; none without any."""
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    details: list[dict[str, Any]] = []
    last, sent = Thinking(), SentThinking()
    for block in choice.blocks:
        if block.HasField("tool_use"):
            use = block.tool_use
            arguments = use.input if use.input or use.freeform else "{}"
            calls.append(with_thinking(tool_call(block, arguments), sent))
        elif is_signed(block):
            details += sent.begin(block)[DETAILS]
            sent.end()
        if block.HasField("thinking"):
            last = block.thinking
            thoughts.append(last.text)
    fields: dict[str, Any] = {}
    if reasoning := "".join(thoughts):
        fields |= reasoning_fields(last, reasoning)
    if details:
        fields[DETAILS] = details
    if calls:
        fields["tool_calls"] = calls
    return with_thinking(fields, sent)

"""Bodies of Converse as Anthropic's messages, and messages as answers of Converse."""

import binascii
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

Json = dict[str, Any]

_MIME_TYPES = {"pdf": "application/pdf", "jpeg": "image/jpeg"}
_REASONS = {"refusal": "guardrail_intervened"}


def to_messages(body: Mapping[str, Any]) -> Json:
    """Return a valid body of Converse as one of Anthropic's messages, without the model."""
    config = body.get("inferenceConfig") or {}
    additional = dict(body.get("additionalModelRequestFields") or {})
    written: Json = {
        "messages": [
            {"role": message["role"], "content": _blocks(message["content"])}
            for message in body["messages"]
        ],
        "max_tokens": config.get("maxTokens", 4096),
    }
    for name, theirs in (("temperature", "temperature"), ("top_p", "topP")):
        if theirs in config:
            written[name] = config[theirs]
    if "stopSequences" in config:
        written["stop_sequences"] = config["stopSequences"]
    if body.get("system"):
        written["system"] = _blocks(body["system"])
    for name in ("thinking", "output_config", "top_k"):
        if name in additional:
            written[name] = additional[name]
    if text_format := (body.get("outputConfig") or {}).get("textFormat"):
        schema = orjson.loads(text_format["structure"]["jsonSchema"]["schema"])
        written["output_config"] = {
            **written.get("output_config", {}),
            "format": {"type": "json_schema", "schema": schema},
        }
    if tools := body.get("toolConfig"):
        written["tools"] = [_tool(tool) for tool in _marked(tools["tools"])]
        if choice := tools.get("toolChoice"):
            ((kind, fields),) = choice.items()
            written["tool_choice"] = {"type": kind, **fields}
    return written


def _marked(blocks: Sequence[Mapping[str, Any]]) -> Iterator[Json]:
    """Yield blocks, those before a cache point with a mark."""
    held: Json | None = None
    for block in blocks:
        if "cachePoint" in block:
            assert held is not None
            lifetime = {"ttl": block["cachePoint"]["ttl"]} if "ttl" in block["cachePoint"] else {}
            held["cache_control"] = {"type": "ephemeral", **lifetime}
            continue
        if held is not None:
            yield held
        held = dict(block)
    if held is not None:
        yield held


def _blocks(blocks: Sequence[Mapping[str, Any]]) -> list[Json]:
    return [_block(block) for block in _marked(blocks)]


def _block(block: Json) -> Json:
    mark = {"cache_control": block["cache_control"]} if "cache_control" in block else {}
    match block:
        case {"text": text}:
            return {"type": "text", "text": text, **mark}
        case {"image": media} | {"document": media}:
            kind = "image" if "image" in block else "document"
            mime = _MIME_TYPES.get(media["format"], f"image/{media['format']}")
            source = {"type": "base64", "media_type": mime, "data": media["source"]["bytes"]}
            title = {"title": media["name"]} if "name" in media else {}
            return {"type": kind, "source": source, **title, **mark}
        case {"toolUse": use}:
            call = {"id": use["toolUseId"], "name": use["name"], "input": use["input"]}
            return {"type": "tool_use", **call, **mark}
        case {"toolResult": result}:
            failed = {"is_error": True} if result.get("status") == "error" else {}
            content = _blocks(result["content"])
            return {
                "type": "tool_result",
                "tool_use_id": result["toolUseId"],
                "content": content,
                **failed,
                **mark,
            }
        case {"reasoningContent": {"reasoningText": reasoning}}:
            signature = reasoning.get("signature", "")
            return {"type": "thinking", "thinking": reasoning["text"], "signature": signature}
        case {"reasoningContent": {"redactedContent": data}}:
            return {"type": "redacted_thinking", "data": binascii.a2b_base64(data).decode()}
    raise AssertionError(f"the upstream does not read {block.keys()}")


def _tool(tool: Json) -> Json:
    spec = tool["toolSpec"]
    written = {"name": spec["name"], "input_schema": spec["inputSchema"]["json"]}
    for name in ("description", "strict"):
        if name in spec:
            written[name] = spec[name]
    return written | {name: one for name, one in tool.items() if name == "cache_control"}


def whole(message: Json) -> Json:
    """Return one of Anthropic's messages as an answer of Converse."""
    content = [_answer_block(block) for block in message["content"]]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _reason(message["stop_reason"]),
        "usage": _usage(message["usage"]),
        "metrics": {"latencyMs": 1},
    }


def _answer_block(block: Json) -> Json:
    match block["type"]:
        case "thinking":
            reasoning = {"text": block["thinking"], "signature": block["signature"]}
            return {"reasoningContent": {"reasoningText": reasoning}}
        case "redacted_thinking":
            return {"reasoningContent": {"redactedContent": _redacted(block)}}
        case "tool_use":
            use = {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}
            return {"toolUse": use}
    return {"text": block["text"]}


def _redacted(block: Json) -> str:
    return binascii.b2a_base64(block["data"].encode(), newline=False).decode()


def _reason(reason: str) -> str:
    return _REASONS.get(reason, reason)


def _usage(usage: Json) -> Json:
    read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
    total = usage["input_tokens"] + read + written + usage["output_tokens"]
    return {
        "inputTokens": usage["input_tokens"],
        "outputTokens": usage["output_tokens"],
        "totalTokens": total,
        "cacheReadInputTokens": read,
        "cacheWriteInputTokens": written,
    }


def frames_of(event: Json) -> Iterator[tuple[str, Json]]:
    """Yield the names and payloads of Converse's events for one of Anthropic's."""
    index = event.get("index")
    match event:
        case {"type": "message_start"}:
            yield "messageStart", {"role": "assistant"}
        case {"type": "content_block_start", "content_block": {"type": "tool_use"} as block}:
            use = {"toolUseId": block["id"], "name": block["name"]}
            yield "contentBlockStart", {"start": {"toolUse": use}, "contentBlockIndex": index}
        case {"type": "content_block_start", "content_block": {"type": "redacted_thinking"} as one}:
            delta: Json = {"reasoningContent": {"redactedContent": _redacted(one)}}
            yield "contentBlockDelta", {"delta": delta, "contentBlockIndex": index}
        case {"type": "content_block_delta", "delta": delta}:
            yield "contentBlockDelta", {"delta": _delta(delta), "contentBlockIndex": index}
        case {"type": "content_block_stop"}:
            yield "contentBlockStop", {"contentBlockIndex": index}
        case {"type": "message_delta", "delta": delta, "usage": usage}:
            yield "messageStop", {"stopReason": _reason(delta["stop_reason"])}
            yield "metadata", {"usage": _usage(usage), "metrics": {"latencyMs": 1}}


def _delta(delta: Json) -> Json:
    match delta:
        case {"type": "text_delta", "text": text}:
            return {"text": text}
        case {"type": "thinking_delta", "thinking": text}:
            return {"reasoningContent": {"text": text}}
        case {"type": "signature_delta", "signature": signature}:
            return {"reasoningContent": {"signature": signature}}
        case {"type": "input_json_delta", "partial_json": text}:
            return {"toolUse": {"input": text}}
    raise AssertionError(delta)


def frame(kind: str, name: str, payload: bytes) -> bytes:
    """Return a message of an event stream.

    Args:
        kind: `event` or `exception`.
        name: the type of the event or exception.
        payload: JSON.
    """
    headers = b"".join(
        _header(name, value)
        for name, value in (
            (f":{kind}-type", name),
            (":content-type", "application/json"),
            (":message-type", kind),
        )
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    checked = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + payload
    return checked + struct.pack(">I", binascii.crc32(checked))


def _header(name: str, value: str) -> bytes:
    return (
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value))
    ) + value.encode()

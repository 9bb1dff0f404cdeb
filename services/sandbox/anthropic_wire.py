"""Anthropic's messages: parse an accepted body, and write answers as JSON or events.

Source: the types of the official SDK, `anthropic.types`, and the order of events that it
accumulates. Thinking is signed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    Message,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from gateway.inference.v1.inference_pb2 import (
    Choice,
    Finish,
    GenerateRequest,
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.sandbox.bodies import MARK, bounded, decode, to_json
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import Kind, SandboxError, TooLongError
from services.sandbox.model.play import (
    BlockEnded,
    BlockStarted,
    ChoiceEnded,
    Delta,
    Opened,
    Step,
)
from services.sandbox.model.signatures import sign

_ERRORS: dict[Kind, str] = {
    "invalid": "invalid_request_error",
    "context_length": "invalid_request_error",
    "authentication": "authentication_error",
    "permission": "permission_error",
    "model_not_found": "not_found_error",
    "not_found": "not_found_error",
    "rate_limit": "rate_limit_error",
    "server": "api_error",
    "overloaded": "overloaded_error",
}
_CHOICES = {
    "auto": ToolChoice.MODE_AUTO,
    "any": ToolChoice.MODE_ANY,
    "none": ToolChoice.MODE_NONE,
    "tool": ToolChoice.MODE_TOOL,
}
_FINISH = {
    conversation_pb2.FINISH_REASON_END_TURN: "end_turn",
    conversation_pb2.FINISH_REASON_MAX_TOKENS: "max_tokens",
    conversation_pb2.FINISH_REASON_STOP_SEQUENCE: "stop_sequence",
    conversation_pb2.FINISH_REASON_TOOL_USE: "tool_use",
    conversation_pb2.FINISH_REASON_REFUSAL: "refusal",
}
_ROLES = {
    "user": conversation_pb2.ROLE_USER,
    "assistant": conversation_pb2.ROLE_ASSISTANT,
    "system": conversation_pb2.ROLE_SYSTEM,
}


def read_request(body: Mapping[str, Any]) -> GenerateRequest:
    """Parse a request body whose types are right."""
    request = GenerateRequest(
        tools=[_tool(tool) for tool in body.get("tools") or () if _is_callers(tool)],
        tool_choice=_tool_choice(body.get("tool_choice") or {"type": "auto"}),
        stop_sequences=body.get("stop_sequences") or (),
        output_format=_output_format((body.get("output_config") or {}).get("format")),
        max_tokens=bounded(body.get("max_tokens")),
        thinking=_thinking(body.get("thinking") or {"type": "disabled"}),
    )
    if body.get("system"):
        blocks = _canonical_blocks(body["system"])
        request.messages.append(Message(role=conversation_pb2.ROLE_SYSTEM, blocks=blocks))
    for message in body["messages"]:
        blocks = _canonical_blocks(message["content"])
        request.messages.append(Message(role=_ROLES[message["role"]], blocks=blocks))
    if body.get("cache_control"):
        request.messages[-1].blocks.add(cache_control=MARK)
    return request


def _is_callers(tool: Mapping[str, Any]) -> bool:
    return tool.get("type") in (None, "custom")


def _tool(tool: Mapping[str, Any]) -> Tool:
    return Tool(
        name=tool["name"],
        description=tool.get("description") or "",
        input_schema=to_json(tool["input_schema"]),
        cache_control=_mark(tool),
    )


def _tool_choice(choice: Mapping[str, Any]) -> ToolChoice:
    return ToolChoice(
        mode=_CHOICES[choice["type"]],
        name=choice.get("name", ""),
        disable_parallel_tool_use=choice.get("disable_parallel_tool_use") is True,
    )


def _output_format(form: Mapping[str, Any] | None) -> OutputFormat | None:
    if not form:
        return None
    return OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=to_json(form["schema"]))


def _thinking(thinking: Mapping[str, Any]) -> ThinkingConfig:
    is_off = thinking["type"] == "disabled"
    return ThinkingConfig(
        mode=ThinkingConfig.MODE_DISABLED if is_off else ThinkingConfig.MODE_ENABLED
    )


def _mark(value: Mapping[str, Any]) -> bytes:
    return MARK if value.get("cache_control") else b""


def _blocks(content: object) -> list[Mapping[str, Any]]:
    """Return the blocks of a content; none for an object, which some results of tools have."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _texts(content: object) -> str:
    return "".join(block["text"] for block in _blocks(content) if block["type"] == "text")


def _canonical_blocks(content: object) -> Sequence[Block]:
    read = map(_canonical_block, _blocks(content))
    return [block for block in read if block is not None]


def _canonical_block(block: Mapping[str, Any]) -> Block | None:
    """Return a block; None for an unsupported block without a cache mark."""
    mark = _mark(block)
    match block["type"]:
        case "text":
            return Block(text=block["text"], cache_control=mark)
        case "image" | "document":
            return Block(media=_media(block), cache_control=mark)
        case "thinking":
            return Block(thinking=Thinking(text=block["thinking"]))
        case "tool_use":
            written = to_json(block["input"]).decode()
            use = ToolUse(id=block["id"], name=block["name"], input=written)
            return Block(tool_use=use, cache_control=mark)
        case "tool_result":
            result = ToolResult(
                tool_use_id=block["tool_use_id"],
                blocks=_canonical_blocks(block.get("content") or ""),
                is_error=block.get("is_error") is True,
            )
            return Block(tool_result=result, cache_control=mark)
    return Block(cache_control=mark) if mark else None


def _media(block: Mapping[str, Any]) -> Media:
    is_image = block["type"] == "image"
    kind = conversation_pb2.MEDIA_KIND_IMAGE if is_image else conversation_pb2.MEDIA_KIND_DOCUMENT
    media = Media(kind=kind, name=block.get("title") or "")
    match block["source"]:
        case {"type": "base64", "media_type": mime_type, "data": data}:
            media.mime_type, media.data = mime_type, decode(data)
        case {"type": "text", "media_type": mime_type, "data": data}:
            media.mime_type, media.data = mime_type, data.encode()
        case {"type": "content", "content": content}:
            media.mime_type, media.data = "text/plain", _texts(content).encode()
        case {"url": str(place)} | {"file_id": str(place)}:
            media.url = place
    return media


def message(answer: Answer, head: Mapping[str, Any]) -> dict[str, Any]:
    """Write a whole answer; `head` has `id` and `model`."""
    return _message(answer.choices[0], answer.usage, head)


def _message(choice: Choice, usage: Usage, head: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **head,
        "type": "message",
        "role": "assistant",
        "content": [_block(block) for block in choice.blocks],
        **_end(choice.finish),
        "usage": _usage(usage),
    }


def _block(block: Block) -> dict[str, Any]:
    match block.WhichOneof("kind"):
        case "redacted_thinking":
            return {"type": "redacted_thinking", "data": block.redacted_thinking}
        case "thinking":
            text = block.thinking.text
            return {"type": "thinking", "thinking": text, "signature": sign(text)}
        case "tool_use":
            call = block.tool_use
            return {
                "type": "tool_use",
                "id": f"toolu_{call.id}",
                "name": call.name,
                "input": orjson.loads(call.input),
            }
    return {"type": "text", "text": block.text or block.refusal, "citations": None}


def _end(finish: Finish) -> dict[str, Any]:
    refused = {
        "type": "refusal",
        "category": None,
        "explanation": "The sandbox was asked to refuse.",
    }
    is_refusal = finish.reason == conversation_pb2.FINISH_REASON_REFUSAL
    return {
        "stop_reason": _FINISH.get(finish.reason),
        "stop_sequence": finish.stop_sequence or None,
        "stop_details": refused if is_refusal else None,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "service_tier": "standard",
    }


class EventWriter:
    """Writes the events of one streamed answer, step by step."""

    def __init__(self, answer: Answer, head: Mapping[str, Any]) -> None:
        self._answer = answer
        self._head = head

    def write(self, step: Step) -> list[dict[str, Any]]:
        """Return the events of one step; the `type` of each is also its name."""
        match step:
            case Opened():
                return [{"type": "message_start", "message": self._opening()}, {"type": "ping"}]
            case BlockStarted(_, index, block):
                opened = _opened_block(block)
                return [{"type": "content_block_start", "index": index, "content_block": opened}]
            case Delta(_, index, block, text):
                delta = _delta(block, text)
                return [_delta_event(index, delta)] if delta else []
            case BlockEnded(_, index, block):
                stop = {"type": "content_block_stop", "index": index}
                if block.HasField("thinking"):
                    signature = {"type": "signature_delta", "signature": sign(block.thinking.text)}
                    return [_delta_event(index, signature), stop]
                return [stop]
            case ChoiceEnded(_, finish):
                usage = _usage(self._answer.usage)
                del usage["service_tier"]
                return [
                    {"type": "message_delta", "delta": _end(finish), "usage": usage},
                    {"type": "message_stop"},
                ]

    def _opening(self) -> dict[str, Any]:
        usage = {**_usage(self._answer.usage), "output_tokens": 1}
        del usage["output_tokens_details"]
        return {**_message(Choice(), Usage(), self._head), "usage": usage}


def _opened_block(block: Block) -> dict[str, Any]:
    match block.WhichOneof("kind"):
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "redacted_thinking":
            return _block(block)
        case "tool_use":
            return {**_block(block), "input": {}}
    return {"type": "text", "text": "", "citations": None}


def _delta(block: Block, text: str) -> dict[str, Any] | None:
    match block.WhichOneof("kind"):
        case "thinking":
            return {"type": "thinking_delta", "thinking": text}
        case "redacted_thinking":
            return None
        case "tool_use":
            return {"type": "input_json_delta", "partial_json": text}
    return {"type": "text_delta", "text": text}


def _delta_event(index: int, delta: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def error_body(error: SandboxError, request_id: str) -> dict[str, Any]:
    """Write an error; its message begins with the field, as in `messages.0.content: …`."""
    where = ".".join(map(str, error.path))
    message = f"{where}: {error.message}" if where else error.message
    if isinstance(error, TooLongError):
        message = f"prompt is too long: {error.size} tokens > {error.most} maximum"
    detail = {"type": _ERRORS[error.kind], "message": message}
    return {"type": "error", "error": detail, "request_id": request_id}

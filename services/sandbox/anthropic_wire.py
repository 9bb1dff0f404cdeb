"""Anthropic's messages: a checked body into a prompt, an answer into JSON and events.

Source: the types of the official SDK, `anthropic.types`, and the order of events
it accumulates. Thoughts are signed, and `is_signed` knows the sandbox's own signatures.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from services.sandbox.model.models import Kind, SandboxError, TooLongError
from services.sandbox.model.play import (
    ChoiceEnded,
    Delta,
    Opened,
    PieceEnded,
    PieceStarted,
    Step,
)
from services.sandbox.model.requests import (
    Answer,
    Call,
    Finish,
    Medium,
    MediumKind,
    Piece,
    Prompt,
    Reply,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    Turn,
    Usage,
    characters,
)
from services.sandbox.model.signatures import is_redacted, redact, sign
from services.sandbox.openai_wire import decode

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
_CHOICES: dict[str, Any] = {"auto": "auto", "any": "any", "none": "none", "tool": "tool"}
_NO_USAGE = Usage(0, 0)


def is_signed(block: Mapping[str, Any]) -> bool:
    """Return whether a thinking or redacted_thinking block is the sandbox's own, unchanged."""
    if block["type"] == "thinking":
        return bool(block["signature"] == sign(block["thinking"]))
    return is_redacted(block["data"])


def read_prompt(body: Mapping[str, Any]) -> Prompt:
    """Read the body of a request that `checks` and `rules` let through."""
    turns = [Turn("system", _texts(body["system"]))] if body.get("system") else []
    turns += [_turn(message) for message in body["messages"]]
    form = (body.get("output_config") or {}).get("format")
    choice = body.get("tool_choice") or {"type": "auto"}
    return Prompt(
        turns=tuple(turns),
        tools=tuple(
            Tool(tool["name"], tool["input_schema"], tool.get("description") or "")
            for tool in body.get("tools") or ()
            if tool.get("type") in (None, "custom")
        ),
        tool_choice=ToolChoice(
            _CHOICES[choice["type"]],
            choice.get("name", ""),
            choice.get("disable_parallel_tool_use") is not True,
        ),
        stop=tuple(body.get("stop_sequences") or ()),
        schema=form["schema"] if form else None,
        max_tokens=body.get("max_tokens"),
        thinking=(body.get("thinking") or {"type": "disabled"})["type"] != "disabled",
        cache_marks=has_cache_marks(body),
    )


def has_cache_marks(body: Mapping[str, Any]) -> bool:
    """Return whether the request marks a part of itself for the cache."""
    blocks = [body, *(body.get("tools") or ()), *_blocks(body.get("system") or "")]
    blocks += [block for message in body["messages"] for block in _blocks(message["content"])]
    return any(block.get("cache_control") for block in blocks)


def _blocks(content: str | list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _texts(content: str | list[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(block["text"] for block in _blocks(content) if block["type"] == "text")


def _turn(message: Mapping[str, Any]) -> Turn:
    blocks = _blocks(message["content"])
    results = [block for block in blocks if block["type"] == "tool_result"]
    shown = [
        *blocks,
        *(inner for result in results for inner in _blocks(result.get("content") or "")),
    ]
    return Turn(
        message["role"],
        texts=_texts(blocks),
        media=tuple(_medium(block) for block in shown if block["type"] in ("image", "document")),
        results=tuple(
            ToolResult(
                result["tool_use_id"],
                "".join(_texts(result.get("content") or "")),
                result.get("is_error") is True,
            )
            for result in results
        ),
        other_characters=sum(map(_other_characters, blocks)),
    )


def _other_characters(block: Mapping[str, Any]) -> int:
    match block["type"]:
        case "tool_use":
            return len(block["name"]) + characters(block["input"])
        case "thinking":
            return len(block["thinking"])
    return 0


def _medium(block: Mapping[str, Any]) -> Medium:
    kind: MediumKind = "image" if block["type"] == "image" else "document"
    source, name = block["source"], block.get("title") or ""
    match source["type"]:
        case "base64":
            return Medium(kind, source["media_type"], decode(source["data"]), name=name)
        case "text":
            return Medium(kind, source["media_type"], source["data"].encode(), name=name)
        case "content":
            return Medium(
                kind, "text/plain", "".join(_texts(source["content"])).encode(), name=name
            )
    return Medium(kind, reference=source.get("url") or source.get("file_id") or "", name=name)


def message(answer: Answer, head: Mapping[str, Any]) -> dict[str, Any]:
    """Write a whole answer; `head` holds `id` and `model`."""
    reply = answer.replies[0]
    return {
        **head,
        "type": "message",
        "role": "assistant",
        "content": [_block(piece) for piece in reply.pieces],
        **_end(reply),
        "usage": _usage(answer.usage),
    }


def _block(piece: Piece) -> dict[str, Any]:
    match piece:
        case Text():
            return {"type": "text", "text": piece.text, "citations": None}
        case Thinking() if piece.redacted:
            return {"type": "redacted_thinking", "data": redact(piece.text)}
        case Thinking():
            return {"type": "thinking", "thinking": piece.text, "signature": sign(piece.text)}
        case Call():
            return {
                "type": "tool_use",
                "id": f"toolu_{piece.key}",
                "name": piece.name,
                "input": orjson.loads(piece.input),
            }


def _end(reply: Reply) -> dict[str, Any]:
    refused = {
        "type": "refusal",
        "category": None,
        "explanation": "The sandbox was asked to refuse.",
    }
    return {
        "stop_reason": reply.finish.value,
        "stop_sequence": reply.stop_sequence or None,
        "stop_details": refused if reply.finish is Finish.REFUSAL else None,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
    }


class EventWriter:
    """Writes the events of one streamed answer, in the order of its steps."""

    def __init__(self, answer: Answer, head: Mapping[str, Any]) -> None:
        self._answer = answer
        self._head = head

    def write(self, step: Step) -> list[dict[str, Any]]:
        """Return the events of one step; each one's `type` is its name too."""
        match step:
            case Opened():
                return [{"type": "message_start", "message": self._opening()}, {"type": "ping"}]
            case PieceStarted(_, index, piece):
                block = _opened_block(piece)
                return [{"type": "content_block_start", "index": index, "content_block": block}]
            case Delta(_, index, piece, text):
                delta = _delta(piece, text)
                return [_delta_event(index, delta)] if delta else []
            case PieceEnded(_, index, piece):
                stop = {"type": "content_block_stop", "index": index}
                if isinstance(piece, Thinking) and not piece.redacted:
                    signature = {"type": "signature_delta", "signature": sign(piece.text)}
                    return [_delta_event(index, signature), stop]
                return [stop]
            case ChoiceEnded(_, reply):
                usage = _usage(self._answer.usage)
                del usage["service_tier"]
                return [
                    {"type": "message_delta", "delta": _end(reply), "usage": usage},
                    {"type": "message_stop"},
                ]

    def _opening(self) -> dict[str, Any]:
        empty = Answer((Reply((), Finish.END_TURN),), _NO_USAGE)
        usage = {**_usage(self._answer.usage), "output_tokens": 1}
        del usage["output_tokens_details"]
        opening = message(empty, self._head)
        return {**opening, "stop_reason": None, "usage": usage}


def _opened_block(piece: Piece) -> dict[str, Any]:
    match piece:
        case Text():
            return {"type": "text", "text": "", "citations": None}
        case Thinking() if not piece.redacted:
            return {"type": "thinking", "thinking": "", "signature": ""}
        case Call():
            return {**_block(piece), "input": {}}
    return _block(piece)


def _delta(piece: Piece, text: str) -> dict[str, Any] | None:
    match piece:
        case Text():
            return {"type": "text_delta", "text": text}
        case Thinking():
            return None if piece.redacted else {"type": "thinking_delta", "thinking": text}
        case Call():
            return {"type": "input_json_delta", "partial_json": text}


def _delta_event(index: int, delta: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def error_body(error: SandboxError, request_id: str) -> dict[str, Any]:
    """Write a failure; its message begins with the field, as in `messages.0.content: …`."""
    where = ".".join(map(str, error.path))
    message = f"{where}: {error.message}" if where else error.message
    if isinstance(error, TooLongError):
        message = f"prompt is too long: {error.size} tokens > {error.most} maximum"
    told = {"type": _ERRORS[error.kind], "message": message}
    return {"type": "error", "error": told, "request_id": request_id}

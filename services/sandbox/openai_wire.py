"""OpenAI's chat completions: a checked body into a prompt, an answer into JSON.

Source: the types of the official SDK, `openai.types.chat`. Thoughts go out as
`reasoning_content`, as the servers do that show them in this dialect.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from services.sandbox.model.models import SandboxError
from services.sandbox.model.openai_shapes import token_logprobs
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
    call_characters,
    tokens,
)

_FINISH = {
    Finish.END_TURN: "stop",
    Finish.STOP_SEQUENCE: "stop",
    Finish.MAX_TOKENS: "length",
    Finish.TOOL_USE: "tool_calls",
    # What refuses says so in `refusal`; a filter's end would have another reason.
    Finish.REFUSAL: "stop",
}


def read_prompt(body: Mapping[str, Any]) -> Prompt:
    """Read the body of a request that `checks` and `rules` let through."""
    choice, allowed = _tool_choice(body)
    tools = tuple(_tool(tool) for tool in body.get("tools") or ())
    stop = body.get("stop") or ()
    form = body.get("response_format") or {}
    limit = body.get("max_completion_tokens")
    return Prompt(
        turns=tuple(_turn(message) for message in body["messages"]),
        tools=tuple(tool for tool in tools if allowed is None or tool.name in allowed),
        tool_choice=choice,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        schema=form["json_schema"].get("schema") or {}
        if form.get("type") == "json_schema"
        else None,
        json_object=form.get("type") == "json_object",
        max_tokens=body.get("max_tokens") if limit is None else limit,
        thinking=body.get("reasoning_effort") not in (None, "none"),
        cache_marks=any(
            "prompt_cache_breakpoint" in part
            for message in body["messages"]
            for part in _parts(message.get("content"))
        ),
        top_logprobs=(body.get("top_logprobs") or 0) if body.get("logprobs") else None,
        n=body.get("n") or 1,
    )


def _parts(content: object) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _turn(message: Mapping[str, Any]) -> Turn:
    parts = _parts(message.get("content"))
    texts = tuple(part["text"] for part in parts if part["type"] == "text")
    match message["role"]:
        case "system" | "developer":
            return Turn("system", texts)
        case "tool":
            return Turn("user", results=(ToolResult(message["tool_call_id"], "".join(texts)),))
        case "assistant":
            calls = message.get("tool_calls") or ()
            return Turn("assistant", texts, other_characters=sum(map(_call_characters, calls)))
    return Turn(
        "user", texts, media=tuple(_medium(part) for part in parts if part["type"] != "text")
    )


def _call_characters(call: Mapping[str, Any]) -> int:
    if call["type"] == "function":
        return call_characters(call["function"]["name"], call["function"]["arguments"])
    return call_characters(call["custom"]["name"], call["custom"]["input"])


def _medium(part: Mapping[str, Any]) -> Medium:
    match part["type"]:
        case "image_url":
            return _from_url("image", part["image_url"]["url"])
        case "input_audio":
            audio = part["input_audio"]
            return Medium("audio", f"audio/{audio['format']}", decode(audio["data"]))
    file = part["file"]
    if "file_data" in file:
        return _from_url("document", file["file_data"], file.get("filename", ""))
    return Medium("document", reference=file.get("file_id", ""), name=file.get("filename", ""))


def _from_url(kind: MediumKind, url: str, name: str = "") -> Medium:
    if not url.startswith("data:"):
        return Medium(kind, reference=url, name=name)
    head, _, data = url.removeprefix("data:").partition(",")
    return Medium(kind, head.partition(";")[0], decode(data), name=name)


def decode(data: str) -> bytes:
    """Decode base64.

    Raises:
        SandboxError: it is none.
    """
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SandboxError(
            "invalid", 400, "The media of the request is not valid base64"
        ) from error


def _tool(tool: Mapping[str, Any]) -> Tool:
    if tool["type"] == "custom":
        custom = tool["custom"]
        return Tool(custom["name"], {}, custom.get("description") or "", freeform=True)
    function = tool["function"]
    return Tool(
        function["name"], function.get("parameters") or {}, function.get("description") or ""
    )


def _tool_choice(body: Mapping[str, Any]) -> tuple[ToolChoice, set[str] | None]:
    """Return the choice, and the names it is limited to, if it is."""
    parallel = body.get("parallel_tool_calls") is not False
    match body.get("tool_choice"):
        case "none":
            return ToolChoice("none"), None
        case "required":
            return ToolChoice("any", parallel=parallel), None
        case {"type": "allowed_tools", "allowed_tools": allowed}:
            names = {tool[tool["type"]]["name"] for tool in allowed["tools"]}
            mode = "any" if allowed["mode"] == "required" else "auto"
            return ToolChoice("any" if mode == "any" else "auto", parallel=parallel), names
        case {"function": {"name": name}} | {"custom": {"name": name}}:
            return ToolChoice("tool", name, parallel), None
    return ToolChoice(parallel=parallel), None


def completion(answer: Answer, head: Mapping[str, Any]) -> dict[str, Any]:
    """Write a whole answer; `head` holds `id`, `created` and `model`."""
    return {
        **head,
        "object": "chat.completion",
        "choices": [
            {
                "index": index,
                "message": _message(reply),
                "logprobs": _logprobs(reply, answer.top_logprobs),
                "finish_reason": _FINISH[reply.finish],
            }
            for index, reply in enumerate(answer.replies)
        ],
        "usage": _usage(answer.usage),
        "service_tier": "default",
        "system_fingerprint": "fp_sandbox",
    }


def _message(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
    }
    for piece in reply.pieces:
        match piece:
            case Text():
                message["refusal" if piece.refusal else "content"] = piece.text
            case Thinking() if not piece.redacted:
                message["reasoning_content"] = piece.text
            case Call():
                message.setdefault("tool_calls", []).append(
                    {"id": _id(piece), **_called(piece, piece.input)}
                )
    if message["content"] is None and reply.finish in (Finish.STOP_SEQUENCE, Finish.MAX_TOKENS):
        message["content"] = ""
    return message


def _id(call: Call) -> str:
    return f"call_{call.key}"


def _called(call: Call, written: str) -> dict[str, Any]:
    if call.freeform:
        return {"type": "custom", "custom": {"name": call.name, "input": written}}
    return {"type": "function", "function": {"name": call.name, "arguments": written}}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_creation,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _logprobs(reply: Reply, top: int | None) -> dict[str, Any] | None:
    if top is None:
        return None
    texts = [piece.text for piece in reply.pieces if isinstance(piece, Text) and not piece.refusal]
    return token_logprobs([token for text in texts for token in tokens(text)], top)


class ChunkWriter:
    """Writes the chunks of one streamed answer, in the order of its steps."""

    def __init__(self, answer: Answer, head: Mapping[str, Any], *, include_usage: bool) -> None:
        self._answer = answer
        self._head = {**head, "object": "chat.completion.chunk", "system_fingerprint": "fp_sandbox"}
        self._include_usage = include_usage
        self._calls = [0] * len(answer.replies)

    def write(self, step: Step) -> list[dict[str, Any]]:
        """Return the chunks of one step."""
        match step:
            case Opened():
                opening = {"role": "assistant", "content": "", "refusal": None}
                return [self._chunk(choice, opening) for choice in range(len(self._answer.replies))]
            case PieceStarted(choice, _, Call() as call):
                head = {"index": self._calls[choice], "id": _id(call), **_called(call, "")}
                return [self._chunk(choice, {"tool_calls": [head]})]
            case Delta(choice, _, piece, text):
                delta = self._delta(choice, piece, text)
                return [self._chunk(choice, delta, self._logprobs(piece, text))] if delta else []
            case PieceEnded(choice, _, Call()):
                self._calls[choice] += 1
            case ChoiceEnded(choice, reply):
                return [self._chunk(choice, {}, finish=_FINISH[reply.finish])]
        return []

    def end(self) -> Iterator[dict[str, Any]]:
        """Return the last chunk, if usage was asked for."""
        if self._include_usage:
            yield {**self._head, "choices": [], "usage": _usage(self._answer.usage)}

    def _delta(self, choice: int, piece: Piece, text: str) -> dict[str, Any]:
        match piece:
            case Text():
                return {"refusal" if piece.refusal else "content": text}
            case Thinking():
                return {} if piece.redacted else {"reasoning_content": text}
            case Call():
                kind, key = ("custom", "input") if piece.freeform else ("function", "arguments")
                return {"tool_calls": [{"index": self._calls[choice], kind: {key: text}}]}

    def _logprobs(self, piece: Piece, text: str) -> dict[str, Any] | None:
        top = self._answer.top_logprobs
        if top is None or not isinstance(piece, Text) or piece.refusal:
            return None
        return token_logprobs([text], top)

    def _chunk(
        self,
        choice: int,
        delta: Mapping[str, Any],
        logprobs: Mapping[str, Any] | None = None,
        finish: str | None = None,
    ) -> dict[str, Any]:
        told = {"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        usage = {"usage": None} if self._include_usage else {}
        return {**self._head, "choices": [told], **usage}

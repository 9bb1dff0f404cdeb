"""OpenAI's chat completions: parse an accepted body, and write an answer as JSON.

Source: the types of the official SDK, `openai.types.chat`. Thinking is sent as `reasoning_content`,
as by the servers that show it in this dialect.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    MediaKind,
    Message,
    Opaque,
    ToolResult,
    ToolUse,
    Usage,
)
from gateway.inference.v1.inference_pb2 import (
    Choice,
    GenerateRequest,
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.sandbox.bodies import MARK, bounded, decode, to_json
from services.sandbox.model.answers import Answer, prompt_tokens
from services.sandbox.model.openai_shapes import token_logprobs
from services.sandbox.model.play import (
    BlockEnded,
    BlockStarted,
    ChoiceEnded,
    Delta,
    Opened,
    Step,
)
from services.sandbox.model.requests import tokens

_FINISH = {
    conversation_pb2.FINISH_REASON_END_TURN: "stop",
    conversation_pb2.FINISH_REASON_STOP_SEQUENCE: "stop",
    conversation_pb2.FINISH_REASON_MAX_TOKENS: "length",
    conversation_pb2.FINISH_REASON_TOOL_USE: "tool_calls",
    # The refusal is in the field `refusal`; an end by a content filter has another reason.
    conversation_pb2.FINISH_REASON_REFUSAL: "stop",
}
_CUT = (
    conversation_pb2.FINISH_REASON_STOP_SEQUENCE,
    conversation_pb2.FINISH_REASON_MAX_TOKENS,
)


def read_request(body: Mapping[str, Any]) -> GenerateRequest:
    """Parse a request body whose types are right."""
    choice, allowed = _tool_choice(body)
    tools = [_tool(tool) for tool in body.get("tools") or ()]
    stop = body.get("stop") or ()
    limit = body.get("max_completion_tokens")
    limit = body.get("max_tokens") if limit is None else limit
    return GenerateRequest(
        messages=[_message_of(message) for message in body["messages"]],
        tools=[tool for tool in tools if allowed is None or tool.name in allowed],
        tool_choice=choice,
        stop_sequences=[stop] if isinstance(stop, str) else stop,
        output_format=_output_format(body.get("response_format") or {}),
        max_tokens=bounded(limit),
        thinking=ThinkingConfig(effort=body.get("reasoning_effort") or ""),
        logprobs=bool(body.get("logprobs")),
        top_logprobs=body.get("top_logprobs"),
        n=body.get("n"),
    )


def _output_format(form: Mapping[str, Any]) -> OutputFormat | None:
    match form.get("type"):
        case "json_schema":
            schema = to_json(form["json_schema"].get("schema") or {})
            return OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=schema)
        case "json_object":
            return OutputFormat(kind=OutputFormat.KIND_JSON_OBJECT)
    return None


def _parts(content: object) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _message_of(message: Mapping[str, Any]) -> Message:
    parts = _parts(message.get("content"))
    blocks = [_block(part) for part in parts if part["type"] != "refusal"]
    match message["role"]:
        case "system" | "developer":
            return Message(role=conversation_pb2.ROLE_SYSTEM, blocks=blocks)
        case "tool":
            result = ToolResult(tool_use_id=message["tool_call_id"], blocks=blocks)
            return Message(role=conversation_pb2.ROLE_USER, blocks=[Block(tool_result=result)])
        case "assistant":
            blocks += [_tool_use(call) for call in message.get("tool_calls") or ()]
            return Message(role=conversation_pb2.ROLE_ASSISTANT, blocks=blocks)
    return Message(role=conversation_pb2.ROLE_USER, blocks=blocks)


def _block(part: Mapping[str, Any]) -> Block:
    mark = MARK if "prompt_cache_breakpoint" in part else b""
    if part["type"] == "text":
        return Block(text=part["text"], cache_control=mark)
    return Block(media=_media(part), cache_control=mark)


def _tool_use(call: Mapping[str, Any]) -> Block:
    if call["type"] == "function":
        name, written = call["function"]["name"], call["function"]["arguments"]
    else:
        name, written = call["custom"]["name"], call["custom"]["input"]
    return Block(tool_use=ToolUse(id=call["id"], name=name, input=written))


def _media(part: Mapping[str, Any]) -> Media:
    match part["type"]:
        case "image_url":
            return _from_url(conversation_pb2.MEDIA_KIND_IMAGE, part["image_url"]["url"])
        case "input_audio":
            audio = part["input_audio"]
            return Media(
                kind=conversation_pb2.MEDIA_KIND_AUDIO,
                mime_type=f"audio/{audio['format']}",
                data=decode(audio["data"]),
            )
    file, kind = part["file"], conversation_pb2.MEDIA_KIND_DOCUMENT
    name = file.get("filename", "")
    if "file_data" in file:
        return _from_url(kind, file["file_data"], name)
    return Media(kind=kind, file_id=file.get("file_id", ""), name=name)


def _from_url(kind: MediaKind.ValueType, url: str, name: str = "") -> Media:
    if not url.startswith("data:"):
        return Media(kind=kind, url=url, name=name)
    head, _, data = url.removeprefix("data:").partition(",")
    return Media(kind=kind, mime_type=head.partition(";")[0], data=decode(data), name=name)


def _tool(tool: Mapping[str, Any]) -> Tool:
    if tool["type"] == "custom":
        # Opaque tools are called with free text.
        extra = Opaque(dialect=conversation_pb2.DIALECT_OPENAI, json=to_json(tool))
        custom = tool["custom"]
        description = custom.get("description") or ""
        return Tool(name=custom["name"], description=description, opaque=True, extra=extra)
    function = tool["function"]
    return Tool(
        name=function["name"],
        description=function.get("description") or "",
        input_schema=to_json(function.get("parameters") or {}),
    )


def _tool_choice(body: Mapping[str, Any]) -> tuple[ToolChoice, set[str] | None]:
    """Return the choice, and the names of the allowed tools, or None for all."""
    choice = ToolChoice(disable_parallel_tool_use=body.get("parallel_tool_calls") is False)
    allowed: set[str] | None = None
    match body.get("tool_choice"):
        case "none":
            choice.mode = ToolChoice.MODE_NONE
        case "required":
            choice.mode = ToolChoice.MODE_ANY
        case {"type": "allowed_tools", "allowed_tools": limits}:
            allowed = {tool[tool["type"]]["name"] for tool in limits["tools"]}
            if limits["mode"] == "required":
                choice.mode = ToolChoice.MODE_ANY
        case {"function": {"name": name}} | {"custom": {"name": name}}:
            choice.mode, choice.name = ToolChoice.MODE_TOOL, name
    return choice, allowed


def completion(answer: Answer, head: Mapping[str, Any]) -> dict[str, Any]:
    """Write a whole answer; `head` has `id`, `created` and `model`."""
    return {
        **head,
        "object": "chat.completion",
        "choices": [
            {
                "index": index,
                "message": _message(choice),
                "logprobs": _logprobs(choice, answer.top_logprobs),
                "finish_reason": _FINISH[choice.finish.reason],
            }
            for index, choice in enumerate(answer.choices)
        ],
        "usage": _usage(answer.usage),
        "service_tier": "default",
        "system_fingerprint": "fp_sandbox",
    }


def _message(choice: Choice) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
    }
    for block in choice.blocks:
        match block.WhichOneof("kind"):
            case "text":
                message["content"] = block.text
            case "refusal":
                message["refusal"] = block.refusal
            case "thinking":
                message["reasoning_content"] = block.thinking.text
            case "tool_use":
                call = block.tool_use
                message.setdefault("tool_calls", []).append(_called(call, call.input))
    if message["content"] is None and choice.finish.reason in _CUT:
        message["content"] = ""
    return message


def _called(call: ToolUse, written: str) -> dict[str, Any]:
    head = {"id": f"call_{call.id}"}
    if call.freeform:
        return {**head, "type": "custom", "custom": {"name": call.name, "input": written}}
    return {**head, "type": "function", "function": {"name": call.name, "arguments": written}}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt_tokens(usage),
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt_tokens(usage) + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_creation_input_tokens,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _logprobs(choice: Choice, top: int | None) -> dict[str, Any] | None:
    if top is None:
        return None
    texts = [block.text for block in choice.blocks]
    return token_logprobs([token for text in texts for token in tokens(text)], top)


class ChunkWriter:
    """Writes the chunks of one streamed answer, step by step."""

    def __init__(self, answer: Answer, head: Mapping[str, Any], *, include_usage: bool) -> None:
        self._answer = answer
        self._head = {**head, "object": "chat.completion.chunk", "system_fingerprint": "fp_sandbox"}
        self._include_usage = include_usage
        self._calls = [0] * len(answer.choices)

    def write(self, step: Step) -> list[dict[str, Any]]:
        """Return the chunks of one step."""
        match step:
            case Opened():
                opening = {"role": "assistant", "content": "", "refusal": None}
                return [self._chunk(choice, opening) for choice in range(len(self._answer.choices))]
            case BlockStarted(choice, _, block) if block.HasField("tool_use"):
                head = {"index": self._calls[choice], **_called(block.tool_use, "")}
                return [self._chunk(choice, {"tool_calls": [head]})]
            case Delta(choice, _, block, text):
                delta = self._delta(choice, block, text)
                return [self._chunk(choice, delta, self._logprobs(block, text))] if delta else []
            case BlockEnded(choice, _, block) if block.HasField("tool_use"):
                self._calls[choice] += 1
            case ChoiceEnded(choice, finish):
                return [self._chunk(choice, {}, finish=_FINISH[finish.reason])]
        return []

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the usage chunk, if requested."""
        if self._include_usage:
            yield {**self._head, "choices": [], "usage": _usage(self._answer.usage)}

    def _delta(self, choice: int, block: Block, text: str) -> dict[str, Any]:
        match block.WhichOneof("kind"):
            case "text":
                return {"content": text}
            case "refusal":
                return {"refusal": text}
            case "thinking":
                return {"reasoning_content": text}
            case "tool_use":
                is_freeform = block.tool_use.freeform
                kind, key = ("custom", "input") if is_freeform else ("function", "arguments")
                return {"tool_calls": [{"index": self._calls[choice], kind: {key: text}}]}
        return {}

    def _logprobs(self, block: Block, text: str) -> dict[str, Any] | None:
        top = self._answer.top_logprobs
        return token_logprobs([text], top) if top is not None and block.HasField("text") else None

    def _chunk(
        self,
        choice: int,
        delta: Mapping[str, Any],
        logprobs: Mapping[str, Any] | None = None,
        finish: str | None = None,
    ) -> dict[str, Any]:
        choice_body = {
            "index": choice,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish,
        }
        usage = {"usage": None} if self._include_usage else {}
        return {**self._head, "choices": [choice_body], **usage}

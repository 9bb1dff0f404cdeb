"""Gemini's API: parse an accepted body into a canonical request, and write an answer as JSON.

Source: Google's reference of `generateContent`. Function calls and the ends of texts are signed as
by Gemini 3.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    MediaKind,
    Message,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from gateway.inference.v1.inference_pb2 import (
    Finish,
    GenerateRequest,
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.common.text.google_schemas import json_schema
from services.sandbox.bodies import bounded, decode, to_json
from services.sandbox.model.answers import Answer, prompt_tokens
from services.sandbox.model.models import Kind, SandboxError, TooLongError
from services.sandbox.model.play import BlockEnded, ChoiceEnded, Delta, Step
from services.sandbox.model.requests import tokens

Json = dict[str, Any]

_FINISH = {
    conversation_pb2.FINISH_REASON_END_TURN: "STOP",
    conversation_pb2.FINISH_REASON_STOP_SEQUENCE: "STOP",
    conversation_pb2.FINISH_REASON_TOOL_USE: "STOP",
    conversation_pb2.FINISH_REASON_MAX_TOKENS: "MAX_TOKENS",
    conversation_pb2.FINISH_REASON_REFUSAL: "SAFETY",
}
_ERRORS: dict[Kind, str] = {
    "invalid": "INVALID_ARGUMENT",
    "context_length": "INVALID_ARGUMENT",
    "authentication": "UNAUTHENTICATED",
    "permission": "PERMISSION_DENIED",
    "model_not_found": "NOT_FOUND",
    "not_found": "NOT_FOUND",
    "rate_limit": "RESOURCE_EXHAUSTED",
    "server": "INTERNAL",
    "overloaded": "UNAVAILABLE",
}
_KINDS = {
    "image": conversation_pb2.MEDIA_KIND_IMAGE,
    "audio": conversation_pb2.MEDIA_KIND_AUDIO,
    "video": conversation_pb2.MEDIA_KIND_VIDEO,
}
_NO_PARAMETERS = {"type": "object"}
_TYPE = "type.googleapis.com/google.rpc."


def sign(part: object) -> str:
    """Return the deterministic signature of a part's content."""
    data = b"sandbox thought\0" + orjson.dumps(part, option=orjson.OPT_SORT_KEYS)
    return base64.b64encode(sha256(data).digest()).decode()


def read_request(body: Mapping[str, Any]) -> GenerateRequest:
    """Parse a request body whose types are right."""
    body = body.get("generateContentRequest") or body
    config = body.get("generationConfig") or {}
    thinking = config.get("thinkingConfig") or {}
    thinks = thinking.get("includeThoughts") is True and thinking.get("thinkingBudget") != 0
    choice, allowed = _tool_choice(body)
    request = GenerateRequest(
        tools=[tool for tool in _tools(body) if allowed is None or tool.name in allowed],
        tool_choice=choice,
        stop_sequences=config.get("stopSequences") or (),
        output_format=_output_format(config),
        max_tokens=bounded(config.get("maxOutputTokens")),
        thinking=ThinkingConfig(mode=ThinkingConfig.MODE_ENABLED) if thinks else None,
        logprobs=bool(config.get("responseLogprobs")),
        top_logprobs=config.get("logprobs", 0),
        n=config.get("candidateCount"),
    )
    system = (body.get("systemInstruction") or {}).get("parts") or ()
    if blocks := [Block(text=text) for text in _texts(system)]:
        request.messages.append(Message(role=conversation_pb2.ROLE_SYSTEM, blocks=blocks))
    request.messages.extend(map(_message, body["contents"]))
    return request


def _output_format(config: Mapping[str, Any]) -> OutputFormat | None:
    schema = config.get("responseJsonSchema")
    if schema is None and (given := config.get("responseSchema")) is not None:
        schema = json_schema(given)
    if schema is not None:
        return OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=to_json(schema))
    if config.get("responseMimeType") == "application/json":
        return OutputFormat(kind=OutputFormat.KIND_JSON_OBJECT)
    return None


def _tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in body.get("tools") or ():
        for one in tool.get("functionDeclarations") or ():
            given = json_schema(one.get("parameters") or {})
            schema = one.get("parametersJsonSchema") or given or _NO_PARAMETERS
            yield Tool(
                name=one["name"],
                description=one.get("description") or "",
                input_schema=to_json(schema),
            )


def _tool_choice(body: Mapping[str, Any]) -> tuple[ToolChoice, list[str] | None]:
    """Return the choice, and the names of the allowed tools, or None for all."""
    config = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    allowed = config.get("allowedFunctionNames") or None
    match config.get("mode"):
        case "NONE":
            return ToolChoice(mode=ToolChoice.MODE_NONE), None
        case "ANY" if allowed and len(allowed) == 1:
            return ToolChoice(mode=ToolChoice.MODE_TOOL, name=allowed[0]), None
        case "ANY":
            return ToolChoice(mode=ToolChoice.MODE_ANY), allowed
    return ToolChoice(), allowed


def _texts(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    return [part["text"] for part in parts if part.get("text") and not part.get("thought")]


def _message(content: Mapping[str, Any]) -> Message:
    is_model = content.get("role") == "model"
    role = conversation_pb2.ROLE_ASSISTANT if is_model else conversation_pb2.ROLE_USER
    blocks = [block for part in content["parts"] if (block := _block(part)) is not None]
    return Message(role=role, blocks=blocks)


def _block(part: Mapping[str, Any]) -> Block | None:
    """Return the block of a part; None for parts that the sandbox ignores."""
    if function_response := part.get("functionResponse"):
        return Block(tool_result=_result(function_response))
    if call := part.get("functionCall"):
        written = to_json(call.get("args") or {}).decode()
        return Block(tool_use=ToolUse(id=call.get("id", ""), name=call["name"], input=written))
    if "inlineData" in part or "fileData" in part:
        return Block(media=_media(part))
    if part.get("thought"):
        return Block(thinking=Thinking(text=part["text"]))
    return Block(text=part["text"]) if part.get("text") else None


def _result(function_response: Mapping[str, Any]) -> ToolResult:
    response = function_response.get("response") or {}
    output = response.get("output", response.get("error", response))
    text = output if isinstance(output, str) else to_json(output).decode()
    return ToolResult(
        tool_use_id=function_response.get("id", ""),
        blocks=[Block(text=text)],
        is_error="error" in response,
    )


def _media(part: Mapping[str, Any]) -> Media:
    if file := part.get("fileData"):
        mime = file.get("mimeType", "")
        return Media(kind=_kind(mime), mime_type=mime, url=file["fileUri"])
    blob = part["inlineData"]
    mime = blob["mimeType"]
    return Media(kind=_kind(mime), mime_type=mime, data=decode(blob["data"]))


def _kind(mime: str) -> MediaKind.ValueType:
    return _KINDS.get(mime.partition("/")[0], conversation_pb2.MEDIA_KIND_DOCUMENT)


def whole(answer: Answer, head: Mapping[str, Any]) -> Json:
    """Write a whole answer; `head` has `responseId` and `modelVersion`."""
    candidates = []
    for index, choice in enumerate(answer.choices):
        parts = [part for block in choice.blocks for part in _parts(block, choice.blocks)]
        if parts and "text" in parts[-1] and "thought" not in parts[-1]:
            parts[-1]["thoughtSignature"] = sign(parts[-1]["text"])
        candidate = _candidate(index, parts, choice.finish)
        if answer.top_logprobs is not None:
            text = "".join(block.text or block.refusal for block in choice.blocks)
            candidate["logprobsResult"] = _logprobs(text, answer.top_logprobs)
        candidates.append(candidate)
    return {"candidates": candidates, "usageMetadata": _usage(answer.usage), **head}


def _candidate(index: int, parts: list[Json], finish: Finish | None = None) -> Json:
    end = {"finishReason": _FINISH[finish.reason]} if finish else {}
    return {"content": {"parts": parts, "role": "model"}, **end, "index": index}


def _parts(block: Block, blocks: Iterable[Block]) -> list[Json]:
    match block.WhichOneof("kind"):
        case "redacted_thinking":
            return []
        case "thinking":
            return [{"text": block.thinking.text, "thought": True}]
        case "tool_use":
            return [_called(block.tool_use, blocks)]
    return [{"text": block.text or block.refusal}]


def _called(call: ToolUse, blocks: Iterable[Block]) -> Json:
    """Write a call; the first one of an answer is signed."""
    function = {"id": call.id, "name": call.name, "args": orjson.loads(call.input)}
    part: Json = {"functionCall": function}
    first = next(block.tool_use for block in blocks if block.HasField("tool_use"))
    return {**part, "thoughtSignature": sign(function)} if call.id == first.id else part


def _usage(usage: Usage) -> Json:
    read, written = prompt_tokens(usage), usage.output_tokens
    cached, reasoning = usage.cache_read_input_tokens, usage.reasoning_tokens
    return {
        "promptTokenCount": read,
        "candidatesTokenCount": written - reasoning,
        "totalTokenCount": read + written,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": read}],
        **({"cachedContentTokenCount": cached} if cached else {}),
        **({"thoughtsTokenCount": reasoning} if reasoning else {}),
    }


def _logprobs(text: str, top: int) -> Json:
    chosen = [{"token": token, "tokenId": 1, "logProbability": 0.0} for token in tokens(text)]
    most = [{"candidates": [one]} for one in chosen] if top else []
    return {"chosenCandidates": chosen, "topCandidates": most}


class ChunkWriter:
    """Writes the events of one streamed answer, step by step."""

    def __init__(self, answer: Answer, head: Mapping[str, Any]) -> None:
        self._answer = answer
        self._head = head

    def write(self, step: Step) -> list[Json]:
        """Return the events of one step."""
        match step:
            case Delta(choice, _, block, text):
                return self._delta(choice, block, text)
            case BlockEnded(choice, _, block) if block.HasField("tool_use"):
                blocks = self._answer.choices[choice].blocks
                return [self._event(_candidate(choice, [_called(block.tool_use, blocks)]))]
            case ChoiceEnded(choice, finish):
                end: Json = {"text": ""}
                blocks = self._answer.choices[choice].blocks
                if blocks and _is_text(blocks[-1]):
                    end["thoughtSignature"] = sign("")
                return [self._event(_candidate(choice, [end], finish))]
        return []

    def _delta(self, choice: int, block: Block, text: str) -> list[Json]:
        if block.HasField("thinking"):
            return [self._event(_candidate(choice, [{"text": text, "thought": True}]))]
        if not _is_text(block):
            return []
        candidate = _candidate(choice, [{"text": text}])
        if self._answer.top_logprobs is not None:
            candidate["logprobsResult"] = _logprobs(text, self._answer.top_logprobs)
        return [self._event(candidate)]

    def _event(self, candidate: Json) -> Json:
        usage = _usage(self._answer.usage)
        return {"candidates": [candidate], "usageMetadata": usage, **self._head}


def _is_text(block: Block) -> bool:
    return block.HasField("text") or block.HasField("refusal")


def error_body(error: SandboxError) -> Json:
    """Write an error as a `google.rpc.Status`."""
    details: list[Json] = []
    if error.kind == "authentication":
        reason = {"reason": "API_KEY_INVALID", "domain": "googleapis.com"}
        details.append({"@type": f"{_TYPE}ErrorInfo", **reason})
    if error.retry_after_s is not None:
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{error.retry_after_s}s"})
    message = error.message
    if isinstance(error, TooLongError):
        message = (
            f"The input token count ({error.size}) exceeds the maximum number of tokens allowed "
            f"({error.most})."
        )
    status: Json = {"code": error.status, "message": message, "status": _ERRORS[error.kind]}
    return {"error": {**status, "details": details} if details else status}


def size_of_vectors(body: Mapping[str, Any]) -> int | None:
    """Return the first `outputDimensionality` of a `batchEmbedContents` body, used for all."""
    return next((one.get("outputDimensionality") for one in body.get("requests") or ()), None)


def texts_to_embed(body: Mapping[str, Any]) -> list[str]:
    """Return the texts of a `batchEmbedContents` accepted body."""
    return ["".join(_texts(one["content"]["parts"])) for one in body.get("requests") or ()]

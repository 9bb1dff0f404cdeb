"""Gemini's API: a checked body into a prompt, an answer into JSON.

Source: Google's reference of `generateContent`. Function calls and the ends of texts are
signed, as Gemini 3 signs them, and `is_signed` knows the sandbox's own signatures.
"""

import base64
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import orjson

from services.sandbox.model.models import Kind, SandboxError, TooLongError
from services.sandbox.model.play import ChoiceEnded, Delta, PieceEnded, Step
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
    tokens,
)
from services.sandbox.openai_wire import decode

Json = dict[str, Any]

_FINISH = {
    Finish.END_TURN: "STOP",
    Finish.STOP_SEQUENCE: "STOP",
    Finish.TOOL_USE: "STOP",
    Finish.MAX_TOKENS: "MAX_TOKENS",
    Finish.REFUSAL: "SAFETY",
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
# How the same models sign a call in OpenAI's dialect, where its arguments come later.
OF_CHATS = "c2FuZGJveCBzaWduYXR1cmU="
# What Google documents for function calls that another model made.
_SKIPPED = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_NO_PARAMETERS = {"type": "object"}
_TYPE = "type.googleapis.com/google.rpc."


def sign(part: object) -> str:
    """Return the signature of what a part holds, the same each time."""
    data = b"sandbox thought\0" + orjson.dumps(part, option=orjson.OPT_SORT_KEYS)
    return base64.b64encode(sha256(data).digest()).decode()


def is_signed(part: Mapping[str, Any]) -> bool:
    """Return whether the signature of a part is the sandbox's own for it."""
    signature = part["thoughtSignature"]
    if signature == OF_CHATS or signature in _SKIPPED:
        return True
    if "functionCall" in part:
        return bool(signature == sign(part["functionCall"]))
    # In a stream the signature of a text comes with an empty part after it.
    return signature in (sign(part.get("text", "")), sign(""))


def read_prompt(body: Mapping[str, Any]) -> Prompt:
    """Read the body of a request without a problem."""
    body = body.get("generateContentRequest") or body
    config = body.get("generationConfig") or {}
    thinking = config.get("thinkingConfig") or {}
    is_json = config.get("responseMimeType") == "application/json"
    schema = config.get("responseJsonSchema", config.get("responseSchema"))
    choice, allowed = _tool_choice(body)
    tools = tuple(_tools(body))
    system = _texts((body.get("systemInstruction") or {}).get("parts") or ())
    turns = [Turn("system", system)] if system else []
    return Prompt(
        turns=(*turns, *map(_turn, body["contents"])),
        tools=tuple(tool for tool in tools if allowed is None or tool.name in allowed),
        tool_choice=choice,
        stop=tuple(config.get("stopSequences") or ()),
        schema=schema,
        json_object=is_json and schema is None,
        max_tokens=config.get("maxOutputTokens"),
        thinking=thinking.get("includeThoughts") is True and thinking.get("thinkingBudget") != 0,
        top_logprobs=config.get("logprobs", 0) if config.get("responseLogprobs") else None,
        n=config.get("candidateCount") or 1,
    )


def _tools(body: Mapping[str, Any]) -> Iterator[Tool]:
    for tool in body.get("tools") or ():
        for one in tool.get("functionDeclarations") or ():
            schema = one.get("parametersJsonSchema") or one.get("parameters") or _NO_PARAMETERS
            yield Tool(one["name"], schema, one.get("description") or "")


def _tool_choice(body: Mapping[str, Any]) -> tuple[ToolChoice, list[str] | None]:
    """Return the choice, and the names that it is limited to, if it is."""
    config = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    allowed = config.get("allowedFunctionNames") or None
    match config.get("mode"):
        case "NONE":
            return ToolChoice("none"), None
        case "ANY" if allowed and len(allowed) == 1:
            return ToolChoice("tool", allowed[0]), None
        case "ANY":
            return ToolChoice("any"), allowed
    return ToolChoice(), allowed


def _texts(parts: Any) -> tuple[str, ...]:
    return tuple(part["text"] for part in parts if part.get("text") and not part.get("thought"))


def _turn(content: Mapping[str, Any]) -> Turn:
    parts = content["parts"]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    return Turn(
        "assistant" if content.get("role") == "model" else "user",
        texts=_texts(parts),
        media=tuple(_medium(part) for part in parts if "inlineData" in part or "fileData" in part),
        results=tuple(map(_result, results)),
        other_characters=sum(map(_other_characters, parts)),
    )


def _result(given: Mapping[str, Any]) -> ToolResult:
    response = given.get("response") or {}
    told = response.get("output", response.get("error", response))
    text = told if isinstance(told, str) else orjson.dumps(told).decode()
    return ToolResult(given.get("id", ""), text, "error" in response)


def _other_characters(part: Mapping[str, Any]) -> int:
    if call := part.get("functionCall"):
        return len(call["name"]) + characters(call.get("args") or {})
    return len(part["text"]) if part.get("thought") else 0


def _medium(part: Mapping[str, Any]) -> Medium:
    if file := part.get("fileData"):
        mime = file.get("mimeType", "")
        return Medium(_kind(mime), mime, reference=file["fileUri"])
    blob = part["inlineData"]
    return Medium(_kind(blob["mimeType"]), blob["mimeType"], decode(blob["data"]))


def _kind(mime: str) -> MediumKind:
    kinds: dict[str, MediumKind] = {"image": "image", "audio": "audio", "video": "video"}
    return kinds.get(mime.partition("/")[0], "document")


def whole(answer: Answer, head: Mapping[str, Any]) -> Json:
    """Write a whole answer; `head` holds `responseId` and `modelVersion`."""
    candidates = []
    for index, reply in enumerate(answer.replies):
        parts = [part for piece in reply.pieces for part in _parts(piece, reply)]
        if parts and "text" in parts[-1] and "thought" not in parts[-1]:
            parts[-1]["thoughtSignature"] = sign(parts[-1]["text"])
        candidate = _candidate(index, parts, reply)
        if answer.top_logprobs is not None:
            written = [piece.text for piece in reply.pieces if isinstance(piece, Text)]
            candidate["logprobsResult"] = _logprobs("".join(written), answer.top_logprobs)
        candidates.append(candidate)
    return {"candidates": candidates, "usageMetadata": _usage(answer.usage), **head}


def _candidate(index: int, parts: list[Json], reply: Reply | None = None) -> Json:
    end = {"finishReason": _FINISH[reply.finish]} if reply else {}
    return {"content": {"parts": parts, "role": "model"}, **end, "index": index}


def _parts(piece: Piece, reply: Reply) -> list[Json]:
    match piece:
        case Text():
            return [{"text": piece.text}]
        case Thinking():
            return [] if piece.redacted else [{"text": piece.text, "thought": True}]
        case Call():
            return [_called(piece, reply)]


def _called(call: Call, reply: Reply) -> Json:
    function = {"id": call.key, "name": call.name, "args": orjson.loads(call.input)}
    part: Json = {"functionCall": function}
    first = next(piece for piece in reply.pieces if isinstance(piece, Call))
    return {**part, "thoughtSignature": sign(function)} if call is first else part


def _usage(usage: Usage) -> Json:
    cached = {"cachedContentTokenCount": usage.cache_read} if usage.cache_read else {}
    thoughts = {"thoughtsTokenCount": usage.reasoning} if usage.reasoning else {}
    return {
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.prompt + usage.output,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.prompt}],
        **cached,
        **thoughts,
    }


def _logprobs(text: str, top: int) -> Json:
    chosen = [{"token": token, "tokenId": 1, "logProbability": 0.0} for token in tokens(text)]
    most = [{"candidates": [one]} for one in chosen] if top else []
    return {"chosenCandidates": chosen, "topCandidates": most}


class ChunkWriter:
    """Writes the events of one streamed answer, in the order of its steps."""

    def __init__(self, answer: Answer, head: Mapping[str, Any]) -> None:
        self._answer = answer
        self._head = head

    def write(self, step: Step) -> list[Json]:
        """Return the events of one step."""
        match step:
            case Delta(choice, _, Text() as piece, text):
                candidate = _candidate(choice, [{"text": text}])
                if self._answer.top_logprobs is not None:
                    top = self._answer.top_logprobs
                    candidate["logprobsResult"] = _logprobs(text, top)
                return [self._event(candidate)]
            case Delta(choice, _, Thinking() as piece, text) if not piece.redacted:
                return [self._event(_candidate(choice, [{"text": text, "thought": True}]))]
            case PieceEnded(choice, _, Call() as call):
                reply = self._answer.replies[choice]
                return [self._event(_candidate(choice, [_called(call, reply)]))]
            case ChoiceEnded(choice, reply):
                end: Json = {"text": ""}
                if reply.pieces and isinstance(reply.pieces[-1], Text):
                    end["thoughtSignature"] = sign("")
                return [self._event(_candidate(choice, [end], reply))]
        return []

    def _event(self, candidate: Json) -> Json:
        usage = _usage(self._answer.usage)
        return {"candidates": [candidate], "usageMetadata": usage, **self._head}


def error_body(error: SandboxError) -> Json:
    """Write a failure as a `google.rpc.Status`."""
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
    told: Json = {"code": error.status, "message": message, "status": _ERRORS[error.kind]}
    return {"error": {**told, "details": details} if details else told}


def texts_to_embed(body: Mapping[str, Any]) -> list[str]:
    """Return the texts of a body of `batchEmbedContents` without a problem."""
    return ["".join(_texts(one["content"]["parts"])) for one in body.get("requests") or ()]

"""Ollama: ignores unknown fields, and sends each tool call in one piece.

Source: https://github.com/ollama/ollama, `openai/openai.go`.
"""

from services.sandbox.model.models import SandboxError
from tests.upstream.personalities.base import (
    ANY_TOOL_NAME,
    COMMON,
    Body,
    Chunks,
    Json,
    Personality,
    in_choices,
    readable,
    refused,
    thoughts_as,
    with_usage,
)

_READ = COMMON | {"seed"}
_MODEL_ALIASES = {"qwen3:8b": "echo", "llama3.1:8b": "text"}
_WITHOUT_THINKING = frozenset({"text", "vision", "llama3.1:8b"})
_EFFORTS = ("high", "medium", "low", "none")
_TYPES = {400: "invalid_request_error", 404: "not_found_error"}
_rename = thoughts_as("reasoning")


def _convert_request(body: Body) -> Body:
    reasoning = body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    effort = effort or body.get("reasoning_effort")
    model = body.get("model")
    if effort is not None and effort not in _EFFORTS:
        must = ", ".join(f'"{name}"' for name in _EFFORTS[:-1])
        raise refused(f"invalid reasoning value: '{effort}' (must be {must}, or \"none\")")
    thinks = isinstance(model, str) and model not in _WITHOUT_THINKING
    if effort not in (None, "none") and not thinks:
        raise refused(f'"{model}" does not support thinking')
    converted = readable(body, _READ)
    converted["reasoning_effort"] = effort or ("medium" if thinks else "none")
    return converted


def _chunks() -> Chunks:
    held: list[Json] = []

    def whole_calls(chunk: Json) -> list[Json]:
        """Return the chunks to send now; tool calls are held until the end of their choice."""
        for choice in chunk["choices"]:
            for piece in choice["delta"].get("tool_calls", ()):
                function = piece["function"]
                if "id" in piece:
                    held.append({**piece, "function": {**function}})
                else:
                    held[-1]["function"]["arguments"] += function["arguments"]
            if "tool_calls" in choice["delta"]:
                return []
            if choice["finish_reason"] and held:
                delta = {"role": "assistant", "content": "", "tool_calls": [*held]}
                held.clear()
                calls = {**choice, "delta": delta, "finish_reason": None}
                return [{**chunk, "choices": [calls]}, chunk]
        return [chunk]

    return whole_calls


def _convert_answer(answer: Json) -> Json:
    converted = with_usage(in_choices(answer, _convert_message), _usage)
    return {**converted, "system_fingerprint": "fp_ollama"}


def _convert_message(message: Json) -> Json:
    converted = {"role": "assistant", **_rename(message)}
    converted["content"] = converted.get("content") or ""
    return converted


def _usage(usage: Json) -> Json:
    return {name: usage[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}


def _failure(error: SandboxError, body: Json) -> Json:
    kind = _TYPES.get(error.status, "api_error")
    return {"error": {"message": error.message, "type": kind, "param": None, "code": None}}


OLLAMA = Personality(
    "ollama",
    "ignores unknown fields; thinking is refused by models without it (text, vision); a stream "
    "tells calls whole, at the end",
    model_aliases=_MODEL_ALIASES,
    convert_request=_convert_request,
    chunks=_chunks,
    convert_answer=_convert_answer,
    failure=_failure,
    tool_name=ANY_TOOL_NAME,
)

"""OpenRouter: comments before the first chunk, and thinking both as text and as details.

Source: https://openrouter.ai/docs/api-reference (streaming, reasoning tokens, errors).
"""

from services.sandbox.model.models import SandboxError
from tests.upstream.personalities.base import (
    ANY_TOOL_NAME,
    COMMON,
    Body,
    Json,
    Personality,
    in_choices,
    readable,
    thoughts_as,
    with_usage,
)

_READ = COMMON | {
    *("max_completion_tokens", "seed", "logit_bias", "logprobs", "top_logprobs"),
    *("parallel_tool_calls", "prediction", "verbosity", "user", "metadata"),
}
_DOLLARS_A_TOKEN = 0.000_001
_rename = thoughts_as("reasoning")


def _convert_request(body: Body) -> Body:
    converted = readable(body, _READ)
    reasoning = body.get("reasoning")
    if isinstance(reasoning, dict) and "reasoning_effort" not in converted:
        thinks = reasoning.get("enabled") is not False
        converted["reasoning_effort"] = reasoning.get("effort", "medium") if thinks else "none"
    return converted


def _convert_answer(answer: Json) -> Json:
    converted = with_usage(in_choices(answer, _convert_message), _usage)
    converted["id"] = f"gen-{converted['id'].removeprefix('chatcmpl-')}"
    converted["provider"] = "Sandbox"
    for choice in converted["choices"]:
        finish = choice["finish_reason"]
        choice["native_finish_reason"] = finish and finish.upper()
    if not converted["choices"]:
        # OpenRouter sends usage with an empty choice.
        delta = {"role": "assistant", "content": ""}
        converted["choices"] = [
            {"index": 0, "delta": delta, "finish_reason": None, "native_finish_reason": None}
        ]
    return converted


def _convert_message(message: Json) -> Json:
    message = _rename(message)
    if "reasoning" in message:
        detail = {"type": "reasoning.text", "text": message["reasoning"], "format": "unknown"}
        message["reasoning_details"] = [{**detail, "index": 0}]
    return message


def _usage(usage: Json) -> Json:
    return {**usage, "cost": usage["total_tokens"] * _DOLLARS_A_TOKEN, "is_byok": False}


def _failure(error: SandboxError, body: Json) -> Json:
    return {"error": {"message": error.message, "code": error.status}, "user_id": "user_sandbox"}


OPENROUTER = Personality(
    "openrouter",
    "streams begin with a comment; reasoning and reasoning_details, provider, usage.cost; "
    "numbers as error codes",
    model_aliases={"vendor/model": "echo"},
    convert_request=_convert_request,
    opening=b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n",
    convert_answer=_convert_answer,
    failure=_failure,
    tool_name=ANY_TOOL_NAME,
)

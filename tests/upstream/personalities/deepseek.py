"""DeepSeek: thinks by default, and requires its thinking back in messages with tool calls.

Source: https://api-docs.deepseek.com/guides/thinking_mode and the reference of chat completions.
"""

from services.sandbox.model.models import SandboxError
from tests.upstream.personalities.base import (
    COMMON,
    Body,
    Json,
    Personality,
    objects,
    readable,
    refused,
    with_usage,
)

_CODE = "invalid_request_error"
_READ = COMMON | {"logprobs", "top_logprobs"}


def _convert_request(body: Body) -> Body:
    thinking = body.get("thinking")
    thinks = not isinstance(thinking, dict) or thinking.get("type") != "disabled"
    if thinks:
        for _, message in objects(body.get("messages")):
            if message.get("tool_calls") and message.get("reasoning_content") is None:
                raise refused(
                    "The `reasoning_content` in the thinking mode must be passed back to the API.",
                    code=_CODE,
                )
    converted = readable(body, _READ)
    converted["reasoning_effort"] = converted.get("reasoning_effort", "high") if thinks else "none"
    return converted


def _convert_answer(answer: Json) -> Json:
    return with_usage(answer, _usage)


def _usage(usage: Json) -> Json:
    hit = usage["prompt_tokens_details"]["cached_tokens"]
    return {
        **usage,
        "prompt_tokens_details": {"cached_tokens": hit},
        "prompt_cache_hit_tokens": hit,
        "prompt_cache_miss_tokens": usage["prompt_tokens"] - hit,
    }


def _failure(error: SandboxError, body: Json) -> Json:
    return {"error": {**body["error"], "param": None, "code": _CODE}}


DEEPSEEK = Personality(
    "deepseek",
    "thinks by itself; wants reasoning_content back beside tool_calls; ignores unknown fields",
    model_aliases={"deepseek-v4-pro": "echo", "deepseek-v4-flash": "echo"},
    convert_request=_convert_request,
    convert_answer=_convert_answer,
    failure=_failure,
)

"""vLLM: `reasoning`, extra fields in every answer, numeric error codes.

Source: https://docs.vllm.ai (reasoning outputs, the OpenAI-compatible server).
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
)

_READ = COMMON | {
    *("max_completion_tokens", "seed", "n", "logit_bias", "logprobs", "top_logprobs"),
    *("parallel_tool_calls", "user"),
}
_TYPES = {400: "BadRequestError", 401: "Unauthorized", 404: "NotFoundError"}
_rename = thoughts_as("reasoning")


def _convert_request(body: Body) -> Body:
    converted = readable(body, _READ)
    template = body.get("chat_template_kwargs")
    if isinstance(template, dict) and template.get("enable_thinking") is False:
        converted["reasoning_effort"] = "none"
    return converted


def _convert_answer(answer: Json) -> Json:
    completion = in_choices(answer, _rename)
    for choice in completion["choices"]:
        choice |= {"stop_reason": None, "token_ids": None}
    if completion["object"] == "chat.completion":
        completion |= {"prompt_logprobs": None, "kv_transfer_params": None}
    return completion


def _failure(error: SandboxError, body: Json) -> Json:
    kind = _TYPES.get(error.status, "InternalServerError")
    error_object = {"message": error.message, "type": kind, "param": body["error"]["param"]}
    return {"error": {**error_object, "code": error.status}}


VLLM = Personality(
    "vllm",
    "ignores unknown fields; reasoning, stop_reason; numbers as error codes",
    model_aliases={"Qwen/Qwen3-8B": "echo"},
    convert_request=_convert_request,
    convert_answer=_convert_answer,
    failure=_failure,
    tool_name=ANY_TOOL_NAME,
)

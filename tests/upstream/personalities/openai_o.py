"""OpenAI's reasoning models (o-series, GPT-5): no sampling, and `max_completion_tokens`.

Source: https://platform.openai.com/docs/guides/reasoning and error messages.
"""

from tests.upstream.personalities.base import (
    Body,
    Json,
    Personality,
    RefusedError,
    in_choices,
    objects,
    refused,
    thoughts_as,
)

_EFFORTS = ("minimal", "low", "medium", "high")
_UNSUPPORTED = ("presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias")
_silent = thoughts_as("")


def _convert_request(body: Body) -> Body:
    if body.get("max_tokens") is not None:
        raise refused(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
        )
    for name in ("temperature", "top_p"):
        if body.get(name) not in (None, 1):
            raise refused(
                f"Unsupported value: '{name}' does not support {body[name]} with this model. "
                "Only the default (1) value is supported.",
                name,
                "unsupported_value",
            )
    for name in _UNSUPPORTED:
        if body.get(name):
            raise _unsupported(name)
    effort = body.get("reasoning_effort")
    _check_effort(effort, "reasoning_effort")
    for index, message in objects(body.get("messages")):
        for name in ("reasoning_content", "reasoning", "reasoning_details"):
            if name in message:
                where = f"messages[{index}].{name}"
                raise refused(f"Unknown parameter: '{where}'.", where, "unknown_parameter")
    return {**body, "reasoning_effort": effort or "medium"}


def _convert_responses_request(body: Body) -> Body:
    for name in ("temperature", "top_p", "top_logprobs"):
        if body.get(name) is not None:
            raise _unsupported(name)
    value = body.get("reasoning")
    reasoning = value if isinstance(value, dict) else {}
    effort = reasoning.get("effort")
    _check_effort(effort, "reasoning.effort")
    return {**body, "reasoning": {**reasoning, "effort": effort or "medium"}}


def _unsupported(name: str) -> RefusedError:
    return refused(
        f"Unsupported parameter: '{name}' is not supported with this model.",
        name,
        "unsupported_parameter",
    )


def _check_effort(effort: object, name: str) -> None:
    if effort is not None and effort not in _EFFORTS:
        raise refused(
            f"Unsupported value: '{name}' does not support '{effort}' with this model. "
            "Supported values are: 'minimal', 'low', 'medium', and 'high'.",
            name,
            "unsupported_value",
        )


def _convert_answer(answer: Json) -> Json:
    return in_choices(answer, _silent)


OPENAI_O = Personality(
    "openai-o",
    "refuses max_tokens, temperature and top_p but 1, penalties, unknown efforts; thoughts are "
    "not shown",
    model_aliases={"gpt-5": "echo", "o3": "echo"},
    convert_request=_convert_request,
    convert_answer=_convert_answer,
    convert_responses_request=_convert_responses_request,
)

"""Translate thinking settings and `top_k` to `additionalModelRequestFields`. Pure.

Each family has fields of its own. Sources: the user guide, "Extended thinking" and "Adaptive
thinking"; the guide of Nova 2, "Using reasoning"; the pages of OpenAI's and Moonshot's models.
"""

from typing import Any

from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingConfig
from services.inference.providers.anthropic.reasoning import Reasoning
from services.inference.providers.base import Target
from services.inference.providers.bedrock.families import Family
from services.inference.providers.bedrock.fields import BedrockFields

Json = dict[str, Any]

# Efforts of the families other than Claude, by the canonical ones.
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
_STRONGEST = "high"
# Budgets up to which an effort suffices.
_BUDGETS = {"low": 2048, "medium": 8192}
# Sampling parameters that Nova 2 rejects at the effort `high`.
_NOT_AT_HIGH = ("maxTokens", "temperature", "topP")


def claude_thinking(reasoning: Reasoning) -> Json:
    """Return the fields of Claude's thinking."""
    written: Json = {}
    if reasoning.config:
        written["thinking"] = reasoning.config
    if reasoning.effort:
        written["output_config"] = {"effort": reasoning.effort}
    return written


def other_thinking(request: GenerateRequest, fields: BedrockFields, config: Json) -> Json:
    """Return the fields of thinking of the families other than Claude.

    Args:
        request: the request.
        fields: gets the settings that are dropped.
        config: the `inferenceConfig`, from which Nova 2's strongest effort takes some fields.
    """
    if not request.HasField("thinking"):
        return {}
    thinking = request.thinking
    fields.leave_out(thinking.extra, "thinking.extra")
    is_off = thinking.mode == ThinkingConfig.MODE_DISABLED or thinking.effort == "none"
    effort = "" if is_off else _effort_of(thinking)
    match fields.family:
        case Family.NOVA_2 if is_off:
            return {"reasoningConfig": {"type": "disabled"}}
        case Family.NOVA_2 if effort:
            if effort == _STRONGEST and "maxTokens" in config:
                effort = "medium"  # the bound is kept
                fields.drop("thinking.effort")
            elif effort == _STRONGEST:
                for name in config.keys() & _NOT_AT_HIGH:
                    del config[name]
                    fields.drop("top_p" if name == "topP" else name)
            return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
        case Family.GPT_OSS | Family.KIMI if effort:
            return {"reasoning_effort": effort}
        case Family.GPT if effort or is_off:
            return {"reasoning": {"effort": effort or "none"}}
    if not is_off and (effort or thinking.mode != ThinkingConfig.MODE_UNSPECIFIED):
        fields.drop("thinking")
    return {}


def _effort_of(thinking: ThinkingConfig) -> str:
    """Return an effort that all families know; "" for the default."""
    if thinking.effort:
        return _EFFORTS.get(thinking.effort, _STRONGEST)
    if thinking.HasField("budget_tokens"):
        efforts = (name for name, most in _BUDGETS.items() if thinking.budget_tokens <= most)
        return next(efforts, _STRONGEST)
    return "medium" if thinking.mode == ThinkingConfig.MODE_ENABLED else ""


def top_k(value: int, family: Family) -> Json:
    """Return the fields of `top_k`; empty if the family has none."""
    if family is Family.CLAUDE:
        return {"top_k": value}
    if family in (Family.NOVA, Family.NOVA_2):
        return {"inferenceConfig": {"topK": value}}
    return {}


def reasoning_of(request: GenerateRequest, fields: BedrockFields, target: Target) -> Reasoning:
    """Return Claude's thinking settings; without any for the other families."""
    if fields.family is Family.CLAUDE:
        return Reasoning(request, fields, target)
    return Reasoning(GenerateRequest(), fields, target)

"""Translate thinking settings to Gemini's `generationConfig.thinkingConfig`."""

from collections.abc import Sequence

from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingConfig
from services.inference.providers.base import Target
from services.inference.providers.googles_models import is_before_3, thinks_by_budget
from services.inference.providers.opaque_json import Json
from services.inference.providers.request_fields import RequestFields

# Token budgets of efforts for Gemini 2.5, as in Google's OpenAI-compatible API.
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192}
_MOST_BUDGET = 24576
_LEAST_BUDGET = 512  # accepted by all 2.5 models
_NO_BUDGET = {"gemini-2.5-pro": 128}  # thinking cannot be disabled
_DYNAMIC = -1
_EFFORTS = ("minimal", "low", "medium", "high")
_USUAL_EFFORTS = ("low", "medium", "high")
_REFUSABLE = frozenset({"thinking", "reasoning_effort"})


def thinking_config(request: GenerateRequest, fields: RequestFields, target: Target) -> Json:
    """Return the `thinkingConfig` of a request, empty for the default."""
    asked_thinking = request.thinking
    if asked_thinking.mode == ThinkingConfig.MODE_OPAQUE:
        fields.drop("thinking")
        return {}
    fields.leave_out(asked_thinking.extra, "thinking.extra")
    if asked_thinking.mode == ThinkingConfig.MODE_UNSPECIFIED and not asked_thinking.effort:
        return {}
    off = asked_thinking.mode == ThinkingConfig.MODE_DISABLED or asked_thinking.effort == "none"
    by_budget = thinks_by_budget(target.upstream)
    if _REFUSABLE & fields.refused_fields or (is_before_3(target.upstream) and not by_budget):
        if not off:
            fields.drop("thinking")
        return {}
    if off:
        return _least(fields, target, by_budget)
    how_much = _budget(request) if by_budget else _level(asked_thinking, target)
    return {**how_much, "includeThoughts": True}


def _least(fields: RequestFields, target: Target, by_budget: bool) -> Json:
    if by_budget:
        name = target.upstream.removeprefix("models/")
        least = next((n for model, n in _NO_BUDGET.items() if name.startswith(model)), 0)
        if least:
            fields.drop("thinking")
        return {"thinkingBudget": least}
    fields.drop("thinking")  # Gemini 3 and later always think a little
    return {"thinkingLevel": _known(target)[0].upper()}


def _budget(request: GenerateRequest) -> Json:
    asked_thinking = request.thinking
    if asked_thinking.HasField("budget_tokens"):
        budget = asked_thinking.budget_tokens
    elif asked_thinking.effort:
        budget = _BUDGETS.get(asked_thinking.effort, _MOST_BUDGET)
    else:
        return {"thinkingBudget": _DYNAMIC}
    if request.HasField("max_tokens"):
        # Thinking counts towards `maxOutputTokens`; leave room for the answer.
        budget = min(budget, request.max_tokens * 3 // 4)
    return {"thinkingBudget": max(_LEAST_BUDGET, min(budget, _MOST_BUDGET))}


def _level(thinking: ThinkingConfig, target: Target) -> Json:
    effort = thinking.effort
    if not effort and thinking.HasField("budget_tokens"):
        names = (name for name in ("low", "medium") if thinking.budget_tokens <= 2 * _BUDGETS[name])
        effort = next(names, "high")
    if not effort:
        return {}
    efforts = _known(target)
    rank = _EFFORTS.index(effort) if effort in _EFFORTS else len(_EFFORTS)
    weaker = [name for name in efforts if _EFFORTS.index(name) <= rank]
    return {"thinkingLevel": (weaker[-1] if weaker else efforts[0]).upper()}


def _known(target: Target) -> Sequence[str]:
    """Return the levels that a model supports, weakest first."""
    return [name for name in target.efforts if name in _EFFORTS] or _USUAL_EFFORTS

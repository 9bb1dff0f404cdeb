"""Translate thinking settings to Anthropic's `thinking` and `output_config.effort`."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingConfig, ToolChoice
from services.inference.learned.refusals import THINKING_WITH_FORCED_TOOL
from services.inference.providers.anthropic.fields import AnthropicFields
from services.inference.providers.base import Target

# Anthropic's minimum budget; a budget must also be less than `max_tokens`.
_LEAST_BUDGET = 1024
# Tokens reserved for the answer if the caller gave an effort instead of a budget.
_LEAST_ANSWER, _MOST_ANSWER = 512, 4096
# Thinking budgets in tokens, by effort.
_BUDGETS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 24576,
    "xhigh": 24576,
    "max": 24576,
}
_USUAL_EFFORTS = ("low", "medium", "high")
_MODES = {
    ThinkingConfig.MODE_ENABLED: "enabled",
    ThinkingConfig.MODE_DISABLED: "disabled",
    ThinkingConfig.MODE_ADAPTIVE: "adaptive",
}
_TURNS = (conversation_pb2.ROLE_USER, conversation_pb2.ROLE_ASSISTANT)
_THOUGHTS = ("thinking", "redacted_thinking")
# Anthropic's minimum of `top_p` with thinking.
_LEAST_TOP_P = 0.95


class Reasoning:
    """The translated thinking settings of a request.

    Attributes:
        config: the field `thinking`; empty if omitted.
        effort: the field `output_config.effort`, or "".
        budget: the budget in tokens that an effort was converted to, or 0.
    """

    def __init__(self, request: GenerateRequest, fields: AnthropicFields, target: Target) -> None:
        """Translate the settings for a model."""
        self.config: dict[str, Any] = {}
        self.effort = ""
        self.budget = 0
        if not request.HasField("thinking"):
            return
        thinking_config = request.thinking
        if thinking_config.mode == ThinkingConfig.MODE_UNSPECIFIED and not fields.is_native:
            self._take_effort(request, fields, target)
        else:
            self.config = fields.native_fields(thinking_config.extra, "thinking.extra")
            mode = _MODES.get(thinking_config.mode)
            if mode:
                self.config["type"] = mode
            if thinking_config.HasField("budget_tokens"):
                self.config["budget_tokens"] = thinking_config.budget_tokens
            self.effort = thinking_config.effort
        if not fields.takes_budgets and self.config.get("type") == "enabled":
            self._take_no_budget(fields)
        if self.thinks and not self._may_think(request, fields):
            self._do_not_think(fields)

    @property
    def thinks(self) -> bool:
        """Whether the model thinks, or may."""
        return bool(self.config) and self.config.get("type") != "disabled"

    def bars(self, name: str, value: float) -> bool:
        """Return whether Anthropic rejects a sampling parameter in combination with thinking."""
        if not self.thinks:
            return False
        if name == "temperature":
            return value != 1
        return name == "top_k" or value < _LEAST_TOP_P

    def _take_effort(
        self, request: GenerateRequest, fields: AnthropicFields, target: Target
    ) -> None:
        """Convert an effort to the model's kind of setting; drop it if that is not possible."""
        effort = request.thinking.effort
        if not effort:
            return
        if effort == "none":
            self.config = {"type": "disabled"}
            return
        if effort not in _BUDGETS:
            fields.drop("thinking.effort")  # specific to another provider, such as Groq's `default`
            return
        if target.adaptive:
            self.config = {"type": "adaptive"}
            self.effort = _adaptive_effort(effort, target.efforts)
            return
        bound = request.max_tokens or target.max_output_tokens
        # Thinking counts towards `max_tokens`; leave room for the answer.
        most = bound - _room(bound) if bound else _BUDGETS[effort]
        fits = most >= _LEAST_BUDGET
        if not fits or _forces_a_tool(request) or not _can_begin_to_think(request.messages):
            fields.drop("thinking.effort")
            return
        self.budget = min(_BUDGETS[effort], most)
        self.config = {"type": "enabled", "budget_tokens": self.budget}

    def _may_think(self, request: GenerateRequest, fields: AnthropicFields) -> bool:
        """Return whether the server accepts thinking in this request.

        What a caller of Anthropic's own dialect asks for is sent, unless the model has rejected it,
        or the gateway has removed thinking of another provider that would have to precede calls.
        """
        if _forces_a_tool(request):
            return fields.is_native and THINKING_WITH_FORCED_TOOL not in fields.refused_fields
        is_checked = fields.official and self.config.get("type") == "enabled"
        return not is_checked or _can_begin_to_think(request.messages)

    def _do_not_think(self, fields: AnthropicFields) -> None:
        """Leave out thinking; without it, the strongest effort of all models is `high`."""
        self.config = {}
        fields.drop("thinking")
        if self.effort not in ("", *_USUAL_EFFORTS):
            self.effort = _USUAL_EFFORTS[-1]

    def _take_no_budget(self, fields: AnthropicFields) -> None:
        """Replace a budget by adaptive thinking with the corresponding effort."""
        budget = self.config.pop("budget_tokens", 0)
        fields.drop("thinking.budget_tokens")
        self.config["type"] = "adaptive"
        if not self.effort:
            worth = (effort for effort in _USUAL_EFFORTS if _BUDGETS[effort] >= budget)
            self.effort = next(worth, _USUAL_EFFORTS[-1])


def _adaptive_effort(effort: str, efforts: Sequence[str]) -> str:
    """Return a supported effort: the given one, "low" for "minimal", else the strongest."""
    if effort == "minimal":
        effort = "low"
    return effort if effort in efforts else efforts[-1]


def _room(bound: int) -> int:
    """Return the tokens to reserve for the answer, out of `bound`."""
    return min(max(_LEAST_ANSWER, bound // 4), _MOST_ANSWER)


def _forces_a_tool(request: GenerateRequest) -> bool:
    # Thinking and a forced tool call exclude each other; the call takes precedence.
    return request.tool_choice.mode in (ToolChoice.MODE_ANY, ToolChoice.MODE_TOOL)


def _can_begin_to_think(messages: Sequence[Message]) -> bool:
    """Return whether Anthropic allows thinking at this point of the conversation.

    An unfinished turn of the model (a prefill, or tool calls whose results come last) must have
    begun with thinking, or cannot contain any.
    """
    turns = (message for message in reversed(messages) if message.role in _TURNS)
    for place, (role, run) in enumerate(groupby(turns, key=lambda message: message.role)):
        if role == conversation_pb2.ROLE_USER:
            if not any(
                block.HasField("tool_result") for message in run for block in message.blocks
            ):
                return True
            continue
        *_, first = run
        is_prefill = place == 0
        kinds = [block.WhichOneof("kind") for block in first.blocks[:1]]
        return not is_prefill and kinds != [] and kinds[0] in _THOUGHTS
    return True

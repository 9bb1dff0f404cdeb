"""Thinking settings of a request, in Anthropic's terms."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingConfig, ToolChoice
from services.inference.providers.anthropic.fields import AnthropicFields
from services.inference.providers.base import Target

# The least budget Anthropic takes; it must also stay below `max_tokens`.
_LEAST_BUDGET = 1024
# Tokens that are left for the answer where the caller asked for an effort by name.
_LEAST_ANSWER, _MOST_ANSWER = 512, 4096
# What an effort by name is worth to a provider that counts tokens.
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
# Beside thinking Anthropic takes no smaller `top_p`.
_LEAST_TOP_P = 0.95


class Reasoning:
    """What a request says about thinking, translated.

    Attributes:
        config: the field `thinking`, empty when there is nothing to say.
        effort: the field `output_config.effort`, or "".
        budget: tokens that an effort by name was turned into, or 0.
    """

    def __init__(self, request: GenerateRequest, fields: AnthropicFields, target: Target) -> None:
        """Translate for a model."""
        self.config: dict[str, Any] = {}
        self.effort = ""
        self.budget = 0
        if not request.HasField("thinking"):
            return
        given = request.thinking
        if given.mode == ThinkingConfig.MODE_UNSPECIFIED and not fields.is_native:
            self._take_effort(request, fields, target)
        else:
            self.config = fields.own(given.extra, "thinking.extra")
            mode = _MODES.get(given.mode)
            if mode:
                self.config["type"] = mode
            if given.HasField("budget_tokens"):
                self.config["budget_tokens"] = given.budget_tokens
            self.effort = given.effort
        if not fields.takes_budgets and self.config.get("type") == "enabled":
            self._take_no_budget(fields)

    @property
    def thinks(self) -> bool:
        """Whether the model is told to think, or may."""
        return bool(self.config) and self.config.get("type") != "disabled"

    def bars(self, name: str, value: float) -> bool:
        """Return whether Anthropic refuses a sampling field beside thinking."""
        if not self.thinks:
            return False
        if name == "temperature":
            return value != 1
        return name == "top_k" or value < _LEAST_TOP_P

    def _take_effort(
        self, request: GenerateRequest, fields: AnthropicFields, target: Target
    ) -> None:
        """Turn an effort by name into what the model takes; drop and tell it where none fits."""
        effort = request.thinking.effort
        if not effort:
            return
        if effort == "none":
            self.config = {"type": "disabled"}
            return
        if effort not in _BUDGETS:
            fields.drop("thinking.effort")  # a name of another provider's, such as Groq's `default`
            return
        if target.adaptive:
            self.config = {"type": "adaptive"}
            self.effort = _adaptive_effort(effort, target.efforts)
            return
        bound = request.max_tokens or target.max_output_tokens
        # Thinking counts in `max_tokens`, and the answer needs room as well.
        most = bound - _room(bound) if bound else _BUDGETS[effort]
        fits = most >= _LEAST_BUDGET
        if not fits or _forces_a_tool(request) or not _can_begin_to_think(request.messages):
            fields.drop("thinking.effort")
            return
        self.budget = min(_BUDGETS[effort], most)
        self.config = {"type": "enabled", "budget_tokens": self.budget}

    def _take_no_budget(self, fields: AnthropicFields) -> None:
        """Leave it to the model how much it thinks, with the effort that the budget was worth."""
        budget = self.config.pop("budget_tokens", 0)
        fields.drop("thinking.budget_tokens")
        self.config["type"] = "adaptive"
        if not self.effort:
            worth = (effort for effort in _USUAL_EFFORTS if _BUDGETS[effort] >= budget)
            self.effort = next(worth, _USUAL_EFFORTS[-1])


def _adaptive_effort(effort: str, efforts: Sequence[str]) -> str:
    """Return the model's own name for an effort: the strongest one for what it has no name for."""
    if effort == "minimal":
        effort = "low"
    return effort if effort in efforts else efforts[-1]


def _room(bound: int) -> int:
    """Return the tokens to keep for the answer out of all that may be written."""
    return min(max(_LEAST_ANSWER, bound // 4), _MOST_ANSWER)


def _forces_a_tool(request: GenerateRequest) -> bool:
    # Thinking and a forced call exclude each other; the call is the stronger wish.
    return request.tool_choice.mode in (ToolChoice.MODE_ANY, ToolChoice.MODE_TOOL)


def _can_begin_to_think(messages: Sequence[Message]) -> bool:
    """Return whether Anthropic lets the model think at this point of the conversation.

    A turn of the model that goes on (a prefill, or calls of tools that have just been
    answered) must have begun with thinking, or cannot have any.
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

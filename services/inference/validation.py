"""What every request must keep to, whoever sends it.

The facade has checked a caller's JSON already and named the caller's own fields;
this is the door for everybody who speaks gRPC, and it names those of the message.
"""

from collections.abc import Iterable
from typing import Any

from gateway.conversation.v1.conversation_pb2 import Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingConfig, ToolChoice
from services.common.errors import invalid
from services.common.texts import MAX_NAME, quoted

MAX_MESSAGES = 100_000
MIN_THINKING_BUDGET = 1024

# Of numbers: the least and the most, where there is one.
_RANGES: dict[str, tuple[float, float | None]] = {
    "max_tokens": (1, None),
    "temperature": (0, 2),
    "top_p": (0, 1),
    "top_k": (1, None),
    "n": (1, 128),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "top_logprobs": (0, 20),
}


def check(request: GenerateRequest) -> None:
    """Refuse a request that breaks a rule of the proto.

    Raises:
        GatewayError: invalid, naming the field and what it takes.
    """
    # Asking for each field costs more than all that are there.
    given: dict[str, Any] = {field.name: value for field, value in request.ListFields()}
    if "model" not in given:
        raise invalid("model", "model: a name is needed")
    if len(given["model"]) > MAX_NAME:
        raise invalid("model", f"model: takes at most {MAX_NAME} characters")
    messages = given.get("messages", ())
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise invalid("messages", f"messages: 1 to {MAX_MESSAGES:,} are needed")
    _check_messages(messages)
    for name, value in given.items():
        if name in _RANGES:
            _check_range(name, value, *_RANGES[name])
    if "" in given.get("stop_sequences", ()):
        raise invalid("stop_sequences", "stop_sequences: none may be empty")
    if "thinking" in given:
        _check_thinking(given["thinking"], given.get("max_tokens"))
    if "tools" in given or "tool_choice" in given:
        _check_tools(request)


def _check_messages(messages: Iterable[Message]) -> None:
    for index, message in enumerate(messages):
        if not message.role:
            raise invalid(f"messages[{index}].role", f"messages[{index}].role: is needed")
        if not message.blocks:
            raise invalid(
                f"messages[{index}].blocks", f"messages[{index}].blocks: at least one is needed"
            )
        for place, block in enumerate(message.blocks):
            if block.WhichOneof("kind") is None:
                path = f"messages[{index}].blocks[{place}]"
                raise invalid(path, f"{path}: a kind is needed")


def _check_range(name: str, value: float, low: float, high: float | None) -> None:
    # NaN fails every comparison, so it is refused here too.
    if not (low <= value and (high is None or value <= high)):
        bounds = f"at least {low}" if high is None else f"{low} to {high}"
        raise invalid(name, f"{name}: takes {bounds}")


def _check_thinking(thinking: ThinkingConfig, max_tokens: int | None) -> None:
    if thinking.mode != ThinkingConfig.MODE_ENABLED:
        return
    budget = thinking.budget_tokens
    if budget < MIN_THINKING_BUDGET or (max_tokens is not None and budget >= max_tokens):
        raise invalid(
            "thinking.budget_tokens",
            f"thinking.budget_tokens: takes {MIN_THINKING_BUDGET} and more, below max_tokens",
        )


def _check_tools(request: GenerateRequest) -> None:
    names: set[str] = set()
    for index, tool in enumerate(request.tools):
        if not tool.opaque and not tool.name:
            raise invalid(f"tools[{index}].name", f"tools[{index}].name: is needed")
        if tool.name and tool.name in names:
            raise invalid(
                f"tools[{index}].name", f"tools[{index}].name: {quoted(tool.name)} is twice"
            )
        names.add(tool.name)
    choice = request.tool_choice
    if choice.mode in (ToolChoice.MODE_ANY, ToolChoice.MODE_TOOL) and not request.tools:
        raise invalid("tool_choice", "tool_choice: there are no tools to choose from")
    if choice.mode == ToolChoice.MODE_TOOL and choice.name not in names:
        raise invalid("tool_choice.name", "tool_choice.name: takes the name of a given tool")

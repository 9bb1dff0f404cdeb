"""Functions, the predecessor of tools, which old clients use.

They are tools in the canonical request. Parallel calls are disabled, as an answer has room for one
call; if the model makes more, only the first is returned.
"""

from typing import Any, ClassVar

import orjson

from facade.dialects.openai.response import completion
from facade.dialects.openai.stream import ChatStream, Choice
from facade.dialects.openai.tools import add_functions, set_tool_choice
from facade.dialects.openai.types import ChatRequest, ToolName
from gateway.conversation.v1.conversation_pb2 import Block
from gateway.inference.v1.inference_pb2 import Event, GenerateRequest, GenerateResponse, ToolChoice
from services.common.errors import invalid
from services.common.messages.plain_answer import PlainAnswer
from services.common.text.texts import quoted

_FINISH_REASON = "function_call"


def set_functions(request: GenerateRequest, wire: ChatRequest) -> None:
    """Set the tools and the tool choice from the functions of a chat that has functions.

    Raises:
        GatewayError: invalid, naming the field.
    """
    for field in ("tools", "tool_choice"):
        if getattr(wire, field) is not None:
            raise invalid(
                field, f"{field}: cannot be used together with functions and function_call"
            )
    functions = wire.functions or []
    add_functions(request, functions, "functions")
    names = {function["name"] for function in functions}
    set_tool_choice(request, wire.function_call, False, "function_call", names, _read_choice)


def _read_choice(choice: ToolName, names: set[str], path: str) -> ToolChoice:
    name = choice["name"]
    if name not in names:
        path = f"{path}.name"
        raise invalid(path, f"{path}: must be the name of one of the functions, not {quoted(name)}")
    return ToolChoice(mode=ToolChoice.MODE_TOOL, name=name)


def render_function_completion(response: GenerateResponse | PlainAnswer, created: int) -> bytes:
    """Like `render_completion`, with function calls in place of tool calls."""
    answer = completion(response, created)
    for choice in answer["choices"]:
        calls = choice["message"].pop("tool_calls", None)
        if calls:
            choice["message"]["function_call"] = calls[0]["function"]
        choice["finish_reason"] = _renamed(choice["finish_reason"])
    return orjson.dumps(answer)


def _renamed(reason: str) -> str:
    return _FINISH_REASON if reason == "tool_calls" else reason


class _FunctionChoice(Choice):
    """The state of a choice of a stream with function calls."""

    __slots__ = ()

    def start_block(self, number: int, block: Block) -> dict[str, Any]:
        """Return the first delta of a block, possibly empty."""
        return _function_delta(super().start_block(number, block))

    def delta(self, kind: str, event: Event) -> dict[str, Any]:
        """Return the delta for more of a block or its end, possibly empty."""
        return _function_delta(super().delta(kind, event))


class FunctionChatStream(ChatStream):
    """Like `ChatStream`, with function calls in place of tool calls."""

    choice_type = _FunctionChoice

    finish_reasons: ClassVar = {
        reason: _renamed(name) for reason, name in ChatStream.finish_reasons.items()
    }


def _function_delta(delta: dict[str, Any]) -> dict[str, Any]:
    """Replace the tool calls of a delta by a function call, if the first call is among them."""
    for call in delta.pop("tool_calls", ()):
        if call["index"] == 0 and "function" in call:
            delta["function_call"] = call["function"]
    return delta

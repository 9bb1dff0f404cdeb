"""Validation of generate requests, from the facade and from gRPC callers.

A facade validates the shape of its caller's JSON. Rules across fields are validated here; errors
name fields of the request message.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.inference.v1.inference_pb2 import GenerateRequest, ThinkingConfig, ToolChoice
from services.common.errors import invalid
from services.common.grpc.dialect_headers import interleaves_thinking
from services.common.text.json_scan import MAX_OPAQUE_VALUES, exceeds
from services.common.text.texts import MAX_NAME, quoted
from services.inference.request.paths import block_path

MAX_MESSAGES = 100_000
MAX_BLOCKS = 1_000_000  # of all messages, including blocks in tool results
MAX_TOOLS = 10_000
MAX_STOP_SEQUENCES = 1_000
MAX_BETAS = 1_000
MAX_HEADERS = 1_000  # that are validated; fewer are passed on
MIN_THINKING_BUDGET = 1024

# Minimum and maximum of numeric fields, if any.
_RANGES: dict[str, tuple[float, float | None]] = {
    "max_tokens": (0, None),
    "temperature": (0, 2),
    "top_p": (0, 1),
    "top_k": (1, None),
    "n": (1, 128),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "top_logprobs": (0, 20),
}
# Maximum length of lists; messages have a limit of their own.
_LENGTHS = {
    "tools": MAX_TOOLS,
    "stop_sequences": MAX_STOP_SEQUENCES,
    "betas": MAX_BETAS,
    "headers": MAX_HEADERS,
}
_PARTS_WITH_EXTRA = ("thinking", "tool_choice")


def check(request: GenerateRequest) -> Collection[str]:
    """Validate a request by the rules of the proto.

    Returns:
        The kinds of blocks in its messages, including tool results.

    Raises:
        GatewayError: invalid, with the path of the field and its valid values.
    """
    check_settings(request)
    messages = request.messages
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise invalid("messages", f"messages: must contain 1 to {MAX_MESSAGES:,} messages")
    kinds = _check_messages(messages)
    if request.tools or request.HasField("tool_choice"):
        _check_tools(request)
    return kinds


def check_settings(request: GenerateRequest) -> None:
    """Validate everything but the conversation and its tools; see `check`."""
    # Iterating over the set fields is faster than checking each field.
    set_fields: dict[str, Any] = {field.name: value for field, value in request.ListFields()}
    if "model" not in set_fields:
        raise invalid("model", "model: is required")
    if len(set_fields["model"]) > MAX_NAME:
        raise invalid("model", f"model: must be at most {MAX_NAME} characters")
    for name, value in set_fields.items():
        if name in _RANGES:
            _check_range(name, value, *_RANGES[name])
        elif name in _LENGTHS and len(value) > _LENGTHS[name]:
            raise invalid(name, f"{name}: must contain at most {_LENGTHS[name]:,} items")
    if "" in set_fields.get("stop_sequences", ()):
        raise invalid("stop_sequences", "stop_sequences: must not contain empty strings")
    if "top_logprobs" in set_fields and not set_fields.get("logprobs"):
        raise invalid("top_logprobs", "top_logprobs: allowed only if logprobs is true")
    if "thinking" in set_fields:
        most = None if interleaves_thinking(request.betas) else set_fields.get("max_tokens")
        _check_thinking(set_fields["thinking"], most)
    _check_opaque_parts(set_fields)


def _check_opaque_parts(set_fields: Mapping[str, Any]) -> None:
    if "extra" in set_fields:
        _check_json(set_fields["extra"].json, "extra")
    if "output_format" in set_fields:
        _check_json(set_fields["output_format"].schema, "output_format.schema")
    for name in _PARTS_WITH_EXTRA:
        if name in set_fields:
            _check_json(set_fields[name].extra.json, f"{name}.extra")


def _check_messages(messages: Iterable[Message]) -> Collection[str]:
    """Validate messages; return the kinds of their blocks."""
    kinds: set[str] = set()
    left = MAX_BLOCKS
    for index, message in enumerate(messages):
        if not message.role:
            raise invalid(f"messages[{index}].role", f"messages[{index}].role: is required")
        blocks = message.blocks
        if message.HasField("extra"):
            _check_json(message.extra.json, f"messages[{index}].extra")
        elif not blocks:
            raise invalid(
                f"messages[{index}].blocks",
                f"messages[{index}].blocks: must contain at least one block",
            )
        left -= len(blocks)
        if left >= 0:
            left = _check_blocks(blocks, left, kinds, (index,))
        if left < 0:
            raise invalid(
                "messages", f"messages: must contain at most {MAX_BLOCKS:,} blocks in total"
            )
    return kinds


def _check_blocks(
    blocks: Iterable[Block], left: int, kinds: set[str], path: tuple[int, ...]
) -> int:
    """Validate blocks, including tool results; return the number of blocks still allowed.

    Args:
        blocks: the blocks of a message or a tool result.
        left: the number of blocks allowed.
        kinds: the kinds of the blocks are added to it.
        path: the index of the message, and of the block that is a tool result.
    """
    for place, block in enumerate(blocks):
        kind = block.WhichOneof("kind")
        if kind is None:
            where = block_path(*path, place)
            raise invalid(where, f"{where}: must have a kind")
        kinds.add(kind)
        if kind == "opaque":
            _check_json(block.opaque.json, f"{block_path(*path, place)}.opaque")
        elif kind in ("tool_use", "server_tool_use"):
            text = getattr(block, kind).input
            if len(text) >= MAX_OPAQUE_VALUES:
                _check_json(text.encode(), f"{block_path(*path, place)}.{kind}.input")
        elif kind == "tool_result":
            inner = block.tool_result.blocks
            left -= len(inner)
            if left < 0:
                break
            left = _check_blocks(inner, left, kinds, (*path, place))
        if block.HasField("extra"):
            _check_json(block.extra.json, f"{block_path(*path, place)}.extra")
        if left < 0:
            break
    return left


def _check_json(json: bytes, path: str) -> None:
    """Validate the size of JSON that a provider's adapter parses."""
    if exceeds(json, MAX_OPAQUE_VALUES):
        raise invalid(path, f"{path}: must have at most {MAX_OPAQUE_VALUES:,} JSON values")


def _check_range(name: str, value: float, low: float, high: float | None) -> None:
    # NaN fails every comparison and is rejected too.
    if not (low <= value and (high is None or value <= high)):
        bounds = f"at least {low}" if high is None else f"{low} to {high}"
        raise invalid(name, f"{name}: must be {bounds}")


def _check_thinking(thinking: ThinkingConfig, max_tokens: int | None) -> None:
    if thinking.mode != ThinkingConfig.MODE_ENABLED:
        return
    budget = thinking.budget_tokens
    if budget < MIN_THINKING_BUDGET or (max_tokens is not None and budget >= max_tokens):
        raise invalid(
            "thinking.budget_tokens",
            f"thinking.budget_tokens: must be at least {MIN_THINKING_BUDGET} and less than "
            "max_tokens",
        )


def _check_tools(request: GenerateRequest) -> None:
    names: set[str] = set()
    for index, tool in enumerate(request.tools):
        name = tool.name
        if not name and not tool.opaque:
            raise invalid(f"tools[{index}].name", f"tools[{index}].name: is required")
        if name and name in names:
            raise invalid(
                f"tools[{index}].name", f"tools[{index}].name: duplicate name {quoted(name)}"
            )
        names.add(name)
        if tool.HasField("web") and not tool.web.kind:
            raise invalid(f"tools[{index}].web.kind", f"tools[{index}].web.kind: is required")
        _check_json(tool.input_schema, f"tools[{index}].input_schema")
        if tool.HasField("extra"):
            _check_json(tool.extra.json, f"tools[{index}].extra")
    choice = request.tool_choice
    if request.use_built_in_tools:
        return  # these may be chosen too
    if choice.mode in (ToolChoice.MODE_ANY, ToolChoice.MODE_TOOL) and not request.tools:
        raise invalid("tool_choice", "tool_choice: requires tools")
    if choice.mode == ToolChoice.MODE_TOOL and choice.name not in names:
        raise invalid("tool_choice.name", "tool_choice.name: must be the name of one of the tools")

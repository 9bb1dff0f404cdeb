"""Request settings other than the conversation: tools, sampling, thinking, output format.

Used for whole requests and for parameters of fallback steps: `names` selects the fields to set,
while rules across fields consider all of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, cast

from facade.dialects.anthropic import types
from facade.dialects.anthropic.compaction import is_summarizing, set_compaction
from facade.dialects.anthropic.web_tools import BUILT_IN, web_tool
from facade.dialects.validation import to_json, to_opaque
from gateway.conversation.v1.conversation_pb2 import DIALECT_ANTHROPIC
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import invalid
from services.common.grpc.dialect_headers import interleaves_thinking

_CHOICES = {
    "auto": pb.ToolChoice.MODE_AUTO,
    "any": pb.ToolChoice.MODE_ANY,
    "none": pb.ToolChoice.MODE_NONE,
    "tool": pb.ToolChoice.MODE_TOOL,
}
_THINKING_MODES = {
    "enabled": pb.ThinkingConfig.MODE_ENABLED,
    "disabled": pb.ThinkingConfig.MODE_DISABLED,
    "adaptive": pb.ThinkingConfig.MODE_ADAPTIVE,
}
_TOOL_FIELDS = frozenset(types.CustomTool.__annotations__)
_CHOICE_FIELDS = frozenset(types.ToolChoice.__annotations__)
_FORMAT_FIELDS = frozenset(types.JsonFormat.__annotations__)
# Unknown fields on which the answer depends, with their conditions.
REQUIRED: Mapping[str, Callable[[Any], bool]] = {
    "container": bool,
    "mcp_servers": bool,
    "compaction": lambda compaction: bool(compaction) and not is_summarizing(compaction),
    # A thread that begins can be left out: the conversation is complete.
    "thread": lambda thread: isinstance(thread, dict) and thread.get("type") == "continue",
}
_OUTPUT_FIELDS = frozenset(types.OutputConfig.__annotations__)
_METADATA_FIELDS = frozenset(types.Metadata.__annotations__)


def set_settings(
    target: pb.GenerateRequest,
    parameters: types.Parameters,
    names: Set[str],
    path: str,
    betas: Iterable[str],
) -> None:
    """Set the settings of a request.

    Args:
        target: the request.
        parameters: all fields.
        names: the fields to set.
        path: path of `parameters`; "" for the body.
        betas: the names in the `anthropic-beta` header.

    Raises:
        GatewayError: invalid, naming the field.
    """
    _set_sampling(target, parameters, names)
    if "tools" in names and parameters.tools is not None:
        add_tools(target, parameters.tools, _at(path, "tools"))
    if names & {"tools", "tool_choice"} and parameters.tool_choice is not None:
        tool_names = [tool.get("name") for tool in parameters.tools or ()]
        if isinstance(parameters, types.CountTokensBody) and parameters.use_built_in_tools:
            tool_names += BUILT_IN  # presence is checked later
        _check_tool_choice(parameters.tool_choice, tool_names, names, path)
        if "tool_choice" in names:
            _set_tool_choice(target.tool_choice, parameters.tool_choice, _at(path, "tool_choice"))
    if names & {"thinking", "output_config", "max_tokens"} and not interleaves_thinking(betas):
        _check_thinking_budget(parameters, names, path)
    if names & {"thinking", "output_config"}:
        _set_thinking(target, parameters, _at(path, "thinking"))
        _set_output_format(target, parameters.output_config, _at(path, "output_config"))
    _set_extra(target, parameters, names, path)


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _set_sampling(
    target: pb.GenerateRequest, parameters: types.Parameters, names: Set[str]
) -> None:
    if "max_tokens" in names and parameters.max_tokens is not None:
        target.max_tokens = parameters.max_tokens
    if "temperature" in names and parameters.temperature is not None:
        target.temperature = parameters.temperature
    if "top_p" in names and parameters.top_p is not None:
        target.top_p = parameters.top_p
    if "top_k" in names and parameters.top_k is not None:
        target.top_k = parameters.top_k
    if "stop_sequences" in names and parameters.stop_sequences is not None:
        target.stop_sequences.extend(parameters.stop_sequences)
    if "service_tier" in names and parameters.service_tier is not None:
        target.service_tier = parameters.service_tier
    if "metadata" in names and parameters.metadata is not None:
        target.end_user = parameters.metadata.get("user_id") or ""


def add_tools(target: pb.GenerateRequest, tools: Sequence[types.Tool], path: str) -> None:
    """Add the tools at `path`.

    Raises:
        GatewayError: invalid, naming the invalid tool.
    """
    seen: dict[str, int] = {}
    for index, tool in enumerate(tools):
        where = f"{path}[{index}]"
        name = tool.get("name", "")
        if name and seen.setdefault(name, index) != index:
            raise invalid(
                f"{where}.name",
                f"{where}.name: must be unique; {path}[{seen[name]}] already has the name {name!r}",
            )
        # The same distinction as in the wire type.
        if tool.get("type") in (None, "custom"):
            target.tools.append(custom_tool(cast(types.CustomTool, tool), where))
        else:
            added = target.tools.add(name=name)
            added.opaque = True
            added.extra.CopyFrom(to_opaque(DIALECT_ANTHROPIC, tool, where))
            if web := web_tool(cast(Mapping[str, Any], tool), where):
                added.web.CopyFrom(web)


def custom_tool(tool: types.CustomTool, path: str) -> pb.Tool:
    """Return the tool at `path`, which its caller runs.

    Raises:
        GatewayError: invalid, for JSON that is nested too deeply.
    """
    target = pb.Tool(name=tool["name"])
    target.description = tool.get("description") or ""
    target.input_schema = to_json(tool["input_schema"], f"{path}.input_schema")
    if (strict := tool.get("strict")) is not None:
        target.strict = strict
    if cache_control := tool.get("cache_control"):
        target.cache_control = to_json(cache_control, f"{path}.cache_control")
    if unknown_fields := {name: value for name, value in tool.items() if name not in _TOOL_FIELDS}:
        target.extra.CopyFrom(to_opaque(DIALECT_ANTHROPIC, unknown_fields, path))
    return target


def _check_tool_choice(
    choice: str | types.ToolChoice, tool_names: Sequence[str | None], names: Set[str], path: str
) -> None:
    where = _at(path, "tool_choice")
    mode = choice if isinstance(choice, str) else choice["type"]
    if mode in ("any", "tool") and not tool_names:
        raise invalid(where, f"{where}: {mode!r} requires tools")
    if mode != "tool" or isinstance(choice, str):
        return
    name = choice.get("name", "")
    if not name:
        raise invalid(f"{where}.name", f"{where}.name: is required if type is 'tool'")
    # A tool without a name is a provider's toolset, whose names are unknown.
    if name not in tool_names and all(tool_names):
        where = f"{where}.name" if "tool_choice" in names else _at(path, "tools")
        raise invalid(
            where, f"{where}: tool_choice must name one of the tools; unknown tool {name!r}"
        )


def _set_tool_choice(target: pb.ToolChoice, choice: str | types.ToolChoice, path: str) -> None:
    if isinstance(choice, str):
        target.mode = _CHOICES[choice]
        return
    kind = choice["type"]
    if kind not in _CHOICES:
        target.extra.CopyFrom(to_opaque(DIALECT_ANTHROPIC, choice, path))
        return
    target.mode = _CHOICES[kind]
    if kind == "tool":
        target.name = choice["name"]
    if (disable := choice.get("disable_parallel_tool_use")) is not None:
        target.disable_parallel_tool_use = disable
    if unknown_fields := {
        name: value for name, value in choice.items() if name not in _CHOICE_FIELDS
    }:
        target.extra.CopyFrom(to_opaque(DIALECT_ANTHROPIC, unknown_fields, path))


def _check_thinking_budget(parameters: types.Parameters, names: Set[str], path: str) -> None:
    thinking = parameters.thinking
    if thinking is None or parameters.max_tokens is None or thinking["type"] != "enabled":
        return
    budget = cast(types.ThinkingEnabled, thinking)["budget_tokens"]
    if budget >= parameters.max_tokens:
        field = "thinking.budget_tokens" if "thinking" in names else "max_tokens"
        where = _at(path, field)
        raise invalid(
            where,
            f"{where}: thinking.budget_tokens ({budget}) must be below "
            f"max_tokens ({parameters.max_tokens})",
        )


def _set_thinking(target: pb.GenerateRequest, parameters: types.Parameters, path: str) -> None:
    thinking = parameters.thinking
    if thinking is not None:
        mode = _THINKING_MODES.get(thinking["type"])
        unknown_fields: dict[str, Any] = {**thinking}
        if mode is None:
            target.thinking.mode = pb.ThinkingConfig.MODE_OPAQUE
        else:
            target.thinking.mode = mode
            unknown_fields.pop("type")
            if thinking["type"] == "enabled":
                target.thinking.budget_tokens = unknown_fields.pop("budget_tokens")
        if unknown_fields:
            target.thinking.extra.CopyFrom(to_opaque(DIALECT_ANTHROPIC, unknown_fields, path))
    if parameters.output_config is not None and (effort := parameters.output_config.get("effort")):
        target.thinking.effort = effort


def _set_output_format(
    target: pb.GenerateRequest, config: types.OutputConfig | None, path: str
) -> None:
    if config is None or (form := config.get("format")) is None:
        return
    target.output_format.kind = pb.OutputFormat.KIND_JSON_SCHEMA
    target.output_format.schema = to_json(form["schema"], f"{path}.format.schema")


def _set_extra(
    target: pb.GenerateRequest, parameters: types.Parameters, names: Set[str], path: str
) -> None:
    """Keep the unknown fields.

    A partly known object is kept as a whole: a provider's adapter of this dialect merges it over
    its output, which restores the caller's fields.
    """
    unknown = parameters.model_extra or {}
    if not names & ({"metadata", "output_config"} | unknown.keys()):
        return
    extra = dict(unknown)
    if parameters.metadata is not None and parameters.metadata.keys() - _METADATA_FIELDS:
        extra["metadata"] = parameters.metadata
    config = parameters.output_config
    if config is not None and (
        config.keys() - _OUTPUT_FIELDS or (config.get("format") or {}).keys() - _FORMAT_FIELDS
    ):
        extra["output_config"] = config
    set_compaction(target, extra, f"{path}." if path else "")
    # In a fallback step, even an empty object replaces the request's.
    if extra or path:
        target.extra.CopyFrom(to_opaque(DIALECT_ANTHROPIC, extra, path))
        target.extra.required.extend(
            name for name, is_needed in REQUIRED.items() if is_needed(extra.get(name))
        )

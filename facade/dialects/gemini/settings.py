"""Settings of a request: tools, their choice, and the options of the answer.

Fields without a canonical name are kept in `GenerateRequest.extra`, where Google has them. Those
that a canonical field stands for in another form, such as a schema of OpenAPI 3.0, are kept beside
it, so that a provider of this dialect is sent what the caller wrote.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from facade.dialects.gemini import types
from facade.dialects.paths import SourceMap
from facade.dialects.validation import to_json, to_opaque
from facade.dialects.web import domains
from gateway.conversation.v1.conversation_pb2 import DIALECT_GEMINI
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import invalid
from services.common.text.google_schemas import json_schema

Json = dict[str, Any]

_CONFIG: Final = "generationConfig"
_FUNCTIONS: Final = "functionDeclarations"
_CHOICE: Final = "functionCallingConfig"
_ALLOWED: Final = "allowedFunctionNames"
# Fields with the same meaning in the canonical request.
_SAME: Final = {
    "temperature": "temperature",
    "topP": "top_p",
    "maxOutputTokens": "max_tokens",
    "candidateCount": "n",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "responseLogprobs": "logprobs",
    "logprobs": "top_logprobs",
}
# Fields with a canonical field of another form, which are kept too.
_COVERED: Final = (
    *("responseSchema", "responseJsonSchema", "responseMimeType", "responseModalities"),
    "thinkingConfig",
)
_TRANSLATED: Final = frozenset({*_SAME, "topK", "stopSequences"})
_TEXT, _JSON = "text/plain", "application/json"
_MODES: Final = {
    "AUTO": pb.ToolChoice.MODE_AUTO,
    "ANY": pb.ToolChoice.MODE_ANY,
    "NONE": pb.ToolChoice.MODE_NONE,
    # As AUTO, but calls follow the schemas.
    "VALIDATED": pb.ToolChoice.MODE_AUTO,
}
_UNSPECIFIED: Final = "MODE_UNSPECIFIED"
_CHOICE_FIELDS: Final = frozenset({"mode", _ALLOWED})
_DECLARED: Final = frozenset({"name", "description", "parametersJsonSchema"})
_PARAMETERS: Final = "parameters"
# Tools that the gateway runs for models of other providers.
_WEB: Final = {
    "googleSearch": pb.WebTool.KIND_SEARCH,
    "googleSearchRetrieval": pb.WebTool.KIND_SEARCH,
    "urlContext": pb.WebTool.KIND_FETCH,
}
_EXCLUDED: Final = "excludeDomains"
# Fields on which the answer depends.
_REQUIRED: Final = ("cachedContent",)
_THINKING_FIELDS = frozenset({"includeThoughts", "thinkingBudget", "thinkingLevel"})


def set_settings(
    request: pb.GenerateRequest, body: types.Parameters, prefix: str, source_map: SourceMap
) -> None:
    """Set the settings of a request; `prefix` goes before the fields' paths.

    Raises:
        GatewayError: invalid, naming the field.
    """
    extra = _set_fields({**(body.model_extra or {}), **_unnamed(body)})
    covered: list[str] = []
    if body.tools:
        _add_tools(request, body.tools, f"{prefix}tools", source_map)
    if body.toolConfig is not None:
        others = _set_tool_config(request, body.toolConfig, f"{prefix}toolConfig")
        if others:
            extra["toolConfig"] = others
    if body.generationConfig is not None:
        others = _set_config(request, body.generationConfig, f"{prefix}{_CONFIG}")
        if others:
            extra[_CONFIG] = others
            covered += [f"{_CONFIG}.{name}" for name in ("temperature", *_covered(request, others))]
    if not extra:
        return
    request.extra.CopyFrom(to_opaque(DIALECT_GEMINI, extra, prefix.removesuffix(".")))
    request.extra.covered_paths.extend(covered)
    request.extra.required.extend(_required(request, extra))


def _unnamed(body: types.Parameters) -> Json:
    labels = getattr(body, "labels", None)
    return {"labels": labels} if labels else {}


def _set_fields(fields: Mapping[str, Any]) -> Json:
    """Return the fields that are not null."""
    return {name: value for name, value in fields.items() if value is not None}


def _covered(request: pb.GenerateRequest, config: Mapping[str, Any]) -> Iterator[str]:
    for name in _COVERED:
        if name not in config or (name == "thinkingConfig" and not _covers_thinking(config)):
            continue
        if name == "responseMimeType" and not _covers_mime_type(config):
            continue
        yield name


def _covers_thinking(config: Mapping[str, Any]) -> bool:
    return set(config["thinkingConfig"]) <= _THINKING_FIELDS


def _covers_mime_type(config: Mapping[str, Any]) -> bool:
    return config["responseMimeType"] in (_TEXT, _JSON)


def _required(request: pb.GenerateRequest, extra: Mapping[str, Any]) -> Iterator[str]:
    yield from (name for name in _REQUIRED if extra.get(name))
    config = extra.get(_CONFIG) or {}
    if "responseMimeType" in config and not _covers_mime_type(config):
        yield f"{_CONFIG}.responseMimeType"


def _set_config(request: pb.GenerateRequest, config: types.GenerationConfig, path: str) -> Json:
    """Set the options of the answer; return those without a canonical field, or of another form."""
    fields: Json = _set_fields(config)
    for name, canonical in _SAME.items():
        if name in fields:
            setattr(request, canonical, fields[name])
    if "topK" in fields:
        request.top_k = int(fields["topK"])
    request.stop_sequences.extend(fields.get("stopSequences") or ())
    _set_format(request, fields, path)
    if modalities := fields.get("responseModalities"):
        request.output_modalities.extend(one.lower() for one in modalities)
    if thinking := fields.get("thinkingConfig"):
        _set_thinking(request.thinking, _set_fields(thinking))
    return {name: value for name, value in fields.items() if name not in _TRANSLATED}


def _set_format(request: pb.GenerateRequest, fields: Json, path: str) -> None:
    given, schema = fields.get("responseSchema"), fields.get("responseJsonSchema")
    if given is not None and schema is not None:
        where = f"{path}.responseSchema"
        raise invalid(where, f"{where}: cannot be given together with responseJsonSchema")
    mime_type = fields.get("responseMimeType") or (_JSON if given or schema else _TEXT)
    if mime_type != _JSON:
        return
    if given is not None:
        schema = json_schema(given)
    if schema is None:
        request.output_format.kind = pb.OutputFormat.KIND_JSON_OBJECT
        return
    request.output_format.kind = pb.OutputFormat.KIND_JSON_SCHEMA
    request.output_format.name = "answer"
    request.output_format.schema = to_json(schema, f"{path}.responseSchema")


def _set_thinking(target: pb.ThinkingConfig, config: Json) -> None:
    budget = config.get("thinkingBudget")
    level = str(config.get("thinkingLevel") or "").lower()
    if level and not level.endswith("unspecified"):
        target.effort = level
    if budget is None:
        return
    if budget < 0:
        target.mode = pb.ThinkingConfig.MODE_ADAPTIVE
    elif budget == 0:
        target.effort = "none"
    else:
        target.mode = pb.ThinkingConfig.MODE_ENABLED
        target.budget_tokens = budget


def _set_tool_config(request: pb.GenerateRequest, config: types.ToolConfig, path: str) -> Json:
    """Set the choice of tools; return the other options."""
    others = _set_fields(config)
    choice: Json = _set_fields(others.pop(_CHOICE, None) or {})
    names = choice.get(_ALLOWED) or []
    mode = str(choice.get("mode") or _UNSPECIFIED).upper()
    where = f"{path}.{_CHOICE}"
    declared = {tool.name for tool in request.tools}
    for index, name in enumerate(names):
        if name not in declared:
            place = f"{where}.{_ALLOWED}[{index}]"
            raise invalid(place, f"{place}: must be the name of one of the functions in tools")
    if mode == "ANY" and not request.tools:
        raise invalid(f"{where}.mode", f"{where}.mode: ANY requires tools")
    if not choice or (mode == _UNSPECIFIED and not names and choice.keys() <= _CHOICE_FIELDS):
        return others
    if mode not in _MODES and mode != _UNSPECIFIED:
        raise invalid(f"{where}.mode", f"{where}.mode: must be one of {', '.join(_MODES)}")
    if mode == "ANY" and len(names) == 1:
        request.tool_choice.mode = pb.ToolChoice.MODE_TOOL
        request.tool_choice.name = names[0]
    elif not names:
        request.tool_choice.mode = _MODES.get(mode, pb.ToolChoice.MODE_AUTO)
    if len(names) > 1 or (names and mode != "ANY") or mode not in ("AUTO", "ANY", "NONE"):
        request.tool_choice.extra.CopyFrom(to_opaque(DIALECT_GEMINI, {_CHOICE: choice}, where))
    elif choice.keys() - _CHOICE_FIELDS:
        unknown = {name: one for name, one in choice.items() if name not in _CHOICE_FIELDS}
        request.tool_choice.extra.CopyFrom(to_opaque(DIALECT_GEMINI, {_CHOICE: unknown}, where))
    return others


def _add_tools(
    request: pb.GenerateRequest, tools: Sequence[types.Tool], path: str, source_map: SourceMap
) -> None:
    seen: dict[str, str] = {}
    for index, tool in enumerate(tools):
        for position, function in enumerate(tool.get(_FUNCTIONS) or ()):
            where = f"{path}[{index}].{_FUNCTIONS}[{position}]"
            before = seen.setdefault(function["name"], where)
            if before != where:
                raise invalid(
                    f"{where}.name", f"{where}.name: must be unique; {before} has the same name"
                )
            request.tools.append(_function(function, where))
            source_map.tools.append(where)
        for name, value in tool.items():
            if name != _FUNCTIONS and value is not None:
                where = f"{path}[{index}].{name}"
                added = request.tools.add(opaque=True)
                added.extra.CopyFrom(to_opaque(DIALECT_GEMINI, {name: value}, where))
                if web := _web_tool(name, value, where):
                    added.web.CopyFrom(web)
                source_map.tools.append(where)


def _function(function: types.FunctionDeclaration, path: str) -> pb.Tool:
    tool = pb.Tool(name=function["name"], description=function.get("description") or "")
    parameters = function.get(_PARAMETERS)
    schema = function.get("parametersJsonSchema")
    if parameters is not None and schema is not None:
        where = f"{path}.{_PARAMETERS}"
        raise invalid(where, f"{where}: cannot be given together with parametersJsonSchema")
    if parameters is not None:
        schema = json_schema(parameters)
    if schema is not None:
        tool.input_schema = to_json(schema, f"{path}.{_PARAMETERS}")
    others: Json = {
        name: value
        for name, value in function.items()
        if name not in _DECLARED and value is not None
    }
    if others:
        tool.extra.CopyFrom(to_opaque(DIALECT_GEMINI, others, path))
        tool.extra.covered_paths.append(_PARAMETERS)
    return tool


def _web_tool(name: str, value: Any, path: str) -> pb.WebTool | None:
    """Return the tool of the gateway that stands for one of Google's; None without any."""
    kind = _WEB.get(name)
    if kind is None:
        return None
    fields = _set_fields(value) if isinstance(value, dict) else {}
    return pb.WebTool(
        kind=kind,
        blocked_domains=domains(fields.pop(_EXCLUDED, None), f"{path}.{_EXCLUDED}"),
        foreign_fields=[f"{name}.{field}" for field in fields],
    )

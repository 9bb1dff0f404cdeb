"""Canonical requests as bodies of Gemini's `generateContent` and `countTokens`.

Everything here is a pure rule. What the API has no place for is refused by its path
where the answer would be another without it, and dropped and named where it would not.
The fields are those of Google's reference (ai.google.dev/api/generate-content).
"""

from collections.abc import Callable
from typing import Any, Literal

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, Tool, ToolChoice
from services.inference.providers.base import Call
from services.inference.providers.gemini import shaping
from services.inference.providers.gemini.caller import (
    Caller,
    Json,
    json_object,
    kept_at_provider,
    refuse,
)
from services.inference.providers.gemini.content import Conversation
from services.inference.providers.gemini.reasoning import thinking_config
from services.inference.stream.prefill import CONTINUE, prefill_of

# Fields of sampling, and what `generationConfig` calls them.
_Sampled = Literal["temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty"]
_SAMPLING: dict[_Sampled, str] = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_INT32 = range(-(2**31), 2**31)
_MODES = {
    ToolChoice.MODE_AUTO: "AUTO",
    ToolChoice.MODE_ANY: "ANY",
    ToolChoice.MODE_NONE: "NONE",
    ToolChoice.MODE_TOOL: "ANY",
}
# What a schema says that names no argument.
_NO_ARGUMENTS = frozenset({"$schema", "type", "properties", "required"})
_JSON = "application/json"
# The gateway's own fields, and those that say nothing to a provider.
_SILENT = frozenset(
    (
        *("multimodal", "fallback", "fallback_config", "memory_id", "memory_config"),
        *("thinking_block_strategy", "use_built_in_tools", "stream", "stream_options"),
    )
)
# Fields of other dialects that cannot be left out unnoticed, and when.
_REFUSED: dict[str, Callable[[Any], bool]] = {
    "audio": bool,
    "functions": bool,
    "function_call": lambda value: value not in ("auto", "none"),
    "web_search_options": lambda value: True,
    "store": lambda value: value is True,
    "previous_response_id": bool,
    "conversation": bool,
    "container": bool,
    "mcp_servers": bool,
}
# What Google's OpenAI-compatible endpoint calls the fields of `thinkingConfig`.
_THINKING = {
    "thinking_budget": "thinkingBudget",
    "thinking_level": "thinkingLevel",
    "include_thoughts": "includeThoughts",
}
_MODALITIES = ("text", "image")


def build_request(call: Call, *, pass_stateful: bool, fetches_urls: bool) -> bytes:
    """Return the body that asks for an answer.

    Args:
        call: `call.dropped` is added to; nothing else changes.
        pass_stateful: whether callers may name things kept at the provider.
        fetches_urls: whether the provider fetches media by address.

    Raises:
        GatewayError: invalid or unsupported, naming the field at fault.
    """
    request = call.request
    caller = Caller(call, pass_stateful=pass_stateful, fetches_urls=fetches_urls)
    body = _what_is_read(call, caller)
    if prefill_of(request):
        body["contents"].append({"role": "user", "parts": [{"text": CONTINUE}]})
    config = _generation_config(call, caller)
    for field in ("end_user", "service_tier", "betas"):
        if getattr(request, field):
            caller.drop(field)
    if request.HasField("extra"):
        _take_extra(body, config, request, caller)
    if config:
        body["generationConfig"] = config
    return orjson.dumps(body)


def build_count(call: Call, *, pass_stateful: bool, fetches_urls: bool) -> bytes:
    """Return the body that asks how many tokens a request would read."""
    caller = Caller(call, pass_stateful=pass_stateful, fetches_urls=fetches_urls)
    model = shaping.model_path(call.target.upstream)
    return orjson.dumps({"generateContentRequest": {"model": model, **_what_is_read(call, caller)}})


def _what_is_read(call: Call, caller: Caller) -> Json:
    request = call.request
    signs = not shaping.is_before_3(call.target.upstream)
    conversation = Conversation(caller, request, signs=signs)
    body: Json = {"contents": conversation.contents}
    if conversation.system:
        body["systemInstruction"] = {"parts": conversation.system}
    if request.tools:
        functions = [_tool(tool, f"tools[{i}]", caller) for i, tool in enumerate(request.tools)]
        body["tools"] = [{"functionDeclarations": functions}]
        if config := _tool_choice(request.tool_choice, caller):
            body["toolConfig"] = {"functionCallingConfig": config}
    return body


def _generation_config(call: Call, caller: Caller) -> Json:
    request = call.request
    config: Json = {}
    for name, theirs in _SAMPLING.items():
        if not request.HasField(name):
            continue
        value = getattr(request, name)
        if name in caller.without or (name == "seed" and value not in _INT32):
            caller.drop(name)
        else:
            config[theirs] = value
    if request.HasField("max_tokens"):
        config["maxOutputTokens"] = request.max_tokens
    if request.stop_sequences:
        config["stopSequences"] = list(request.stop_sequences)
    if request.n > 1:
        config["candidateCount"] = request.n
    if request.logprobs:
        config["responseLogprobs"] = True
        if request.top_logprobs:
            config["logprobs"] = request.top_logprobs
    if request.HasField("output_format"):
        config |= _output_format(request.output_format, caller)
    if request.HasField("thinking") and (thinking := thinking_config(request, caller, call.target)):
        config["thinkingConfig"] = thinking
    return config


def _output_format(form: OutputFormat, caller: Caller) -> Json:
    if form.kind == OutputFormat.KIND_JSON_OBJECT:
        return {"responseMimeType": _JSON}
    if form.kind != OutputFormat.KIND_JSON_SCHEMA:
        return {}
    path = caller.name("output_format")
    if form.description:
        caller.drop(f"{path}.json_schema.description")
    return {"responseMimeType": _JSON, "responseJsonSchema": json_object(form.schema, path)}


def _tool(tool: Tool, path: str, caller: Caller) -> Json:
    if tool.opaque:
        raise refuse(path, "a tool of this type")
    if tool.cache_control:
        caller.drop("tools[].cache_control")
    if tool.strict:
        caller.drop("strict")
    caller.drop_fields(tool.extra, "tools[]")
    function: Json = {"name": shaping.function_name(tool.name)}
    if tool.description:
        function["description"] = tool.description
    # A function without arguments has no schema: Google has refused that of an empty object.
    schema = json_object(tool.input_schema or b"{}", f"{path}.input_schema")
    if schema.get("properties") or schema.keys() - _NO_ARGUMENTS:
        function["parametersJsonSchema"] = schema
    return function


def _tool_choice(choice: ToolChoice, caller: Caller) -> Json:
    if choice.disable_parallel_tool_use:
        caller.drop("parallel")
    mode = _MODES.get(choice.mode)
    if mode is None:
        return _allowed_tools(choice) if choice.HasField("extra") else {}
    config: Json = {"mode": mode}
    if choice.mode == ToolChoice.MODE_TOOL:
        config["allowedFunctionNames"] = [shaping.function_name(choice.name)]
    return config


def _allowed_tools(choice: ToolChoice) -> Json:
    """Read OpenAI's choice of a call among several tools."""
    match json_object(choice.extra.json, "tool_choice"):
        case {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [*tools]}}:
            names = [tool.get("function", {}).get("name") for tool in tools]
            if all(isinstance(name, str) for name in names):
                allowed = [shaping.function_name(name) for name in names]
                return {"mode": "ANY", "allowedFunctionNames": allowed}
    raise refuse("tool_choice", "a choice of this type")


def _take_extra(body: Json, config: Json, request: GenerateRequest, caller: Caller) -> None:
    """Read the fields without a name in the canonical model; name those that are dropped."""
    fields = json_object(request.extra.json, "extra")
    for name, value in fields.items():
        if value is None or name in _SILENT:
            continue
        if name in _REFUSED and _REFUSED[name](value):
            raise refuse(name, f"`{name}`")
        if name == "modalities" and caller.speaks_openai:
            config |= _modalities(value)
        elif name == "extra_body" and isinstance(value, dict):
            _take_googles(body, config, value.get("google"), caller)
        elif request.extra.dialect != conversation_pb2.DIALECT_UNSPECIFIED:
            caller.drop(name)


def _modalities(value: Any) -> Json:
    if value == ["text"]:
        return {}
    if not isinstance(value, list) or not all(one in _MODALITIES for one in value):
        raise refuse("modalities", f"any but {', '.join(_MODALITIES)}")
    return {"responseModalities": [one.upper() for one in value]}


def _take_googles(body: Json, config: Json, given: Any, caller: Caller) -> None:
    """Read what callers of Google's OpenAI-compatible endpoint write into `extra_body.google`."""
    for name, value in given.items() if isinstance(given, dict) else ():
        path = f"extra_body.google.{name}"
        if name == "thinking_config" and isinstance(value, dict):
            own = {theirs: value[ours] for ours, theirs in _THINKING.items() if ours in value}
            config["thinkingConfig"] = own
        elif name == "cached_content":
            if not caller.pass_stateful:
                raise kept_at_provider(path)
            body["cachedContent"] = value
        else:
            caller.drop(path)

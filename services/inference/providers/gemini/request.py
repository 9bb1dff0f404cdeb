"""Translate canonical requests to bodies of `generateContent` and `countTokens`. Pure.

Unsupported fields are refused if the answer depends on them, else dropped and reported. The
fields are those of Google's reference (ai.google.dev/api/generate-content).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from gateway.conversation.v1.conversation_pb2 import DIALECT_GEMINI
from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, Tool, ToolChoice
from services.inference.providers.base import Call
from services.inference.providers.gemini import native, sanitizing
from services.inference.providers.gemini.content import Conversation
from services.inference.providers.gemini.google_tools import write_tools
from services.inference.providers.gemini.reasoning import thinking_config
from services.inference.providers.googles_models import is_before_3
from services.inference.providers.native_tools import may_run_natively, native_tool
from services.inference.providers.opaque_json import Json, read_object, write_body
from services.inference.providers.request_fields import RequestFields, Rules
from services.inference.providers.schemas import for_gemini, has_no_arguments, object_schema
from services.inference.stream.prefill import CONTINUE, prefill_of

# Sampling fields, with their names in `generationConfig`.
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
_JSON = "application/json"
# Google's extension field in requests to its OpenAI-compatible endpoint.
_GOOGLES = "extra_body"
# Names of `thinkingConfig` fields in Google's OpenAI-compatible endpoint.
_THINKING = {
    "thinking_budget": "thinkingBudget",
    "thinking_level": "thinkingLevel",
    "include_thoughts": "includeThoughts",
}
_MODALITIES = ("text", "image")
_CONFIG, _THINKING_CONFIG = "generationConfig", "thinkingConfig"
_FUNCTIONS, _CHOICE = "functionDeclarations", "functionCallingConfig"
_SHOWS_CALLS = "includeServerSideToolInvocations"
_FORMAT_FIELDS = frozenset({"responseMimeType", "responseSchema", "responseJsonSchema"})


class GeminiFields(RequestFields):
    """Decides which parts of a call's request Google is sent; see `RequestFields`."""

    dialect = DIALECT_GEMINI

    @property
    def takes_marks(self) -> bool:
        """Whether marks of a prompt cache have a counterpart: Google caches by itself."""
        return False


def build_request(call: Call, *, pass_stateful: bool, fetches_urls: bool) -> bytes:
    """Return the body of a generation request.

    Args:
        call: the call; only `call.dropped` is modified.
        pass_stateful: whether callers may refer to state stored at the provider.
        fetches_urls: whether the provider fetches media by URL.

    Raises:
        GatewayError: invalid or unsupported, with the path of the field.
    """
    request = call.request
    fields = GeminiFields(call, Rules(pass_stateful, fetches_urls))
    body = _what_is_read(call, fields)
    if fields.is_native:
        return write_body(_native_body(call, fields, body))
    if prefill_of(request):
        body["contents"].append({"role": "user", "parts": [{"text": CONTINUE}]})
    config = _generation_config(call, fields)
    for field in ("end_user", "service_tier", "betas"):
        if getattr(request, field):
            fields.drop(field)
    if request.cache_control:
        fields.drop_mark("cache_control", request.extra)
    if request.output_modalities:
        config |= _modalities(request.output_modalities, fields)
    if request.HasField("extra"):
        extra = fields.leave_out(request.extra, "extra", read=(_GOOGLES,))
        googles_fields = extra.get(_GOOGLES)
        if isinstance(googles_fields, dict):
            _take_googles(body, config, googles_fields.get("google"), fields)
        elif googles_fields is not None:
            fields.drop(f"extra.{_GOOGLES}")
    if config:
        body[_CONFIG] = config
    return write_body(body)


def _native_body(call: Call, fields: RequestFields, body: Json) -> Json:
    """Return a body with the fields that a caller of Google's dialect wrote, over those made here.

    The fields beside it are those of fallback steps and of gRPC callers.
    """
    request = call.request
    own = fields.native_request_fields(request.extra, but=())
    written = own.pop(_CONFIG, {})
    config = _sampling(call, fields)
    if not _FORMAT_FIELDS & written.keys() and request.HasField("output_format"):
        config |= _output_format(call, fields)
    if request.HasField("thinking") and _THINKING_CONFIG not in written:
        config |= {_THINKING_CONFIG: thinking_config(request, fields, call.target)}
    if config := config | written:
        body[_CONFIG] = config
    if tool_config := own.pop("toolConfig", {}):
        body["toolConfig"] = {**tool_config, **body.get("toolConfig", {})}
    return {**own, **body}


def build_count(
    call: Call, wrap: Callable[[str, Json], Json], *, pass_stateful: bool, fetches_urls: bool
) -> bytes:
    """Return the body of a request to count tokens.

    Args:
        call: the call.
        wrap: returns the body for a model and the fields that it reads.
        pass_stateful: whether callers may refer to state stored at the provider.
        fetches_urls: whether the provider fetches media by URL.
    """
    fields = GeminiFields(call, Rules(pass_stateful, fetches_urls))
    return write_body(wrap(call.target.upstream, _what_is_read(call, fields)))


def _what_is_read(call: Call, fields: RequestFields) -> Json:
    request = call.request
    signs = not is_before_3(call.target.upstream)
    runs_natively = not fields.is_native and may_run_natively(request, call.target)
    conversation = Conversation(fields, request, signs=signs, runs_natively=runs_natively)
    body: Json = {"contents": conversation.contents}
    if conversation.system:
        body["systemInstruction"] = {"parts": conversation.system}
    if runs_natively:
        body |= _googles_tools(request, fields)
    elif request.HasField("web_search"):
        raise fields.unsupported("web_search", "web search with these options")
    elif request.tools:
        tools = fields.accepted_tools(request)
        if fields.is_native:
            body["tools"] = _native_tools(tools, fields)
        else:
            functions = [_tool(tool, path, fields) for path, tool in tools]
            body["tools"] = [{_FUNCTIONS: functions}]
        if config := _tool_choice(request.tool_choice, fields):
            body["toolConfig"] = {"functionCallingConfig": config}
    return body


def _googles_tools(request: GenerateRequest, fields: RequestFields) -> Json:
    """Return the fields with Google's own tools in place of the request's, beside its functions."""
    if request.tool_choice.disable_parallel_tool_use:
        fields.drop("tool_choice.disable_parallel_tool_use")
    if request.tool_choice.HasField("extra"):
        raise fields.unsupported("tool_choice", "this tool choice")
    paths = [(f"tools[{index}]", tool) for index, tool in enumerate(request.tools)]
    own = [(path, tool) for path, tool in paths if native_tool(tool) is not None]
    functions = [_tool(tool, path, fields) for path, tool in paths if native_tool(tool) is None]
    tools = write_tools(request, own, fields)
    if request.tool_choice.mode == ToolChoice.MODE_NONE:
        # A choice of functions is refused where there are none.
        choice = {"toolConfig": {_CHOICE: {"mode": "NONE"}}}
        return {"tools": [{_FUNCTIONS: functions}], **choice} if functions else {}
    if not functions:
        return {"tools": tools}
    # Google's tools beside functions: their calls and results are parts of the answer.
    return {"tools": [*tools, {_FUNCTIONS: functions}], "toolConfig": {_SHOWS_CALLS: True}}


def _native_tools(tools: Iterable[tuple[str, Tool]], fields: RequestFields) -> list[Json]:
    """Return the tools of a caller of Google's dialect, with all functions in one."""
    written: list[Json] = []
    functions: list[Json] = []
    for path, tool in tools:
        if tool.opaque:
            if not fields.is_native_opaque(tool.extra):
                raise fields.unsupported_tool(tool.extra, path)
            written.append(fields.checked_object(tool.extra.json, path))
            continue
        if not functions:
            written.append({_FUNCTIONS: functions})
        functions.append(native.function(tool, path, fields))
    return written


def _generation_config(call: Call, fields: RequestFields) -> Json:
    request = call.request
    config = _sampling(call, fields)
    if request.HasField("output_format"):
        config |= _output_format(call, fields)
    if request.HasField("thinking") and (thinking := thinking_config(request, fields, call.target)):
        config[_THINKING_CONFIG] = thinking
    return config


def _sampling(call: Call, fields: RequestFields) -> Json:
    request = call.request
    config: Json = {}
    for name, theirs in _SAMPLING.items():
        if not request.HasField(name):
            continue
        value = getattr(request, name)
        if name in fields.refused_fields or (name == "seed" and value not in _INT32):
            fields.drop(name)
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
    return config


def _output_format(call: Call, fields: RequestFields) -> Json:
    form = call.request.output_format
    if form.kind not in (OutputFormat.KIND_JSON_OBJECT, OutputFormat.KIND_JSON_SCHEMA):
        return {}
    has_tools = call.request.tools or call.request.HasField("web_search")
    if has_tools and is_before_3(call.target.upstream):
        raise fields.unsupported("output_format", "JSON formats together with tools")
    if form.kind == OutputFormat.KIND_JSON_OBJECT:
        return {"responseMimeType": _JSON}
    if form.description:
        fields.drop("output_format.description")
    return {
        "responseMimeType": _JSON,
        "responseJsonSchema": for_gemini(read_object(form.schema, "output_format.schema")),
    }


def _tool(tool: Tool, path: str, fields: RequestFields) -> Json:
    if tool.opaque:
        raise fields.unsupported_tool(tool.extra, path)
    if tool.cache_control:
        fields.drop_mark("tools[].cache_control", tool.extra)
    if tool.strict:
        fields.drop("tools[].strict")
    fields.leave_out(tool.extra, f"{path}.extra", "tools[].extra")
    function: Json = {"name": sanitizing.function_name(tool.name)}
    if tool.description:
        function["description"] = tool.description
    # Functions without parameters have no schema: Google has rejected the schema of an empty
    # object.
    schema = read_object(tool.input_schema or b"{}", f"{path}.input_schema")
    if not has_no_arguments(schema):
        function["parametersJsonSchema"] = for_gemini(object_schema(schema))
    return function


def _tool_choice(choice: ToolChoice, fields: RequestFields) -> Json:
    if choice.disable_parallel_tool_use:
        fields.drop("tool_choice.disable_parallel_tool_use")
    own: Json = {}
    if fields.is_native:
        own = fields.native_fields(choice.extra, "tool_choice.extra").get(_CHOICE, {})
    mode = _MODES.get(choice.mode)
    if own and mode is None:
        return own
    if mode is None:
        if choice.HasField("extra"):
            raise fields.unsupported("tool_choice", "this tool choice")
        return {}
    config: Json = {"mode": mode}
    if choice.mode == ToolChoice.MODE_TOOL:
        name = choice.name if fields.is_native else sanitizing.function_name(choice.name)
        config["allowedFunctionNames"] = [name]
    return config | own


def _modalities(modalities: Sequence[str], fields: RequestFields) -> Json:
    if not all(one in _MODALITIES for one in modalities):
        raise fields.unsupported(
            "output_modalities", f"modalities other than {', '.join(_MODALITIES)}"
        )
    if list(modalities) == ["text"]:
        return {}
    return {"responseModalities": [one.upper() for one in modalities]}


def _take_googles(body: Json, config: Json, googles_fields: Any, fields: RequestFields) -> None:
    """Translate Google's `extra_body.google` of its OpenAI-compatible endpoint."""
    for name, value in googles_fields.items() if isinstance(googles_fields, dict) else ():
        path = f"extra.{_GOOGLES}.google.{name}"
        if name == "thinking_config" and isinstance(value, dict):
            own = {theirs: value[ours] for ours, theirs in _THINKING.items() if ours in value}
            config["thinkingConfig"] = own
        elif name == "cached_content":
            fields.check_stored(path)
            body["cachedContent"] = value
        elif name == "safety_settings":
            body["safetySettings"] = value
        elif name == "media_resolution":
            config["mediaResolution"] = value
        else:
            fields.drop(path)

"""Translate canonical requests to bodies of Converse and of its count of tokens. Pure.

Unsupported fields are refused if the answer depends on them, else dropped and reported. The fields
are those of the service model of `bedrock-runtime`.
"""

from typing import Literal

from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, Tool, ToolChoice
from services.common.errors import unsupported
from services.common.settings import Guardrail
from services.inference.providers.anthropic.cache_marks import fit_marks
from services.inference.providers.anthropic.sanitizing import JSON_ALONE
from services.inference.providers.base import Call
from services.inference.providers.bedrock import sanitizing
from services.inference.providers.bedrock.content import MARK, Conversation, cache_points
from services.inference.providers.bedrock.fields import BedrockFields
from services.inference.providers.bedrock.reasoning import (
    claude_thinking,
    other_thinking,
    reasoning_of,
    top_k,
)
from services.inference.providers.opaque_json import Json, read_object, write_body
from services.inference.providers.schemas import OpenObjectError, for_answer
from services.inference.stream.prefill import CONTINUE

_Dropped = Literal["seed", "presence_penalty", "frequency_penalty"]
_DROPPED: tuple[_Dropped, ...] = ("seed", "presence_penalty", "frequency_penalty")
_TIERS = frozenset({"priority", "default", "flex", "reserved"})
_READ = ("messages", "system", "toolConfig", "additionalModelRequestFields")
_FORMAT_NAME = "answer"
# `maxTokens` with a thinking budget, beside it, if neither the caller nor the catalogue has one.
_DEFAULT_MAX_TOKENS = 4096
_SAMPLING = {"temperature": "temperature", "top_p": "topP"}


def build_request(call: Call, *, pass_stateful: bool, guardrail: Guardrail | None = None) -> bytes:
    """Return the body of a request of Converse or ConverseStream.

    Args:
        call: the call; only `call.dropped` and the like are modified.
        pass_stateful: whether callers may refer to objects stored at the provider.
        guardrail: the guardrail of the operator.

    Raises:
        GatewayError: invalid or unsupported, with the path of the field.
    """
    body = _body(call, pass_stateful=pass_stateful)
    if guardrail is not None:
        body["guardrailConfig"] = {
            "guardrailIdentifier": guardrail.id,
            "guardrailVersion": guardrail.version,
        }
    return write_body(body)


def build_count(call: Call, *, pass_stateful: bool, guardrail: Guardrail | None = None) -> bytes:
    """Return the body of a request to count tokens."""
    body = _body(call, pass_stateful=pass_stateful)
    read = {name: body[name] for name in _READ if name in body}
    return write_body({"input": {"converse": read}})


def _body(call: Call, *, pass_stateful: bool) -> Json:
    request = call.request
    fields = BedrockFields(call, pass_stateful=pass_stateful)
    _refuse_what_has_no_place(request, fields)
    body = _what_is_read(call, fields)
    body |= _settings(call, fields)
    if request.HasField("output_format"):
        body |= _output_format(request.output_format, fields)
    if request.service_tier in _TIERS:
        body["serviceTier"] = {"type": request.service_tier}
    elif request.service_tier:
        fields.drop("service_tier")
    for field in ("end_user", "betas"):
        if getattr(request, field):
            fields.drop(field)
    if request.HasField("extra"):
        fields.leave_out(request.extra, "extra")
    return body


def _settings(call: Call, fields: BedrockFields) -> Json:
    """Return the sampling and thinking settings."""
    request = call.request
    reasoning = reasoning_of(request, fields, call.target)
    config = _inference_config(request)
    additional = claude_thinking(reasoning) or other_thinking(request, fields, config)
    if reasoning.budget and "maxTokens" not in config:
        bound = call.target.max_output_tokens
        config["maxTokens"] = bound or _DEFAULT_MAX_TOKENS + reasoning.budget
    for name, theirs in _SAMPLING.items():
        is_refused = name in fields.refused_fields
        if theirs in config and (is_refused or reasoning.bars(name, config[theirs])):
            del config[theirs]
            fields.drop(name)
    if request.HasField("top_k"):
        of_top_k = {} if reasoning.thinks else top_k(request.top_k, fields.family)
        if "top_k" in fields.refused_fields or not of_top_k:
            fields.drop("top_k")
        else:
            additional |= of_top_k
    named = {"inferenceConfig": config, "additionalModelRequestFields": additional}
    return {name: value for name, value in named.items() if value}


def _refuse_what_has_no_place(request: GenerateRequest, fields: BedrockFields) -> None:
    if request.n > 1:
        raise fields.unsupported("n", "more than one answer per request")
    for name in ("logprobs", "top_logprobs"):
        if getattr(request, name):
            raise fields.unsupported(name, "log probabilities")
    if request.output_modalities:
        if list(request.output_modalities) != ["text"]:
            raise fields.unsupported("output_modalities", "output other than text")
        fields.drop("output_modalities")
    if request.HasField("web_search"):
        raise fields.unsupported("web_search", "web search with these options")
    if request.temperature > 1:
        raise unsupported("temperature", "temperature: must be 0 to 1 for this model's provider")
    for dropped in _DROPPED:
        # A penalty of 0 is the default; a seed of 0 is a seed.
        if request.HasField(dropped) and (dropped == "seed" or getattr(request, dropped)):
            fields.drop(dropped)


def _what_is_read(call: Call, fields: BedrockFields) -> Json:
    """Return the conversation, the system prompt and the tools."""
    request = call.request
    tools = [_tool(tool, path, fields) for path, tool in fields.accepted_tools(request)]
    # Converse has no choice of no tool.
    has_tools = bool(tools) and request.tool_choice.mode != ToolChoice.MODE_NONE
    written = Conversation(fields, request.messages, has_tools=has_tools)
    if written.messages[-1]["role"] == "assistant":
        # A prefill, or a user's last message without content.
        written.messages.append({"role": "user", "content": [{"text": CONTINUE}]})
    body: Json = {"messages": written.messages, "system": written.system, "tools": tools}
    if not has_tools:
        body["tools"] = []
    if request.cache_control and fields.takes_marks:
        mark = fields.checked_object(request.cache_control, "cache_control")
        written.messages[-1]["content"][-1].setdefault(MARK, mark)
    elif request.cache_control:
        fields.drop_mark("cache_control", request.extra)
    if fields.takes_marks and fit_marks(body):
        fields.drop("messages[].blocks[].cache_control")
    for message in written.messages:
        message["content"] = cache_points(message["content"])
    system, tools = cache_points(body.pop("system")), cache_points(body.pop("tools"))
    if request.output_format.kind == OutputFormat.KIND_JSON_OBJECT:
        system.append({"text": JSON_ALONE})
    if system:
        body["system"] = system
    if tools:
        body["toolConfig"] = {"tools": tools, **_tool_choice(request.tool_choice, fields)}
    return body


def _tool(tool: Tool, path: str, fields: BedrockFields) -> Json:
    if tool.opaque:
        raise fields.unsupported_tool(tool.extra, path)
    written: Json = {"name": tool.name}
    schema = read_object(tool.input_schema or b"{}", f"{path}.input_schema")
    fields.add_schema(written, schema, strict=tool.strict)
    spec: Json = {
        "name": sanitizing.tool_name(tool.name),
        "inputSchema": {"json": written["input_schema"]},
    }
    if tool.description:
        spec["description"] = tool.description
    if written.get("strict"):
        spec["strict"] = True
    translated: Json = {"toolSpec": spec}
    if tool.cache_control and fields.takes_marks:
        translated[MARK] = fields.checked_object(tool.cache_control, f"{path}.cache_control")
    elif tool.cache_control:
        fields.drop_mark("tools[].cache_control", tool.extra)
    fields.leave_out(tool.extra, f"{path}.extra", "tools[].extra")
    return translated


def _tool_choice(choice: ToolChoice, fields: BedrockFields) -> Json:
    if choice.disable_parallel_tool_use:
        fields.drop("tool_choice.disable_parallel_tool_use")
    if choice.HasField("extra"):
        if choice.mode == ToolChoice.MODE_UNSPECIFIED:
            raise fields.unsupported("tool_choice", "this tool choice")
        fields.leave_out(choice.extra, "tool_choice.extra")
    match choice.mode:
        case ToolChoice.MODE_ANY:
            return {"toolChoice": {"any": {}}}
        case ToolChoice.MODE_TOOL:
            return {"toolChoice": {"tool": {"name": sanitizing.tool_name(choice.name)}}}
        case ToolChoice.MODE_AUTO:
            return {"toolChoice": {"auto": {}}}
    return {}


def _inference_config(request: GenerateRequest) -> Json:
    config: Json = {}
    if request.HasField("max_tokens"):
        config["maxTokens"] = request.max_tokens
    if request.HasField("temperature"):
        config["temperature"] = request.temperature
    if request.HasField("top_p"):
        config["topP"] = request.top_p
    if request.stop_sequences:
        config["stopSequences"] = list(request.stop_sequences)
    return config


def _output_format(form: OutputFormat, fields: BedrockFields) -> Json:
    if form.kind != OutputFormat.KIND_JSON_SCHEMA:
        return {}
    schema = read_object(form.schema, "output_format.schema")
    try:
        schema = for_answer(schema)
    except OpenObjectError as error:
        raise fields.unsupported(
            f"output_format.schema{error.path.replace('/', '.')}",
            "objects with members of any name in the schema of an answer",
        ) from None
    definition: Json = {"schema": write_body(schema).decode(), "name": form.name or _FORMAT_NAME}
    if form.description:
        definition["description"] = form.description
    structure = {"jsonSchema": definition}
    return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": structure}}}

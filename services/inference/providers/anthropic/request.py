"""Canonical requests as bodies of Anthropic's `POST /v1/messages` and `…/count_tokens`.

Everything here is a pure rule. What the API has no place for is refused by its path
where the answer would be another without it, and dropped and told where it would not.
"""

from collections.abc import Callable
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, Tool, ToolChoice
from services.common.errors import invalid, unsupported
from services.inference.providers import forms
from services.inference.providers.anthropic import shaping
from services.inference.providers.anthropic.caller import Caller, json_object, kept_at_provider
from services.inference.providers.anthropic.content import Conversation, Json, refuse, shortest
from services.inference.providers.anthropic.reasoning import Reasoning
from services.inference.providers.base import Call
from services.inference.stream.prefill import CONTINUE, prefill_of

# What is asked for where neither the caller nor the catalogue knows a bound.
DEFAULT_MAX_TOKENS = 4096

# Fields of Anthropic's requests that name something kept under the operator's account.
_STATEFUL = ("container", "mcp_servers", "workspace_id", "user_profile_id")

# Fields that come from the canonical request or are the gateway's own.
_NEVER_FROM_EXTRA = frozenset(
    (
        *("model", "messages", "system", "stream", "max_tokens", "tools", "tool_choice"),
        *("multimodal", "fallback", "fallback_config", "memory_id", "memory_config"),
        *("thinking_block_strategy", "use_built_in_tools"),
    )
)
# Fields that both the canonical request and `extra` may hold parts of.
_SHARED = ("output_config", "metadata")

# Fields of OpenAI's requests that cannot be left out unnoticed, and when.
_REFUSED: dict[str, Callable[[Any], bool]] = {
    "audio": bool,
    "modalities": lambda value: value != ["text"],
    "functions": bool,
    "function_call": lambda value: value not in ("auto", "none"),
    "web_search_options": lambda value: True,
    "store": lambda value: value is True,
    "previous_response_id": bool,
}

# What the canonical request calls fields of a body, where names differ.
_CANONICAL = {"metadata": "end_user"}

_CHOICES = {
    inference_pb2.ToolChoice.MODE_AUTO: "auto",
    inference_pb2.ToolChoice.MODE_ANY: "any",
    inference_pb2.ToolChoice.MODE_NONE: "none",
    inference_pb2.ToolChoice.MODE_TOOL: "tool",
}


def build_request(call: Call, *, pass_stateful: bool, fetches_urls: bool, official: bool) -> bytes:
    """Return the body that asks for an answer.

    Args:
        call: `call.dropped` is added to; nothing else changes.
        pass_stateful: whether callers may name things kept at the provider.
        fetches_urls: whether the provider fetches media by address.
        official: whether it is Anthropic itself.

    Raises:
        GatewayError: invalid or unsupported, naming the field at fault.
    """
    request = call.request
    caller = Caller(call, pass_stateful=pass_stateful, fetches_urls=fetches_urls, official=official)
    _refuse_what_has_no_place(request, caller)
    reasoning = Reasoning(request, caller, call.target)
    body = _what_is_read(call, caller, reasoning)
    body["max_tokens"] = _max_tokens(call, reasoning)
    if not call.prefills and prefill_of(request):
        body["messages"].append({"role": "user", "content": CONTINUE})
    if call.stream:
        body["stream"] = True
    _add_sampling(body, request, caller, reasoning)
    if request.stop_sequences:
        body["stop_sequences"] = _stop_sequences(request, caller)
    if request.end_user:
        user = request.end_user
        body["metadata"] = {"user_id": user if caller.speaks_anthropic else shaping.end_user(user)}
    if request.service_tier:
        if caller.speaks_anthropic:
            body["service_tier"] = request.service_tier
        else:
            caller.drop("service_tier")
    _add_extra(body, request, caller)
    if call.without:
        for name in call.leave_out_refused(body):
            caller.drop(caller.name(_CANONICAL.get(name, name)))
    return orjson.dumps(body)


def build_count(call: Call, *, pass_stateful: bool, fetches_urls: bool, official: bool) -> bytes:
    """Return the body that asks how many tokens a request would read.

    It is `build_request` without what matters to writing alone.
    """
    caller = Caller(call, pass_stateful=pass_stateful, fetches_urls=fetches_urls, official=official)
    reasoning = Reasoning(call.request, caller, call.target)
    body = _what_is_read(call, caller, reasoning)
    _add_extra(body, call.request, caller)
    for name in ("metadata", "service_tier", "inference_geo"):
        body.pop(name, None)
    return orjson.dumps(body)


def beta_header(request: GenerateRequest) -> list[tuple[str, str]]:
    """Return the header that turns the caller's beta features on, or nothing."""
    value = ",".join(request.betas)
    if not (value.isascii() and value.isprintable()):
        raise invalid("anthropic-beta", "anthropic-beta: names of beta features are needed")
    return [("anthropic-beta", value)] if value else []


def _what_is_read(call: Call, caller: Caller, reasoning: Reasoning) -> Json:
    request = call.request
    body: Json = {"model": call.target.upstream}
    if call.source is not None:
        body |= {name: orjson.Fragment(json) for name, json in call.source.items()}
    else:
        body |= _translated(request, caller)
    if request.HasField("tool_choice"):
        choice = _tool_choice(request.tool_choice, caller)
        # Without tools Anthropic takes no choice, not even one that says what holds anyway.
        if choice and ("tools" in body or caller.speaks_anthropic):
            body["tool_choice"] = choice
    if reasoning.config:
        body["thinking"] = reasoning.config
    output: Json = {}
    if request.HasField("output_format"):
        output |= _output_format(request.output_format, caller)
    if reasoning.effort:
        output["effort"] = reasoning.effort
    if output:
        body["output_config"] = output
    return body


def _translated(request: GenerateRequest, caller: Caller) -> Json:
    """Return the conversation and its tools."""
    conversation = Conversation(caller, request.messages)
    if request.output_format.kind == OutputFormat.KIND_JSON_OBJECT:
        # Anthropic holds answers to a schema alone; any object has to be asked for.
        conversation.system.append({"type": "text", "text": shaping.JSON_ALONE})
    fields: Json = {"messages": conversation.messages}
    if conversation.system:
        fields["system"] = shortest(conversation.system)
    if request.tools:
        fields["tools"] = [
            _tool(tool, f"tools[{index}]", caller) for index, tool in enumerate(request.tools)
        ]
    return fields


def _refuse_what_has_no_place(request: GenerateRequest, caller: Caller) -> None:
    if request.n > 1:
        raise refuse("n", "more than one answer to a request")
    if request.logprobs:
        raise refuse("logprobs", "log probabilities")
    if request.top_logprobs:
        raise refuse("top_logprobs", "log probabilities")
    if request.temperature > 1:
        raise unsupported(
            "temperature", "temperature: this model's provider takes a number from 0 to 1"
        )
    for name in ("seed", "presence_penalty", "frequency_penalty"):
        # A penalty of 0 is what holds anyway; a seed of 0 is a seed.
        if request.HasField(name) and (name == "seed" or getattr(request, name)):
            caller.drop(name)


def _max_tokens(call: Call, reasoning: Reasoning) -> int:
    if call.request.HasField("max_tokens"):
        return call.request.max_tokens
    # Who set no bound for the answer did not mean thinking to use it up.
    return call.target.max_output_tokens or DEFAULT_MAX_TOKENS + reasoning.budget


def _add_sampling(
    body: Json, request: GenerateRequest, caller: Caller, reasoning: Reasoning
) -> None:
    for name in ("temperature", "top_p", "top_k"):
        if not request.HasField(name):
            continue
        value = getattr(request, name)
        if reasoning.bars(name, value) and not caller.speaks_anthropic:
            caller.drop(name)
        else:
            body[name] = value


def _stop_sequences(request: GenerateRequest, caller: Caller) -> list[str]:
    if not caller.speaks_anthropic:
        for index, text in enumerate(request.stop_sequences):
            if not text.strip():
                path = f"{caller.name('stop_sequences')}[{index}]"
                raise refuse(path, "a stop sequence of white space alone")
    return list(request.stop_sequences)


def _tool(tool: Tool, path: str, caller: Caller) -> Json:
    if tool.opaque:
        if tool.extra.dialect != conversation_pb2.DIALECT_ANTHROPIC:
            raise refuse(path, "a tool of this type")
        return caller.own_fields(tool.extra, path)
    translated: Json = {"name": tool.name}
    if tool.description:
        translated["description"] = tool.description
    schema = json_object(tool.input_schema or b"{}", f"{path}.{_schema_name(caller)}")
    if not caller.speaks_anthropic or not schema:
        schema = {"type": "object"} | schema
    translated["input_schema"] = schema
    # False is what holds without it, and older models know no such field.
    if tool.strict or (tool.HasField("strict") and caller.speaks_anthropic):
        translated["strict"] = tool.strict
    if tool.cache_control:
        translated["cache_control"] = json_object(tool.cache_control, f"{path}.cache_control")
    elif (mark := caller.cache_control(tool.extra)) is not None:
        translated["cache_control"] = mark
    return caller.own_fields(tool.extra, path, told_as="tools[]") | translated


def _schema_name(caller: Caller) -> str:
    return "function.parameters" if caller.speaks_openai else "input_schema"


def _tool_choice(choice: ToolChoice, caller: Caller) -> Json:
    mode = _CHOICES.get(choice.mode)
    foreign = choice.extra.dialect != conversation_pb2.DIALECT_ANTHROPIC
    if mode is None and foreign and choice.HasField("extra"):
        raise refuse("tool_choice", "a choice of this type")
    translated = caller.own_fields(choice.extra, "tool_choice")
    if mode is None and not translated and choice.HasField("disable_parallel_tool_use"):
        mode = "auto"
    if mode:
        translated["type"] = mode
    if mode == "tool":
        translated["name"] = choice.name
    if mode != "none" and choice.HasField("disable_parallel_tool_use"):
        translated["disable_parallel_tool_use"] = choice.disable_parallel_tool_use
    return translated


def _output_format(form: OutputFormat, caller: Caller) -> Json:
    path = caller.name("output_format")
    if form.kind != OutputFormat.KIND_JSON_SCHEMA:
        return {}
    if form.description:
        caller.drop(f"{path}.json_schema.description")
    schema = json_object(form.schema, path)
    if not caller.speaks_anthropic:
        schema = shaping.closed_schema(schema)
    return {"format": {"type": "json_schema", "schema": schema}}


def _add_extra(body: Json, request: GenerateRequest, caller: Caller) -> None:
    """Put the fields without a name here back, under those that have one."""
    if not request.HasField("extra"):
        return
    if request.extra.dialect == conversation_pb2.DIALECT_OPENAI:
        fields = json_object(request.extra.json, "")
        if fields.get("cache_control") is not None:
            body["cache_control"] = fields.pop("cache_control")
        _leave_out_foreign(fields, request, caller)
        return
    for name, value in caller.own_fields(request.extra, "").items():
        if name in _STATEFUL and value and not caller.pass_stateful:
            raise kept_at_provider(name)
        if name in _SHARED and isinstance(value, dict):
            body[name] = value | body.get(name, {})
        elif name not in _NEVER_FROM_EXTRA:
            body.setdefault(name, value)


def _leave_out_foreign(fields: Json, request: GenerateRequest, caller: Caller) -> None:
    """Note OpenAI's fields without a name here as dropped; refuse those that are needed."""
    for name, value in fields.items():
        if value is None:
            continue
        if name in _REFUSED and _REFUSED[name](value):
            raise refuse(name, f"`{name}`")
        for path in forms.unnamed_fields(value, request) if name == forms.NAME else (name,):
            caller.drop(path)

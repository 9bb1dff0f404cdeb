"""Translate canonical requests to bodies of Anthropic's `POST /v1/messages` and `…/count_tokens`.

Pure. A part that the API does not support is refused with its path if the answer depends on it, and
else dropped and reported.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from gateway.inference.v1 import inference_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, OutputFormat, Tool, ToolChoice
from services.common.errors import invalid, unsupported
from services.common.messages.plain_message import PlainRequest, PlainTool
from services.inference.learned.refused_paths import ALL_BETAS, BETA
from services.inference.providers.anthropic import sanitizing
from services.inference.providers.anthropic.cache_marks import fit_marks
from services.inference.providers.anthropic.content import Conversation, shortest
from services.inference.providers.anthropic.fields import AnthropicFields
from services.inference.providers.anthropic.reasoning import Reasoning
from services.inference.providers.base import Call
from services.inference.providers.opaque_json import Json, read_object, write_body
from services.inference.providers.schemas import OpenObjectError, for_answer, object_schema
from services.inference.stream.prefill import CONTINUE, prefill_of

# `max_tokens` if neither the caller nor the catalogue has a bound.
_DEFAULT_MAX_TOKENS = 4096
# Settings of another dialect that are sent as they are.
_PLAIN = frozenset(("max_tokens", "temperature", "top_p", "top_k", "tool_choice"))
# Fields that come from the canonical request or are the gateway's own.
_NEVER_FROM_EXTRA = frozenset(
    (
        *("model", "messages", "system", "stream", "max_tokens", "tools", "tool_choice"),
        *("multimodal", "fallback", "fallback_config", "memory_id", "memory_config"),
        *("thinking_block_strategy", "use_built_in_tools"),
    )
)
# Fields with parts both in the canonical request and in `extra`.
_SHARED = ("output_config", "metadata")

# Canonical names of fields, where they differ from Anthropic's.
_CANONICAL = {"metadata": "end_user"}
# Fields with the same name on both sides.
_NAMED = frozenset(("temperature", "top_p", "top_k", "thinking", "service_tier", "tool_choice"))

_CHOICES = {
    inference_pb2.ToolChoice.MODE_AUTO: "auto",
    inference_pb2.ToolChoice.MODE_ANY: "any",
    inference_pb2.ToolChoice.MODE_NONE: "none",
    inference_pb2.ToolChoice.MODE_TOOL: "tool",
}


def build_request(
    call: Call, head: Json, *, pass_stateful: bool, fetches_urls: bool, official: bool
) -> bytes:
    """Return the request body.

    Args:
        call: the call; only `call.dropped` is modified.
        head: the first fields; see `Endpoint.head`.
        pass_stateful: whether callers may refer to objects stored at the provider.
        fetches_urls: whether the provider fetches media by URL.
        official: whether it is Anthropic's own server.

    Raises:
        GatewayError: invalid or unsupported, with the path of the field.
    """
    lazy = call.lazy
    has_whole_body = lazy is not None and lazy.has_whole_body
    if lazy is not None and has_whole_body and call.request.dialect == AnthropicFields.dialect:
        # Passed through as the caller wrote it.
        return orjson.dumps({**head, **lazy.writable(), **head})
    fields = AnthropicFields(
        call, pass_stateful=pass_stateful, fetches_urls=fetches_urls, official=official
    )
    if has_whole_body:
        if call.plain is not None and (settings := _plain_settings(call.plain)) is not None:
            return _finished(_plain_body(call, head, settings, fields), call)
        call.complete()
    request = call.request
    _refuse_what_has_no_place(request, fields)
    reasoning = Reasoning(request, fields, call.target)
    body = head | _what_is_read(call, fields, reasoning)
    body["max_tokens"] = _max_tokens(call, reasoning)
    if not call.prefills and prefill_of(request):
        body["messages"].append({"role": "user", "content": CONTINUE})
    _add_sampling(body, request, fields, reasoning)
    if request.stop_sequences:
        body["stop_sequences"] = _stop_sequences(request, fields)
    if request.end_user:
        user = request.end_user
        body["metadata"] = {"user_id": user if fields.is_native else sanitizing.end_user(user)}
    if request.service_tier:
        if fields.is_native:
            body["service_tier"] = request.service_tier
        else:
            fields.drop("service_tier")
    _add_extra(body, request, fields)
    if fields.has_marks and not fields.is_native and fit_marks(body):
        fields.drop("messages[].blocks[].cache_control")
    return _finished(body, call)


def _plain_settings(plain: PlainRequest) -> Mapping[str, Any] | None:
    """Return the settings of a request of another dialect, if they can be sent as they are."""
    settings = plain.settings
    if settings is None or not settings.keys() <= _PLAIN or settings.get("temperature", 0) > 1:
        return None
    return settings


def _plain_body(
    call: Call, head: Json, settings: Mapping[str, Any], fields: AnthropicFields
) -> Json:
    """Return the body of a request whose settings are sent as they are."""
    bound = call.target.max_output_tokens or _DEFAULT_MAX_TOKENS
    conversation = _conversation(call, fields)
    body: Json = {**head, **conversation, "max_tokens": bound, **settings}
    if "tool_choice" in settings:
        body["tool_choice"] = {"type": settings["tool_choice"]}
    return body


def _finished(body: Json, call: Call) -> bytes:
    """Serialize a body, without the fields that the model rejects."""
    if call.refused_fields:
        for name in call.leave_out_refused(body):
            call.drop(_CANONICAL.get(name, name if name in _NAMED else f"extra.{name}"))
    return write_body(body)


def build_count(
    call: Call, head: Json, *, pass_stateful: bool, fetches_urls: bool, official: bool
) -> bytes:
    """Return the body of a request to count input tokens.

    As `build_request`, without the fields that concern only the output.
    """
    fields = AnthropicFields(
        call, pass_stateful=pass_stateful, fetches_urls=fetches_urls, official=official
    )
    reasoning = Reasoning(call.request, fields, call.target)
    body = head | _what_is_read(call, fields, reasoning)
    _add_extra(body, call.request, fields)
    for name in ("metadata", "service_tier", "inference_geo"):
        body.pop(name, None)
    return write_body(body)


def beta_header(call: Call) -> list[tuple[str, str]]:
    """Return the header that enables the caller's beta features that the model accepts, if any."""
    betas: Sequence[str] = call.request.betas
    refused_fields = call.refused_fields
    if not betas:
        return []
    if refused_fields:
        for name in betas:
            if BETA + name in refused_fields or ALL_BETAS in refused_fields:
                call.drop(BETA + name)
        betas = [name for name in betas if BETA + name not in call.dropped]
    value = ",".join(betas)
    if not (value.isascii() and value.isprintable()):
        raise invalid("anthropic-beta", "anthropic-beta: must be names of beta features")
    return [("anthropic-beta", value)] if value else []


def _what_is_read(call: Call, fields: AnthropicFields, reasoning: Reasoning) -> Json:
    request = call.request
    body = _conversation(call, fields)
    if request.HasField("tool_choice"):
        choice = _tool_choice(request.tool_choice, fields)
        # Without tools Anthropic accepts no choice, not even the default.
        if choice and ("tools" in body or fields.is_native):
            body["tool_choice"] = choice
    if reasoning.config:
        body["thinking"] = reasoning.config
    output: Json = {}
    if request.HasField("output_format"):
        output |= _output_format(request.output_format, fields)
    if reasoning.effort:
        output["effort"] = reasoning.effort
    if output:
        body["output_config"] = output
    return body


def _conversation(call: Call, fields: AnthropicFields) -> Json:
    """Return the messages, the system prompt and the tools."""
    lazy = call.lazy
    if lazy is not None and fields.is_native:
        return {name: orjson.Fragment(json) for name, json in lazy.verbatim.items()}
    plain = call.plain
    if plain is not None:
        sent_tools, other = plain.tools, partial(_tool, path="tools[]", fields=fields)
        tools = [
            _plain_tool(one, fields) if isinstance(one, PlainTool) else other(one)
            for one in sent_tools
        ]
        written = Conversation(fields, plain.messages)
    else:
        call.complete()
        request = call.request
        tools = [_tool(tool, path, fields) for path, tool in fields.accepted_tools(request)]
        written = Conversation(fields, request.messages)
    if call.request.output_format.kind == OutputFormat.KIND_JSON_OBJECT:
        # Anthropic enforces only schemas; for an arbitrary JSON object the prompt has to ask.
        written.system.append({"type": "text", "text": sanitizing.JSON_ALONE})
    translated: Json = {"messages": written.messages}
    if written.system:
        translated["system"] = shortest(written.system)
    if tools or (plain is None and call.request.tools):
        translated["tools"] = tools
    return translated


def _plain_tool(tool: PlainTool, fields: AnthropicFields) -> Json:
    written: Json = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    fields.add_schema(written, tool.parameters, strict=bool(tool.strict))
    return written


def _refuse_what_has_no_place(request: GenerateRequest, fields: AnthropicFields) -> None:
    if request.n > 1:
        raise fields.unsupported("n", "more than one answer per request")
    if request.logprobs:
        raise fields.unsupported("logprobs", "log probabilities")
    if request.top_logprobs:
        raise fields.unsupported("top_logprobs", "log probabilities")
    if request.output_modalities:
        if list(request.output_modalities) != ["text"]:
            raise fields.unsupported("output_modalities", "output other than text")
        fields.drop("output_modalities")
    if request.HasField("web_search"):
        raise fields.unsupported("web_search", "web search with these options")
    if request.temperature > 1:
        raise unsupported("temperature", "temperature: must be 0 to 1 for this model's provider")
    for name in ("seed", "presence_penalty", "frequency_penalty"):
        # A penalty of 0 is the default; a seed of 0 is a seed.
        if request.HasField(name) and (name == "seed" or getattr(request, name)):
            fields.drop(name)


def _max_tokens(call: Call, reasoning: Reasoning) -> int:
    if call.request.HasField("max_tokens"):
        return call.request.max_tokens
    # Without a bound of the caller, the budget must not reduce the answer.
    return call.target.max_output_tokens or _DEFAULT_MAX_TOKENS + reasoning.budget


def _add_sampling(
    body: Json, request: GenerateRequest, fields: AnthropicFields, reasoning: Reasoning
) -> None:
    for name in ("temperature", "top_p", "top_k"):
        if not request.HasField(name):
            continue
        value = getattr(request, name)
        if reasoning.bars(name, value) and not fields.is_native:
            fields.drop(name)
        else:
            body[name] = value


def _stop_sequences(request: GenerateRequest, fields: AnthropicFields) -> list[str]:
    if not fields.is_native:
        for index, text in enumerate(request.stop_sequences):
            if not text.strip():
                path = f"stop_sequences[{index}]"
                raise fields.unsupported(path, "stop sequences of only white space")
    return list(request.stop_sequences)


def _tool(tool: Tool, path: str, fields: AnthropicFields) -> Json:
    if tool.opaque:
        if not fields.is_native_opaque(tool.extra):
            raise fields.unsupported_tool(tool.extra, path)
        return fields.native_fields(tool.extra, path)
    translated: Json = {"name": tool.name}
    if tool.description:
        translated["description"] = tool.description
    schema = read_object(tool.input_schema or b"{}", f"{path}.input_schema")
    if fields.is_native:
        translated["input_schema"] = schema or object_schema(schema)
        if tool.HasField("strict"):
            translated["strict"] = tool.strict
    else:
        # False is the default, and older models do not support the field.
        fields.add_schema(translated, schema, strict=tool.strict)
    if tool.cache_control:
        fields.has_marks = True
        translated["cache_control"] = fields.checked_object(
            tool.cache_control, f"{path}.cache_control"
        )
    return fields.native_fields(tool.extra, f"{path}.extra", "tools[].extra") | translated


def _tool_choice(choice: ToolChoice, fields: AnthropicFields) -> Json:
    mode = _CHOICES.get(choice.mode)
    if mode is None and choice.HasField("extra") and not fields.is_native_opaque(choice.extra):
        raise fields.unsupported("tool_choice", "this tool choice")
    translated = fields.native_fields(choice.extra, "tool_choice.extra")
    if mode is None and not translated and choice.HasField("disable_parallel_tool_use"):
        mode = "auto"
    if mode:
        translated["type"] = mode
    if mode == "tool":
        translated["name"] = choice.name
    if mode != "none" and choice.HasField("disable_parallel_tool_use"):
        translated["disable_parallel_tool_use"] = choice.disable_parallel_tool_use
    return translated


def _output_format(form: OutputFormat, fields: AnthropicFields) -> Json:
    if form.kind != OutputFormat.KIND_JSON_SCHEMA:
        return {}
    if form.description:
        fields.drop("output_format.description")
    schema = read_object(form.schema, "output_format.schema")
    if not fields.is_native:
        try:
            schema = for_answer(schema)
        except OpenObjectError as error:
            raise fields.unsupported(
                f"output_format.schema{error.path.replace('/', '.')}",
                "objects with members of any name in the schema of an answer",
            ) from None
    return {"format": {"type": "json_schema", "schema": schema}}


def _add_extra(body: Json, request: GenerateRequest, fields: AnthropicFields) -> None:
    """Add the unknown fields; known ones take precedence."""
    if request.cache_control:
        body["cache_control"] = fields.checked_object(request.cache_control, "cache_control")
    extra = fields.native_request_fields(request.extra, but=_NEVER_FROM_EXTRA)
    for name, value in extra.items():
        if name in _SHARED and isinstance(value, dict):
            body[name] = value | body.get(name, {})
        else:
            body.setdefault(name, value)

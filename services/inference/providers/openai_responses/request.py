"""Translate canonical requests to bodies of OpenAI's responses. Pure."""

from collections.abc import Mapping
from typing import Any

import orjson

from gateway.inference.v1.inference_pb2 import (
    GenerateRequest,
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.common.errors import unsupported
from services.inference.learned.refusals import ENCRYPTED_REASONING
from services.inference.providers.base import Call
from services.inference.providers.opaque_json import Json, write_body
from services.inference.providers.openai.fields import Server, fragment, parameters_of
from services.inference.providers.openai_responses.fields import ResponsesFields
from services.inference.providers.openai_responses.items import Input
from services.inference.stream.prefill import CONTINUE, prefill_of

ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
_FUNCTION = "function"
_CHOICES = {
    ToolChoice.MODE_AUTO: "auto",
    ToolChoice.MODE_ANY: "required",
    ToolChoice.MODE_NONE: "none",
}
# Fields with the same meaning on both sides, by their canonical names.
_SAME = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_logprobs": "top_logprobs",
    "max_tokens": "max_output_tokens",
    "end_user": "user",
    "service_tier": "service_tier",
}
# Canonical fields that responses do not support.
_NOT_THERE = ("top_k", "seed", "presence_penalty", "frequency_penalty", "betas")
# Fields that only the gateway sets.
_NEVER_FROM_EXTRA = frozenset(
    {
        *("multimodal", "fallback", "fallback_config", "memory_id", "memory_config"),
        *("use_built_in_tools", "thinking_block_strategy", "stream", "background"),
    }
)
# Fields of a request that counts its input tokens.
_COUNTED = frozenset(
    {
        *("model", "input", "instructions", "previous_response_id", "conversation"),
        *("tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation"),
        "personality",
    }
)
# Fields that the gateway adds to a request for an answer.
_ANSWERED = frozenset({"store", "include", "stream"})
_BACKGROUND_OPTIONS = "background_options"
# Canonical names of fields, where they differ from OpenAI's.
_CANONICAL = {
    "user": "end_user",
    "reasoning": "thinking.effort",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
}
# Names in `refused_fields`; the request's fields are in `text` and `reasoning`.
VERBOSITY = "verbosity"
REASONING_EFFORT = "reasoning_effort"


def build_request(call: Call, server: Server) -> bytes:
    """Return the JSON body for one attempt; fields left out are added to `call.dropped`.

    Raises:
        GatewayError: unsupported, if the body cannot express a part of the request; invalid, if a
            part is malformed or refers to an object stored at the provider.
    """
    lazy = call.lazy
    if lazy is not None and lazy.has_whole_body:
        return orjson.dumps(
            _finished({"model": call.target.upstream, **lazy.writable()}, call, server)
        )
    request = call.request
    if request.n > 1:
        raise unsupported("n", "n: must be 1; this model's provider uses the responses API")
    fields = ResponsesFields(call, server)
    native = _native_fields(request, fields, is_streamed=call.stream)
    body: Json = {"model": call.target.upstream}
    if lazy is not None:
        body |= {name: orjson.Fragment(json) for name, json in lazy.verbatim.items()}
    else:
        _add_conversation(body, request, fields)
    set_fields = {field.name: value for field, value in request.ListFields()}
    body |= {name: set_fields[field] for field, name in _SAME.items() if field in set_fields}
    for field in _NOT_THERE:
        if field in set_fields:
            fields.drop(field)
    if request.cache_control:
        fields.drop_mark("cache_control", request.extra)
    if "tools" in body:
        _add_tool_choice(body, request.tool_choice, fields)
    if reasoning := _reasoning(request.thinking, native, fields):
        body["reasoning"] = reasoning
    if text := _text(request, native):
        body["text"] = text
    if request.logprobs:
        native["include"] = _with(native.get("include"), LOGPROBS)
    body = {**native, **body}
    _leave_out_refused(body, native, call, fields)
    return write_body(_finished(body, call, server))


def build_count(call: Call, server: Server) -> bytes:
    """Return the JSON body that counts the input tokens of a request; see `build_request`."""
    body = orjson.loads(build_request(call, server))
    return orjson.dumps({name: value for name, value in body.items() if name in _COUNTED})


def build_compaction(call: Call, server: Server) -> bytes:
    """Return the JSON body that compacts a conversation; see `build_request`."""
    body = orjson.loads(build_request(call, server))
    return orjson.dumps({name: value for name, value in body.items() if name not in _ANSWERED})


def _finished(body: Json, call: Call, server: Server) -> Json:
    """Add the fields that the gateway decides, and return the body.

    Nothing is stored at the provider. Encrypted reasoning therefore has to be part of the answer,
    to be sent back in the next turn.
    """
    if call.stream:
        body["stream"] = True
    if server.pass_stateful:
        return body
    body["store"] = False
    include = body.get("include")
    # An empty list means that the caller wants nothing included.
    if (
        include != []
        and call.target.thinks is not False
        and ENCRYPTED_REASONING not in call.refused_fields
    ):
        body["include"] = [ENCRYPTED] if include is None else _with(include, ENCRYPTED)
    return body


def _with(include: object, name: str) -> list[Any]:
    included = include if isinstance(include, list) else []
    return included if name in included else [*included, name]


def _add_conversation(body: Json, request: GenerateRequest, fields: ResponsesFields) -> None:
    conversation = Input(fields, request.messages)
    if conversation.instructions:
        body["instructions"] = conversation.instructions
    if prefill_of(request):
        conversation.items.append({"type": "message", "role": "user", "content": CONTINUE})
    body["input"] = conversation.items
    if request.tools:
        tools = enumerate(request.tools)
        body["tools"] = [_tool(tool, f"tools[{index}]", fields) for index, tool in tools]


def _native_fields(request: GenerateRequest, fields: ResponsesFields, *, is_streamed: bool) -> Json:
    """Return the request's unknown fields that are passed through."""
    native_fields = fields.native_request_fields(request.extra, but=_NEVER_FROM_EXTRA)
    if not is_streamed:
        native_fields.pop("stream_options", None)
    # The gateway generates in the background, and asks the provider as soon as it can.
    if native_fields.pop(_BACKGROUND_OPTIONS, None):
        fields.drop(f"extra.{_BACKGROUND_OPTIONS}")
    return native_fields


def _reasoning(thinking: ThinkingConfig, native: Json, fields: ResponsesFields) -> Json:
    """Return the `reasoning` options, including unknown ones."""
    native_reasoning = native.pop("reasoning", None)
    options: Json = {**native_reasoning} if isinstance(native_reasoning, dict) else {}
    options |= fields.native_fields(thinking.extra, "thinking.extra")
    if thinking.effort:
        options["effort"] = thinking.effort
    elif thinking.mode == ThinkingConfig.MODE_DISABLED:
        options["effort"] = "none"
    elif thinking.mode == ThinkingConfig.MODE_ENABLED:
        fields.drop("thinking.budget_tokens")
    return options


def _text(request: GenerateRequest, native: Json) -> Json:
    """Return the `text` options: the output format and unknown ones."""
    native_text = native.pop("text", None)
    text: Json = {**native_text} if isinstance(native_text, dict) else {}
    # A format with unknown fields is among the caller's own fields, as a whole.
    if request.HasField("output_format") and "format" not in text:
        text["format"] = _format(request.output_format)
    return text


def _format(form: OutputFormat) -> Json:
    if form.kind == OutputFormat.KIND_JSON_OBJECT:
        return {"type": "json_object"}
    if form.kind != OutputFormat.KIND_JSON_SCHEMA:
        return {"type": "text"}
    schema: Json = {
        "type": "json_schema",
        "name": form.name or "answer",
        "schema": fragment(form.schema, "output_format.schema"),
    }
    if form.description:
        schema["description"] = form.description
    if form.HasField("strict"):
        schema["strict"] = form.strict
    return schema


def _add_tool_choice(body: Json, choice: ToolChoice, fields: ResponsesFields) -> None:
    if choice.mode in _CHOICES:
        body["tool_choice"] = _CHOICES[choice.mode]
    elif choice.mode == ToolChoice.MODE_TOOL:
        native = fields.native_fields(choice.extra, "tool_choice.extra")
        is_function = native.get("type", _FUNCTION) == _FUNCTION
        # A tool that runs at the provider has a type, and no name.
        body["tool_choice"] = (
            {"type": _FUNCTION, **native, "name": choice.name} if is_function else native
        )
    elif choice.HasField("extra"):
        body["tool_choice"] = fields.own_value(choice.extra, "tool_choice", "this tool choice")
    if choice.HasField("disable_parallel_tool_use"):
        body["parallel_tool_calls"] = not choice.disable_parallel_tool_use


def _tool(tool: Tool, path: str, fields: ResponsesFields) -> Json | orjson.Fragment:
    if tool.opaque:
        return fields.own_tool(tool.extra, path)
    if tool.cache_control:
        fields.drop_mark("tools[].cache_control", tool.extra)
    native = fields.native_fields(tool.extra, f"{path}.extra", "tools[].extra")
    written: Json = {
        **fields.accepted_fields(native, "tools[].", "tools[].extra"),
        "type": "function",
    }
    written["name"] = tool.name
    if tool.description:
        written["description"] = tool.description
    if tool.input_schema:
        written["parameters"] = parameters_of(tool.input_schema, f"{path}.input_schema", fields)
    if tool.HasField("strict"):
        written["strict"] = tool.strict
    return written


def _leave_out_refused(
    body: Json, native: Mapping[str, object], call: Call, fields: ResponsesFields
) -> None:
    refused_fields = call.refused_fields
    if not refused_fields:
        return
    if REASONING_EFFORT in refused_fields and "reasoning" in body:
        # The name is that of chat completions; models reject the option in both APIs.
        del body["reasoning"]
        fields.drop("thinking.effort")
    text = body.get("text")
    if VERBOSITY in refused_fields and isinstance(text, dict) and VERBOSITY in text:
        del text[VERBOSITY]
        fields.drop(f"extra.text.{VERBOSITY}")
        if not text:
            del body["text"]
    for name in call.leave_out_refused(body):
        is_unknown = name in native and name not in _CANONICAL
        fields.drop(f"extra.{name}" if is_unknown else _CANONICAL.get(name, name))
    if ENCRYPTED_REASONING in refused_fields and ENCRYPTED in (body.get("include") or ()):
        others = [name for name in body["include"] if name != ENCRYPTED]
        fields.drop("extra.include")
        body["include"] = others

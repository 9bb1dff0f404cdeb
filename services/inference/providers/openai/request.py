"""The canonical request as the body of a chat completion. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import (
    GenerateRequest,
    OutputFormat,
    ThinkingConfig,
)
from services.inference.learned.refusals import STREAM_OPTIONS
from services.inference.providers.base import Call, Target
from services.inference.providers.opaque_json import Json, read_object, write_body
from services.inference.providers.openai import sanitizing
from services.inference.providers.openai.cache_breakpoints import EXPLICIT, OPTIONS
from services.inference.providers.openai.fields import OpenAIFields, Server, fragment
from services.inference.providers.openai.messages import Conversation
from services.inference.providers.openai.tools import add_tool_choice, plain_tools, tools_of
from services.inference.providers.pruning import without_refused
from services.inference.stream.prefill import CONTINUE, prefill_of

# Thinking budgets by effort, in tokens: the lowest sufficient effort is used, else `high`.
_EFFORTS = (("minimal", 1024), ("low", 2048), ("medium", 8192))
_MOST_EFFORT = "high"
_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# Efforts of models about which nothing is known; Ollama and others reject `minimal`.
_USUAL_EFFORTS = ("low", "medium", "high")
# Fields with the same name and meaning on both sides.
_SAME = (
    "temperature",
    "top_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
)
# Settings of another dialect that are sent as they are.
_PLAIN = frozenset(("max_tokens", "temperature", "top_p", "top_k", "tool_choice"))
# Extensions of the gateway's API, and fields that only this adapter sets. A facade never leaves
# them among the unknown fields, but a gRPC caller may.
_NEVER_FROM_EXTRA = frozenset(
    (
        *("multimodal", "fallback", "fallback_config", "memory_id", "memory_config"),
        *("use_built_in_tools", "thinking_block_strategy", "stream"),
    )
)
_SEARCH_OPTIONS = "web_search_options"
# Canonical names of fields, where they differ from OpenAI's.
_CANONICAL = {
    "user": "end_user",
    "reasoning_effort": "thinking.effort",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    "response_format": "output_format",
}


def build_request(call: Call, server: Server) -> bytes:
    """Return the JSON body for one attempt; fields left out are added to `call.dropped`.

    Raises:
        GatewayError: unsupported, if the body cannot express a part of the request; invalid, if a
            part is malformed or refers to an object stored at the provider.
    """
    lazy = call.lazy
    has_whole_body = lazy is not None and lazy.has_whole_body
    if lazy is not None and has_whole_body and lazy.request.dialect == OpenAIFields.dialect:
        return _as_it_is(call, lazy.fields)
    fields = OpenAIFields(call, server)
    if lazy is not None and has_whole_body:
        plain = call.plain
        if plain is not None and plain.settings is not None and plain.settings.keys() <= _PLAIN:
            body = {"model": call.target.upstream, **_conversation(call, fields, {})}
            _add_plain_settings(body, plain.settings, call, fields)
            # The facade rejects bodies that are nested too deeply.
            return _finished(body, call, fields, {}) if call.refused_fields else orjson.dumps(body)
        call.complete()
    request = call.request
    native = _native_fields(request, fields)
    body = {"model": call.target.upstream, **_conversation(call, fields, native)}
    if call.stream:
        options = native.get("stream_options")
        native_options = options if isinstance(options, dict) else {}
        body |= {"stream": True, "stream_options": {**native_options, "include_usage": True}}
    native.pop("stream_options", None)
    set_fields = {field.name: value for field, value in request.ListFields()}
    _add_sampling(body, set_fields, fields)
    if request.cache_control and not fields.takes_marks:
        fields.drop_mark("cache_control", request.extra)
    if "tools" in body:
        # Without tools a choice has no meaning, and OpenAI rejects it.
        add_tool_choice(body, request.tool_choice, fields)
    if "thinking" in set_fields:
        body |= _thinking(request.thinking, fields, call.target)
    # A format with unknown fields is among the caller's own fields, as a whole.
    if "output_format" in set_fields and "response_format" not in native:
        body["response_format"] = _response_format(request.output_format)
    return _finished({**native, **body}, call, fields, native)


def _finished(body: Json, call: Call, fields: OpenAIFields, native: Json) -> bytes:
    """Serialize a body, without the fields that the model rejects."""
    if call.refused_fields:
        for name in call.leave_out_refused(body):
            is_unknown = name in native and name not in _CANONICAL
            fields.drop(f"extra.{name}" if is_unknown else _CANONICAL.get(name, name))
    json = write_body(body)
    return without_refused(call, json) if call.refused_fields else json


def _as_it_is(call: Call, fields: Mapping[str, object]) -> bytes:
    """Return the body of a request that is passed through as the caller wrote it."""
    body = {"model": call.target.upstream, **fields}
    if call.stream:
        body["stream"] = True
        if STREAM_OPTIONS not in call.refused_fields:
            body["stream_options"] = {"include_usage": True}
    json = orjson.dumps(body)
    return without_refused(call, json) if call.refused_fields else json


def _conversation(call: Call, fields: OpenAIFields, native: Json) -> Json:
    """Return the messages and tools; `native` are the request's unknown fields."""
    lazy = call.lazy
    if lazy is not None and fields.is_native:
        return {name: orjson.Fragment(json) for name, json in lazy.verbatim.items()}
    plain = call.plain
    tools: Sequence[Any] = ()
    if lazy is not None and plain is not None:
        messages = Conversation(fields, plain.messages).messages
        if plain.tools:
            tools = plain_tools(plain.tools, lazy.json_of("tools"), fields)
    else:
        call.complete()
        request = call.request
        messages = Conversation(fields, request.messages).messages
        if prefill_of(request) and not _continues_by_itself(request, native):
            messages.append({"role": "user", "content": CONTINUE})
        if request.tools:
            tools = tools_of(request, fields)
    conversation: Json = {"messages": messages, "tools": tools} if tools else {"messages": messages}
    if fields.has_breakpoints and not call.request.cache_control:
        conversation[OPTIONS] = EXPLICIT
    return conversation


def _add_plain_settings(
    body: Json, settings: Mapping[str, Any], call: Call, fields: OpenAIFields
) -> None:
    """Add the settings of a request of another dialect, and of its stream."""
    body |= settings
    if call.request.names_max_completion_tokens and "max_tokens" in body:
        body["max_completion_tokens"] = body.pop("max_tokens")
    if call.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if call.request.betas:
        fields.drop("betas")


def _native_fields(request: GenerateRequest, fields: OpenAIFields) -> Json:
    """Return the request's unknown fields that are passed through."""
    native_fields = fields.native_request_fields(request.extra, but=_NEVER_FROM_EXTRA)
    if _SEARCH_OPTIONS in request.extra.covered_paths and not request.HasField("web_search"):
        native_fields.pop(_SEARCH_OPTIONS, None)  # the gateway searches
    return native_fields


def _continues_by_itself(request: GenerateRequest, native: Json) -> bool:
    """Return whether the request uses the server's own extension to continue a message.

    vLLM has a field of the request for that, DeepSeek and Mistral a field of the message.
    """
    if native.get("continue_final_message"):
        return True
    extra = request.messages[-1].extra
    if extra.dialect != conversation_pb2.DIALECT_OPENAI:
        return False
    return bool(read_object(extra.json, f"messages[{len(request.messages) - 1}]").get("prefix"))


def _add_sampling(body: Json, set_fields: Mapping[str, Any], fields: OpenAIFields) -> None:
    """Add the canonical request's fields that are present, `set_fields` by canonical name."""
    for name in _SAME:
        if name in set_fields:
            body[name] = set_fields[name]
    if set_fields.get("n", 1) > 1:
        body["n"] = set_fields["n"]
    if "max_tokens" in set_fields:
        # Most servers other than OpenAI's support only the old name.
        newer = set_fields.get("names_max_completion_tokens")
        body["max_completion_tokens" if newer else "max_tokens"] = set_fields["max_tokens"]
    if "top_k" in set_fields:
        body["top_k"] = set_fields["top_k"]
    if "stop_sequences" in set_fields:
        body["stop"] = list(set_fields["stop_sequences"])
    if end_user := set_fields.get("end_user"):
        is_sanitized = not fields.is_native or fields.server.newest
        body["user"] = sanitizing.end_user(end_user) if is_sanitized else end_user
    if "service_tier" in set_fields:
        # The dialects' tiers have different names.
        if fields.is_native or not set_fields.get("dialect"):
            body["service_tier"] = set_fields["service_tier"]
        else:
            fields.drop("service_tier")
    if "betas" in set_fields:
        fields.drop("betas")


def _known(effort: str, efforts: Sequence[str]) -> str:
    """Return the model's strongest effort that does not exceed `effort`, else its weakest."""
    supported = [name for name in _ORDER if name in (efforts or _USUAL_EFFORTS)]
    weaker = [name for name in supported if _ORDER.index(name) <= _ORDER.index(effort)]
    return weaker[-1] if weaker else supported[0]


def _thinking(thinking: ThinkingConfig, fields: OpenAIFields, target: Target) -> Json:
    """Return the fields that control thinking; none if the model decides."""
    if thinking.mode == ThinkingConfig.MODE_OPAQUE:
        # The mode has no counterpart: let the model decide.
        fields.drop("thinking")
        return {}
    fields.native_fields(thinking.extra, "thinking.extra")
    effort = thinking.effort
    if fields.is_native and effort and thinking.mode != ThinkingConfig.MODE_DISABLED:
        return {"reasoning_effort": effort}
    if thinking.mode == ThinkingConfig.MODE_DISABLED or effort == "none":
        return _no_thinking(fields, target)
    if effort:
        if effort in _ORDER:
            return {"reasoning_effort": _known(effort, target.efforts)}
        fields.drop("thinking.effort")
    if thinking.mode != ThinkingConfig.MODE_ENABLED:
        return {}
    wanted = thinking.budget_tokens
    effort = next((name for name, budget in _EFFORTS if budget >= wanted), _MOST_EFFORT)
    return {"reasoning_effort": _known(effort, target.efforts)}


def _no_thinking(fields: OpenAIFields, target: Target) -> Json:
    if target.thinking_off:
        return dict(target.thinking_off)
    if "none" in target.efforts:
        return {"reasoning_effort": "none"}
    if target.thinks is not False:
        fields.drop("thinking")
    return {}


def _response_format(form: OutputFormat) -> Json:
    if form.kind == OutputFormat.KIND_JSON_OBJECT:
        return {"type": "json_object"}
    if form.kind != OutputFormat.KIND_JSON_SCHEMA:
        return {"type": "text"}
    schema: Json = {
        "name": form.name or "answer",
        "schema": fragment(form.schema, "output_format.schema"),
    }
    if form.description:
        schema["description"] = form.description
    if form.HasField("strict"):
        schema["strict"] = form.strict
    return {"type": "json_schema", "json_schema": schema}

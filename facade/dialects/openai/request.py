"""Translate the body of a chat completion to the canonical request."""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import ValidationError
from pydantic import TypeAdapter

from facade.dialects.cache_marks import OPTIONS, set_lifetimes
from facade.dialects.dialect_chain import has_chain, of_caller, take_chain
from facade.dialects.extensions import EXTENSION_FIELDS, is_plain, set_extensions
from facade.dialects.openai.formats import FORMATS, has_schema, set_format
from facade.dialects.openai.functions import set_functions
from facade.dialects.openai.messages import add_messages
from facade.dialects.openai.plain import plain_request
from facade.dialects.openai.storing import STORE, take_stored
from facade.dialects.openai.tools import add_tools, read_choice, set_tool_choice
from facade.dialects.openai.types import (
    ChatParameters,
    ChatRequest,
    JsonSchema,
    ResponseFormat,
    StepParameters,
)
from facade.dialects.openai.unknown_fields import keep_request_fields, keep_stream_options
from facade.dialects.openai.verbatim import PartialChatRequest, verbatim_of
from facade.dialects.openai.web_search import web_search
from facade.dialects.parsed_request import ParsedRequest, StoredChat
from facade.dialects.paths import SourceMap
from facade.dialects.steps import check_step, given_fields, keep_difference
from facade.dialects.validation import check, exact_json, validate
from facade.dialects.verbatim import VerbatimReader, VerbatimRequest
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError, invalid
from services.common.messages.plain_message import PlainMessage, PlainRequest

_REQUEST: TypeAdapter[ChatRequest] = TypeAdapter(ChatRequest)
_PARAMETERS: TypeAdapter[StepParameters] = TypeAdapter(StepParameters)

# Fields that would otherwise count as unknown, with the error message.
_REFUSED = {
    "use_built_in_tools": "not supported on this endpoint; use /v1/messages",
    "thinking_block_strategy": "not supported on this endpoint; use /v1/messages",
}
# Fields that a fallback step cannot override, as they apply to the whole request.
_OF_THE_WHOLE = ChatRequest.model_fields.keys() - StepParameters.model_fields.keys()
_TOKEN_LIMITS = frozenset({"max_tokens", "max_completion_tokens"})
_TOOL_CHOICES = frozenset({"tool_choice", "parallel_tool_calls"})
# Fields with the same name and meaning in the canonical request.
_SAME = frozenset(
    (
        "temperature",
        "top_p",
        "n",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "logprobs",
        "top_logprobs",
    )
)
_MODELS = "models"  # OpenRouter's further models
_FORMAT_FIELDS = frozenset(ResponseFormat.__annotations__)
_SCHEMA_FIELDS = frozenset(JsonSchema.__annotations__)


def parse_chat(body: bytes, *, lazily: bool = False) -> ParsedRequest:
    """Parse the body of `POST /v1/chat/completions`.

    Args:
        body: JSON.
        lazily: whether the conversation may be translated later.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    source_map = SourceMap()
    lazy = CHAT_READER.read(body, source_map) if lazily else None
    wire: ChatRequest = validate(_REQUEST, exact_json(body), body) if lazy is None else lazy.wire
    del body  # frees its megabytes, unless the caller keeps a reference
    stream, are_functions = wire.stream or False, False
    stored, labelling = None, wire.model_extra
    if wire.stream_options is not None and not stream:
        raise invalid("stream_options", "stream_options: allowed only if stream is true")
    if lazy is None:
        if wire.model_extra and has_chain(wire, _MODELS):
            take_chain(wire, _MODELS, wire.model, None, source_map)
        stored, labelling = _taken(wire)
        request = _parameters(wire, "")
        request.model = wire.model
        are_functions = _calls_functions(wire)
        if are_functions:
            set_functions(request, wire)
        add_messages(request, wire.messages, "messages", source_map)
        if wire.model_extra and OPTIONS in wire.model_extra:
            set_lifetimes(request.messages, wire.model_extra[OPTIONS])
    else:
        request = lazy.request
    if not EXTENSION_FIELDS.isdisjoint(wire.model_fields_set):
        try:
            set_extensions(request, wire, partial(_step_parameters, wire), source_map)
        except GatewayError as error:
            raise of_caller(error, source_map) from None
    if source_map.chain:
        request.fallback_config.is_of_dialect = True
    include_usage = False
    if wire.stream_options is not None:
        options = {name: value for name, value in wire.stream_options.items() if value is not None}
        include_usage = bool(options.pop("include_usage", False))
        if options:
            keep_stream_options(request, options)
    parsed = ParsedRequest(
        lazy or request, wire.model, stream, source_map, include_usage, are_functions
    )
    parsed.end_user = wire.user or ""
    parsed.stored = stored
    if labelling:
        _set_labels(parsed, labelling)
    return parsed


def _taken(wire: ChatRequest) -> tuple[StoredChat | None, dict[str, Any] | None]:
    """Return what is stored of a chat, if anything, and its fields without a name."""
    further = wire.model_extra
    if not further or further.get(STORE) is not True:
        return None, further
    labelling = dict(further)
    return take_stored(wire, further), labelling


def _set_labels(parsed: ParsedRequest, further: Mapping[str, Any]) -> None:
    """Set what the fields without a canonical name say of the caller; they are not validated."""
    metadata, safety_identifier = further.get("metadata"), further.get("safety_identifier")
    if isinstance(metadata, dict):
        parsed.metadata = metadata
    if safety_identifier and isinstance(safety_identifier, str):
        parsed.end_user = safety_identifier


def _calls_functions(wire: ChatRequest) -> bool:
    """Return whether a request uses functions instead of tools, and so must its answer."""
    return wire.functions is not None or wire.function_call is not None


def _is_plain(wire: ChatRequest) -> bool:
    """Return whether no other field of a body needs its conversation."""
    return (
        is_plain(wire)
        and wire.web_search_options is None
        and not _calls_functions(wire)
        and not has_chain(wire, _MODELS)
        and not (wire.model_extra and wire.model_extra.get(STORE) is True)
    )


class _LazyChat(VerbatimRequest[PartialChatRequest]):
    """A chat whose conversation is passed on as written."""

    def begin_request(self) -> GenerateRequest:
        """Return the canonical request without the conversation."""
        wire = self.wire
        if self.settings is None:
            with_settings: ChatRequest = wire
            if not _TOOL_CHOICES.isdisjoint(wire.model_fields_set):
                with_settings = self.read("tools")
            request = _parameters(with_settings, "", with_tools=False)
        else:
            request = GenerateRequest(
                dialect=DIALECT_OPENAI,
                requires_single_text=True,
                n=wire.n,
                max_tokens=wire.max_tokens or wire.max_completion_tokens,
            )
        request.model = wire.model
        return request

    def add_conversation(self, request: GenerateRequest) -> None:
        """Add the messages and tools, and settings that were passed on."""
        wire = self.read()
        if self.settings is not None:
            request.MergeFrom(_parameters(wire, "", with_tools=False))
        add_messages(request, wire.messages, "messages", self.source_map)
        if wire.tools:
            add_tools(request, wire.tools, "tools")

    def read_plain(self) -> PlainRequest | None:
        """Return the plain form of the conversation.

        None if a member is repeated, and not all of its values are valid: only the last one counts.
        """
        tools = self.conversation("tools").get("tools", ())
        try:
            return plain_request(self.parts["messages"], tools, self.settings)
        except ValidationError:
            return None

    def beginning(self) -> Iterator[PlainMessage]:
        """Yield the messages up to the first user message."""
        plain = self.plain
        for message in () if plain is None else plain.messages:
            assert isinstance(message, PlainMessage), "those of this dialect all are"
            yield message
            if message.role == "user":
                return


CHAT_READER = VerbatimReader(
    PartialChatRequest, ("messages", "tools"), _is_plain, verbatim_of, _LazyChat
)


def _step_parameters(
    outer: ChatRequest, parameters: Mapping[str, object], path: str, source_map: SourceMap
) -> GenerateRequest:
    """Parse the parameters of a fallback step; see `ReadParameters`.

    The step is merged into the outer request and checked as a whole. The result has only the
    fields in which the two differ.
    """
    check_step(parameters, path, _OF_THE_WHOLE, ("tools", "stop"))
    given = check(_PARAMETERS, parameters, path)
    step, whole = _parameters(_over(outer, given), f"{path}."), _parameters(outer, "")
    keep_difference(step, whole)
    if given.messages is not None:
        add_messages(step, given.messages, f"{path}.messages", source_map)
    return step


def _over(outer: ChatRequest, step: ChatParameters) -> ChatParameters:
    """Return the outer fields with the fields of a step over them; nulls count as absent."""
    below, above = given_fields(outer, ChatParameters), given_fields(step, ChatParameters)
    if _TOKEN_LIMITS & above.keys():
        # Two names of the same limit: the step's replaces the outer one under either name.
        below = {field: value for field, value in below.items() if field not in _TOKEN_LIMITS}
    return ChatParameters.model_construct(**below | above)


def _parameters(wire: ChatParameters, prefix: str, *, with_tools: bool = True) -> GenerateRequest:
    """Return the request without conversation and routing; `prefix` goes before field paths."""
    request = GenerateRequest(
        dialect=DIALECT_OPENAI,
        omits_stop_sequence=True,
        has_unsigned_thinking=True,
        requires_single_text=True,
    )
    given = _fields_set(wire)
    for field in _SAME & given.keys():
        setattr(request, field, given[field])
    if not _TOKEN_LIMITS.isdisjoint(given):
        request.max_tokens = _token_limit(wire, prefix)
        # A step sets it in either case, as the request may have used the other name.
        if "max_tokens" not in given or prefix:
            request.names_max_completion_tokens = "max_tokens" not in given
    if "stop" in given:
        stop = given["stop"]
        request.stop_sequences.extend([stop] if isinstance(stop, str) else stop)
    if "response_format" in given:
        _set_format(request, given["response_format"], f"{prefix}response_format")
    names: Collection[str] = ()
    if tools := given.get("tools"):
        if with_tools:
            add_tools(request, tools, f"{prefix}tools")
            names = {tool.name for tool in request.tools}
        else:
            names = {tool["function"]["name"] for tool in tools}
    if not _TOOL_CHOICES.isdisjoint(given):
        path = f"{prefix}tool_choice"
        choice, parallel = wire.tool_choice, wire.parallel_tool_calls
        set_tool_choice(request, choice, parallel, path, names, read_choice)
    if "reasoning_effort" in given:
        request.thinking.effort = given["reasoning_effort"]
    request.end_user = given.get("user", "")
    request.service_tier = given.get("service_tier", "")
    _keep_unnamed(request, wire.model_extra or {}, given, prefix)
    return request


def _fields_set(wire: ChatParameters) -> dict[str, Any]:
    """Return the named fields that are set and not null.

    Most are not, and reading every attribute of a pydantic model is slow.
    """
    held = wire.__dict__
    return {
        field: value for field in wire.model_fields_set if (value := held.get(field)) is not None
    }


def _token_limit(wire: ChatParameters, prefix: str) -> int:
    """Return the maximum of output tokens, which is given under one name or both."""
    old, new = wire.max_tokens, wire.max_completion_tokens
    if old is not None and new is not None and old != new:
        path = f"{prefix}max_completion_tokens"
        raise invalid(path, f"{path}: must equal max_tokens if both are given")
    limit = old if new is None else new
    assert limit is not None
    return limit


def _set_format(request: GenerateRequest, given: ResponseFormat, path: str) -> None:
    if not _is_known(given):
        return  # it is passed on unchanged, among the unknown fields
    described = given.get("json_schema")
    if given["type"] == "json_schema":
        path = f"{path}.json_schema"
        if described is None:
            raise invalid(path, f"{path}: is required if type is json_schema")
    set_format(request.output_format, given["type"], described or {}, path)


def _is_known(form: ResponseFormat) -> bool:
    """Return whether the canonical request has a field for a format.

    llama.cpp's server reads the schema of a `json_schema` beside the type.
    """
    if form["type"] == "json_schema" and "json_schema" not in form:
        return len(form) == 1
    return form["type"] in FORMATS


def _has_more(form: ResponseFormat) -> bool:
    """Return whether a format has unknown fields."""
    described = form.get("json_schema")
    inner = described.keys() if described is not None else frozenset()
    return bool(
        form.keys() - _FORMAT_FIELDS or inner - _SCHEMA_FIELDS or not has_schema(form, described)
    )


def _keep_unnamed(
    request: GenerateRequest, unknown: Mapping[str, Any], given: Mapping[str, Any], prefix: str
) -> None:
    """Keep the fields without a canonical name; nulls are dropped."""
    extra = {field: value for field, value in unknown.items() if value is not None}
    if not _REFUSED.keys().isdisjoint(extra):
        field = next(field for field in _REFUSED if field in extra)
        path = f"{prefix}{field}"
        raise invalid(path, f"{path}: {_REFUSED[field]}")
    if "logit_bias" in given:
        extra["logit_bias"] = given["logit_bias"]
    if (options := given.get("web_search_options")) is not None:
        # It is passed on unchanged to models that search by themselves.
        extra["web_search_options"] = options
        request.web_search.CopyFrom(web_search(options, f"{prefix}web_search_options"))
    form = given.get("response_format")
    if form is not None and (_has_more(form) or not _is_known(form)):
        # As a whole: a provider's adapter of this dialect puts it over the known fields.
        extra["response_format"] = form
    if extra:
        keep_request_fields(request, extra, prefix.removesuffix("."))

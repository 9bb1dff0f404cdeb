"""Translate the body of a response to the canonical request."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, cast

import orjson
from pydantic import TypeAdapter

from facade.dialects.cache_marks import OPTIONS, set_lifetimes
from facade.dialects.extensions import EXTENSION_FIELDS, is_plain, set_extensions
from facade.dialects.openai.formats import FORMATS, set_format
from facade.dialects.openai.tools import set_tool_choice
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import SourceMap
from facade.dialects.responses.items import (
    TRIGGER,
    add_input,
    add_instructions,
    check_not_empty,
)
from facade.dialects.responses.kept_items import (
    conversation_item,
    kept_item,
    references_in,
)
from facade.dialects.responses.plain import beginning, plain_request
from facade.dialects.responses.request_fields import keep_request_fields
from facade.dialects.responses.state import (
    LOGPROBS,
    Reference,
    ResponseState,
    StoredConversation,
    conversation_name,
    echo_of,
)
from facade.dialects.responses.tools import add_tools, read_choice
from facade.dialects.responses.types import (
    Format,
    ResponseParameters,
    ResponseRequest,
    StepParameters,
)
from facade.dialects.responses.verbatim import (
    PartialResponseRequest,
    verbatim_of,
)
from facade.dialects.steps import check_step, given_fields, keep_difference
from facade.dialects.validation import check, exact_json, validate, write_json
from facade.dialects.verbatim import (
    KEPT_SETTINGS_BYTES,
    Verbatim,
    VerbatimReader,
    VerbatimRequest,
)
from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Message
from gateway.inference.v1.inference_pb2 import Compaction, GenerateRequest
from services.common import ids
from services.common.errors import invalid
from services.common.messages.plain_message import PlainMessage, PlainRequest

_REQUEST: TypeAdapter[ResponseRequest] = TypeAdapter(ResponseRequest)
_PARAMETERS: TypeAdapter[StepParameters] = TypeAdapter(StepParameters)

_OF_THE_WHOLE = ResponseRequest.model_fields.keys() - StepParameters.model_fields.keys()
_TOOL_CHOICES = frozenset({"tool_choice", "parallel_tool_calls"})


def parse_request(
    body: bytes,
    *,
    lazily: bool = False,
    keeps_items: bool = False,
    new_id: ids.IdGenerator = ids.new_id,
) -> ParsedRequest:
    """Parse the body of `POST /v1/responses`.

    Args:
        body: JSON.
        lazily: whether the conversation may be translated later.
        keeps_items: whether the state has the items of the input even if nothing is stored.
        new_id: creates ids of input items, with a given prefix.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    source_map = SourceMap()
    lazy = RESPONSE_READER.read(body, source_map) if lazily else None
    dump: Callable[[object], bytes] = orjson.dumps
    wire: ResponseRequest
    if lazy is None:
        value = exact_json(body)
        wire = validate(_REQUEST, value, body)
        if value is None:
            dump = _dump
        del value
    else:
        wire = lazy.wire
    del body  # frees its megabytes, unless the caller keeps a reference
    stream = wire.stream or False
    state = None
    if lazy is not None:
        request = lazy.request
        if lazy.has_whole_body:
            is_short = len(lazy.wire_json) <= KEPT_SETTINGS_BYTES
            if is_short and "tools" not in lazy.fields and not keeps_items:
                state = lazy.wire.state
        elif exact_json(lazy.wire_json) is None:
            dump = _dump
    else:
        _check(wire, stream)
    if state is None:
        state = _state(wire, lazy, new_id, dump, keeps_items=keeps_items)
    if lazy is None:
        _ = state.echo.json  # serialized now, so that it keeps no reference to a large body
        request = _parameters(wire, "")
        request.model = wire.model
        _add_messages(wire, source_map, request)
        if not (
            state.references
            or wire.previous_response_id
            or wire.prompt
            or state.conversation is not None
        ):
            check_not_empty(request.messages, "input")
        if state.conversation is None and wire.conversation is not None:
            wire.memory_id = wire.memory_id or conversation_name(wire)
    if not EXTENSION_FIELDS.isdisjoint(wire.model_fields_set):
        set_extensions(request, wire, partial(_step_parameters, wire), source_map)
    return ParsedRequest(
        lazy or request,
        wire.model,
        stream,
        source_map,
        metadata=wire.metadata,
        end_user=wire.safety_identifier or wire.user or "",
        state=state,
    )


class _PartialRequest(PartialResponseRequest):
    """A body without its conversation, with cached values that depend on it alone."""

    @cached_property
    def state(self) -> ResponseState | None:
        """The state of a request without tools; None if it has items of the input."""
        if self.store is not False:
            return None
        state = _state(self, None, ids.new_id, orjson.dumps)
        _ = state.echo.json  # serialized now: until then it refers to this object
        return state


def _is_plain(wire: _PartialRequest) -> bool:
    """Return whether no other field of a body needs its conversation, which is complete.

    A body with an error that `_check` reports is not plain.
    """
    held = wire.__dict__
    return (
        held["previous_response_id"] is None
        and held["conversation"] is None
        and held["prompt"] is None
        and (held["stream_options"] is None or bool(held["stream"]))
        and not (held["background"] and held["store"] is False)
        and is_plain(wire)
    )


class _LazyResponse(VerbatimRequest[_PartialRequest]):
    """A request for a response whose conversation is passed on as written."""

    def __init__(
        self,
        size: int,
        source_map: SourceMap,
        wire: _PartialRequest,
        wire_json: bytes,
        verbatim: Verbatim,
        *,
        options: Sequence[Any] = (),
    ) -> None:
        fields, parts, requires_official_api = verbatim
        if wire.instructions:
            fields = {**fields, "instructions": wire.instructions}
        verbatim = fields, parts, requires_official_api
        super().__init__(size, source_map, wire, wire_json, verbatim, options=options)

    def begin_request(self) -> GenerateRequest:
        """Return the canonical request without the conversation."""
        wire = self.wire
        if self.settings is None:
            with_settings: ResponseRequest = wire
            if not _TOOL_CHOICES.isdisjoint(wire.model_fields_set):
                with_settings = self.read("tools")
            request = _parameters(with_settings, "", with_tools=False)
        else:
            request = GenerateRequest(
                dialect=DIALECT_RESPONSES,
                max_tokens=wire.max_output_tokens,
                wraps_signatures=True,
            )
            if wire.max_output_tokens is not None:
                request.names_max_completion_tokens = True
        request.model = wire.model
        return request

    def add_conversation(self, request: GenerateRequest) -> None:
        """Add the messages and tools, and settings that were passed on."""
        wire = self.read()
        if self.settings is not None:
            request.MergeFrom(_parameters(wire, "", with_tools=False))
        if wire.tools:
            add_tools(request, wire.tools, "tools", wire.max_tool_calls)
        _add_messages(wire, self.source_map, request)

    def read_plain(self) -> PlainRequest | None:
        """Return the plain form of the conversation, or None if it has none."""
        return plain_request(self.conversation(), self.wire.instructions, self.settings)

    def beginning(self) -> Iterable[PlainMessage]:
        """Return the instructions and messages up to the first user message."""
        return beginning(self.conversation(), self.wire.instructions)


RESPONSE_READER = VerbatimReader(
    _PartialRequest, ("input", "tools"), _is_plain, verbatim_of, _LazyResponse
)


def _add_messages(wire: ResponseRequest, source_map: SourceMap, request: GenerateRequest) -> None:
    messages: list[Message] = []
    if wire.instructions:
        add_instructions(messages, wire.instructions, source_map)
    add_input(messages, wire.input or [], "input", source_map)
    if isinstance(wire.input, list) and wire.input and wire.input[-1].get("type") == TRIGGER:
        request.compaction.Clear()
        request.compaction.mode = Compaction.MODE_ONLY
    set_lifetimes(messages, (wire.model_extra or {}).get(OPTIONS))
    request.messages.extend(messages)


def _check(wire: ResponseRequest, stream: bool) -> None:
    """Check fields that depend on each other."""
    held = wire.__dict__
    has_input = held["input"] is not None
    if held["stream_options"] is not None and not stream:
        raise invalid("stream_options", "stream_options: allowed only if stream is true")
    if held["conversation"] is not None:
        name = conversation_name(wire)
        if wire.previous_response_id is not None:
            raise invalid(
                "previous_response_id",
                "previous_response_id: cannot be given together with conversation",
            )
        if not (name and name.isprintable()):
            raise invalid("conversation", "conversation: must be 1 to 256 printable characters")
        if ids.is_conversation_id(name):
            if wire.memory_id is not None:
                raise invalid(
                    "memory_id", "memory_id: cannot be given together with a stored conversation"
                )
            has_input = True
    if held["background"] and held["store"] is False:
        raise invalid("background", "background: requires store to be true")
    if not has_input and wire.previous_response_id is None and wire.prompt is None:
        raise invalid("input", "input: is required")


def _dump(value: object) -> bytes:
    """Serialize a value with numbers of any size."""
    return write_json(value, "")


def _state(
    wire: ResponseRequest,
    lazy: _LazyResponse | None,
    new_id: ids.IdGenerator,
    dump: Callable[[object], bytes],
    *,
    keeps_items: bool = False,
) -> ResponseState:
    """Return the state of a request; `lazy` is given if its conversation is passed on."""
    # Attributes of pydantic models are looked up slowly.
    held = wire.__dict__
    store = held["store"] is not False
    name = conversation_name(wire)
    conversation = None
    stored_item = kept_item
    if name is not None and ids.is_conversation_id(name):
        conversation, stored_item = StoredConversation(name), conversation_item
    references: Sequence[Reference] = ()
    written: Sequence[bytes] = ()
    if lazy is None or store or keeps_items:
        is_kept = store or keeps_items or conversation is not None
        sent = held["input"] if lazy is None else lazy.conversation("input").get("input")
        items = _items(sent or (), store=is_kept)
        references = references_in(items, "input")
        if is_kept or references:
            written = [dump(stored_item(item, new_id)) for item in items]
    return ResponseState(
        store,
        held["background"] or False,
        held["previous_response_id"],
        conversation,
        written,
        references,
        held["instructions"],
        echo_of(
            wire,
            (lambda: wire) if lazy is None else partial(lazy.read, "tools"),
            name,
            dump,
        ),
    )


def _items(given: Any, *, store: bool) -> Sequence[Mapping[str, Any]]:
    """Return the items of an input; a text is an item only if `store` is true."""
    if not isinstance(given, str):
        items: Sequence[Mapping[str, Any]] = given
        return items
    part = {"type": "input_text", "text": given}
    return [{"type": "message", "role": "user", "content": [part]}] if store else ()


def _step_parameters(
    outer: ResponseRequest, parameters: Mapping[str, object], path: str, source_map: SourceMap
) -> GenerateRequest:
    """Parse the parameters of a fallback step; see `ReadParameters`."""
    check_step(parameters, path, _OF_THE_WHOLE, ("tools",))
    given = check(_PARAMETERS, parameters, path)
    below, above = (given_fields(one, ResponseParameters) for one in (outer, given))
    laid = ResponseParameters.model_construct(**below | above)
    step, whole = _parameters(laid, f"{path}."), _parameters(outer, "")
    keep_difference(step, whole)
    if given.input is not None or given.instructions is not None:
        messages: list[Message] = []
        if laid.instructions:
            add_instructions(messages, laid.instructions, source_map)
        where = f"{path}.input" if given.input is not None else "input"
        conversation = given.input if given.input is not None else outer.input
        add_input(messages, conversation or [], where, source_map)
        check_not_empty(messages, where)
        step.messages.extend(messages)
    return step


def _parameters(
    wire: ResponseParameters, prefix: str, *, with_tools: bool = True
) -> GenerateRequest:
    """Return the request without conversation and routing; `prefix` goes before field paths."""
    request = GenerateRequest(dialect=DIALECT_RESPONSES, wraps_signatures=True)
    if wire.max_output_tokens is not None:
        request.max_tokens = wire.max_output_tokens
        request.names_max_completion_tokens = True
    if wire.temperature is not None:
        request.temperature = wire.temperature
    if wire.top_p is not None:
        request.top_p = wire.top_p
    has_logprobs = LOGPROBS in (wire.include or ())
    if has_logprobs:
        request.logprobs = True
        if wire.top_logprobs is not None:
            request.top_logprobs = wire.top_logprobs
    tools = wire.tools or ()
    if tools and with_tools:
        add_tools(request, tools, f"{prefix}tools", wire.max_tool_calls)
    set_tool_choice(
        request,
        wire.tool_choice,
        wire.parallel_tool_calls,
        f"{prefix}tool_choice",
        cast("Sequence[Mapping[str, Any]]", tools),
        read_choice,
    )
    request.end_user = wire.user or ""
    request.service_tier = wire.service_tier or ""
    if wire.reasoning is not None and (effort := wire.reasoning.get("effort")):
        request.thinking.effort = effort
    form = wire.text.get("format") if wire.text is not None else None
    if form is not None and form["type"] in FORMATS:
        _set_format(request, form, f"{prefix}text.format")
    keep_request_fields(request, wire, prefix)
    return request


def _set_format(request: GenerateRequest, form: Format, path: str) -> None:
    if form["type"] == "json_schema":
        if "name" not in form:
            where = f"{path}.name"
            raise invalid(where, f"{where}: is required if type is json_schema")
    set_format(request.output_format, form["type"], form, path)

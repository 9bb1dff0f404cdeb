"""Requests: translate bodies of the messages endpoints to the canonical request.

A body is first checked against its wire type. This module checks the rules across fields, and
translates.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from pydantic import TypeAdapter

from facade.dialects.anthropic.messages import add_messages, add_system
from facade.dialects.anthropic.plain import beginning, plain_request
from facade.dialects.anthropic.settings import add_tools, set_settings
from facade.dialects.anthropic.types import CountTokensBody, MessagesBody, Parameters
from facade.dialects.anthropic.verbatim import PartialMessagesBody, verbatim_of
from facade.dialects.dialect_chain import has_chain, of_caller, take_chain
from facade.dialects.extensions import EXTENSION_FIELDS, is_plain, set_extensions
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import SourceMap
from facade.dialects.validation import check, exact_json, read_quickly, validate
from facade.dialects.verbatim import VerbatimReader, VerbatimRequest
from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import GatewayError, invalid
from services.common.messages.plain_message import PlainMessage, PlainRequest

_MESSAGES: TypeAdapter[MessagesBody] = TypeAdapter(MessagesBody)
_COUNT_TOKENS: TypeAdapter[CountTokensBody] = TypeAdapter(CountTokensBody)
_PARAMETERS: TypeAdapter[Parameters] = TypeAdapter(Parameters)

# Fields that all steps of a chain share, so that no step can override them.
_SHARED = frozenset(MessagesBody.model_fields) - frozenset(Parameters.model_fields)
# Requests with more are not read lazily, so that the service checks the number.
_FEW_BETAS = 100
_FALLBACKS = "fallbacks"
# Fields that an entry of it may override.
_OF_FALLBACKS = ("max_tokens", "thinking", "output_config", "speed")
_STRATEGIES = {
    "preserve": pb.THINKING_BLOCK_STRATEGY_PRESERVE,
    "discard": pb.THINKING_BLOCK_STRATEGY_DISCARD,
    "flatten": pb.THINKING_BLOCK_STRATEGY_FLATTEN,
}


def parse_messages(
    body: bytes, *, betas: Sequence[str], coding: bool, lazily: bool = False
) -> ParsedRequest:
    """Parse the body of POST …/messages.

    Args:
        body: JSON.
        betas: the names in the `anthropic-beta` header.
        coding: whether the path is below `/coding/v1`, where the fallback fields are errors.
        lazily: whether the conversation may be translated later.

    Raises:
        GatewayError: invalid, naming the first invalid field.
    """
    source_map = SourceMap()
    lazy = None
    if lazily and len(betas) <= _FEW_BETAS:
        lazy = MESSAGES_READER.read(body, source_map, (betas, coding))
    checked: MessagesBody
    if lazy is None:
        checked = validate(_MESSAGES, exact_json(body), body)
        del body  # frees its megabytes, unless the caller keeps a reference
        request = _translated(checked, betas, coding, source_map)
    else:
        checked, request = lazy.wire, lazy.request
    if not EXTENSION_FIELDS.isdisjoint(checked.model_fields_set):
        _set_extensions(request, checked, betas, source_map)
    end_user = (checked.metadata or {}).get("user_id") or ""
    return ParsedRequest(
        lazy or request, checked.model, checked.stream or False, source_map, end_user=end_user
    )


def parse_count_tokens(body: bytes, *, betas: Sequence[str], coding: bool) -> ParsedRequest:
    """Parse the body of POST …/messages/count_tokens; see `parse_messages`.

    Raises:
        GatewayError: invalid, naming the first invalid field.
    """
    checked, _ = read_quickly(_COUNT_TOKENS, body)
    source_map = SourceMap()
    request = _translated(checked, betas, coding, source_map)
    if not EXTENSION_FIELDS.isdisjoint(checked.model_fields_set):
        _set_extensions(request, checked, betas, source_map)
    return ParsedRequest(request, checked.model, False, source_map)


def _set_extensions(
    request: pb.GenerateRequest,
    body: CountTokensBody,
    betas: Sequence[str],
    source_map: SourceMap,
) -> None:
    read_parameters = partial(_step_parameters, body, betas)
    try:
        set_extensions(request, body, read_parameters, source_map)
    except GatewayError as error:
        raise of_caller(error, source_map) from None
    if source_map.chain:
        request.fallback_config.is_of_dialect = True


def _translated(
    body: CountTokensBody, betas: Sequence[str], coding: bool, source_map: SourceMap
) -> pb.GenerateRequest:
    """Return the canonical request, without extensions."""
    request = _begin(body, betas, coding)
    if has_chain(body, _FALLBACKS):
        overridden = dict.fromkeys(_OF_FALLBACKS) | {"output_config": body.output_config}
        take_chain(body, _FALLBACKS, body.model, overridden, source_map)
    _add_conversation(request, body, "", source_map)
    set_settings(request, body, _names_of(body), "", betas)
    return request


def _names_of(body: CountTokensBody) -> AbstractSet[str]:
    """Return the names of the fields in a body."""
    names: AbstractSet[str] = body.model_fields_set
    return names | body.model_extra.keys() if body.model_extra else names


def _begin(body: CountTokensBody, betas: Sequence[str], coding: bool) -> pb.GenerateRequest:
    """Return a request without its conversation, settings and extensions."""
    if coding:
        for name in ("fallback", "fallback_config"):
            if getattr(body, name) is not None and name in body.model_fields_set:
                raise invalid(name, f"{name}: not supported on this endpoint; use /v1/messages")
    request = pb.GenerateRequest(
        model=body.model, dialect=conversation_pb2.DIALECT_ANTHROPIC, ends_with_text=True
    )
    if betas:
        request.betas.extend(betas)
    if body.thinking_block_strategy is not None:
        request.thinking_block_strategy = _STRATEGIES[body.thinking_block_strategy]
    if body.use_built_in_tools:
        request.use_built_in_tools = True
    if coding:
        # Agents request the maximum of their own provider's models, whatever the model.
        request.lowers_max_tokens = True
        request.built_in_tools_by_default = body.use_built_in_tools is None
    return request


def _add_conversation(
    request: pb.GenerateRequest, body: CountTokensBody, prefix: str, source_map: SourceMap
) -> None:
    """Add system prompt and messages; `prefix` goes before the fields' paths."""
    if body.system:
        add_system(request.messages, body.system, f"{prefix}system", source_map)
    add_messages(request.messages, body.messages, f"{prefix}messages", source_map)


def _is_plain(body: MessagesBody) -> bool:
    """Return whether no other field of a body needs its conversation."""
    return (
        body.thinking_block_strategy in (None, "preserve")
        and not body.use_built_in_tools
        and not has_chain(body, _FALLBACKS)
        and is_plain(body)
    )


class _LazyMessages(VerbatimRequest[PartialMessagesBody]):
    """A request of messages whose conversation is passed on as written.

    Its options are the names in the `anthropic-beta` header, and whether it is for coding agents.
    """

    def begin_request(self) -> pb.GenerateRequest:
        """Return the canonical request without the conversation and extensions."""
        wire = self.wire
        betas, coding = self.options
        request = _begin(wire, betas, coding)
        if self.settings is None:
            names = _names_of(wire)
            with_settings = self.read("tools") if "tool_choice" in names else wire
            set_settings(request, with_settings, names, "", betas)
        else:
            request.max_tokens = self.settings["max_tokens"]
        return request

    def add_conversation(self, request: pb.GenerateRequest) -> None:
        """Add the messages and tools, and settings that were passed on."""
        whole = self.read()
        if self.settings is not None:
            set_settings(request, whole, self.wire.model_fields_set, "", request.betas)
        _add_conversation(request, whole, "", self.source_map)
        if whole.tools:
            add_tools(request, whole.tools, "tools")

    def read_plain(self) -> PlainRequest:
        """Return the plain form of the conversation."""
        return plain_request(self.conversation(), self.settings)

    def beginning(self) -> Iterable[PlainMessage]:
        """Return the texts up to the first message."""
        return beginning(self.conversation())


MESSAGES_READER = VerbatimReader(
    PartialMessagesBody, ("messages", "system", "tools"), _is_plain, verbatim_of, _LazyMessages
)


def _step_parameters(
    body: CountTokensBody,
    betas: Sequence[str],
    given: Mapping[str, object],
    path: str,
    source_map: SourceMap,
) -> pb.GenerateRequest:
    """Translate the fields that a fallback step overrides, checked within the merged request.

    Only the overridden fields are set, except for fields that share a field of the canonical
    request: those are set together, with missing values from the body.
    """
    for name in given:
        if name in _SHARED:
            raise invalid(
                f"{path}.{name}", f"{path}.{name}: cannot be overridden in a fallback step"
            )
    step = check(_PARAMETERS, given, path)
    overrides = {name: value for name, value in step if value is not None}
    for name, value in overrides.items():
        if name in ("tools", "stop_sequences") and not value:
            raise invalid(f"{path}.{name}", f"{path}.{name}: must not be empty in a fallback step")
    merged = body.model_copy(update=overrides)
    parameters = pb.GenerateRequest()
    if overrides.keys() & {"system", "messages"}:
        _add_conversation(parameters, merged, f"{path}.", source_map)
    set_settings(parameters, merged, overrides.keys(), path, betas)
    return parameters

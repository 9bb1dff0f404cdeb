"""Requests: translate bodies of the messages endpoints to the canonical request.

A body is first checked against its wire type. This module checks the rules across fields, and
translates.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from pydantic import TypeAdapter

from facade.dialects.anthropic.messages import add_messages, add_system
from facade.dialects.anthropic.plain import beginning, plain_request
from facade.dialects.anthropic.settings import add_tools, set_settings
from facade.dialects.anthropic.source import UnreadMessagesBody, plain_settings, source_of
from facade.dialects.anthropic.types import CountTokensBody, MessagesBody, Parameters
from facade.dialects.extensions import is_plain, set_extensions
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import Origins
from facade.dialects.sources import Source, SourceReader, UnreadBody
from facade.dialects.validation import check, exact_json, read_quickly, validate
from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1 import inference_pb2 as pb
from services.common.errors import invalid
from services.common.lazy_request import LazyRequest

_MESSAGES: TypeAdapter[MessagesBody] = TypeAdapter(MessagesBody)
_COUNT_TOKENS: TypeAdapter[CountTokensBody] = TypeAdapter(CountTokensBody)
_PARAMETERS: TypeAdapter[Parameters] = TypeAdapter(Parameters)

# Fields that all steps of a chain share, so that no step can override them.
_SHARED = frozenset(MessagesBody.model_fields) - frozenset(Parameters.model_fields)
# Requests with more are not read lazily, so that the service checks the number.
_FEW_BETAS = 100
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
    found = _SOURCES.read(body) if lazily and len(betas) <= _FEW_BETAS else None
    origins = Origins()
    checked: MessagesBody
    if found is None:
        checked, lazy = validate(_MESSAGES, exact_json(body), body), None
        del body  # frees its megabytes, unless the caller keeps a reference
        request = _translated(checked, betas, coding, origins)
    else:
        unread, source, _ = found
        checked, lazy = unread, _lazy(unread, source, betas, coding, origins, len(body))
        request = lazy.request
    set_extensions(request, checked, partial(_step_parameters, checked, betas), origins)
    return ParsedRequest(request, checked.model, checked.stream or False, origins, lazy)


def parse_count_tokens(body: bytes, *, betas: Sequence[str], coding: bool) -> ParsedRequest:
    """Parse the body of POST …/messages/count_tokens; see `parse_messages`.

    Raises:
        GatewayError: invalid, naming the first invalid field.
    """
    checked, _ = read_quickly(_COUNT_TOKENS, body)
    origins = Origins()
    request = _translated(checked, betas, coding, origins)
    set_extensions(request, checked, partial(_step_parameters, checked, betas), origins)
    return ParsedRequest(request, checked.model, False, origins)


def _translated(
    body: CountTokensBody, betas: Sequence[str], coding: bool, origins: Origins
) -> pb.GenerateRequest:
    """Return the canonical request, without extensions."""
    request = _begin(body, betas, coding)
    _add_conversation(request, body, "", origins)
    set_settings(request, body, _names_of(body), "", betas)
    return request


def _lazy(
    body: UnreadMessagesBody,
    source: Source,
    betas: Sequence[str],
    coding: bool,
    origins: Origins,
    size: int,
) -> LazyRequest:
    """Return a request whose conversation is translated later, without extensions."""
    request = _begin(body, betas, coding)
    unread = UnreadBody[MessagesBody](body, source.parts)
    fields: Mapping[str, object] = source.fields
    settings = plain_settings(body, has_tools="tools" in fields)
    if settings is None:
        names = _names_of(body)
        given: MessagesBody = body
        if "tool_choice" in names:
            given = unread.read("tools")
        set_settings(request, given, names, "", betas)
        add = partial(_complete, unread, origins)
    else:
        fields = {**fields, **settings}
        request.max_tokens = settings["max_tokens"]
        add = partial(_complete_with_settings, unread, body.model_fields_set, origins)
    return LazyRequest(
        request,
        fields,
        add,
        size=size,
        only_maker=source.only_maker,
        is_whole=settings is not None,
        read_plain=lambda: plain_request(unread.conversation(), settings),
        read_beginning=lambda: beginning(unread.conversation()),
    )


def _names_of(body: CountTokensBody) -> AbstractSet[str]:
    """Return the names of the fields in a body."""
    names: AbstractSet[str] = body.model_fields_set
    return names | body.model_extra.keys() if body.model_extra else names


def _begin(body: CountTokensBody, betas: Sequence[str], coding: bool) -> pb.GenerateRequest:
    """Return a request without its conversation, settings and extensions."""
    if coding:
        for name in ("fallback", "fallback_config"):
            if getattr(body, name) is not None and name in body.model_fields_set:
                raise invalid(
                    name, f"{name}: not supported on this endpoint; use /beta/v1/messages"
                )
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
        request.expects_built_in_tools = body.use_built_in_tools is None
    return request


def _add_conversation(
    request: pb.GenerateRequest, body: CountTokensBody, prefix: str, origins: Origins
) -> None:
    """Add system prompt and messages; `prefix` goes before the fields' paths."""
    if body.system:
        add_system(request.messages, body.system, f"{prefix}system", origins)
    add_messages(request.messages, body.messages, f"{prefix}messages", origins)


def _is_plain(body: MessagesBody) -> bool:
    """Return whether no other field of a body needs its conversation."""
    return (
        body.thinking_block_strategy in (None, "preserve")
        and not body.use_built_in_tools
        and is_plain(body)
    )


_SOURCES = SourceReader[UnreadMessagesBody](
    UnreadMessagesBody, ("messages", "system", "tools"), _is_plain, source_of
)


def _complete(
    unread: UnreadBody[MessagesBody], origins: Origins, request: pb.GenerateRequest
) -> None:
    """Add the messages and tools to a request that was read lazily."""
    body = unread.read()
    _add_conversation(request, body, "", origins)
    if body.tools:
        add_tools(request, body.tools, "tools")


def _complete_with_settings(
    unread: UnreadBody[MessagesBody],
    names: AbstractSet[str],
    origins: Origins,
    request: pb.GenerateRequest,
) -> None:
    """Add settings, messages and tools to a request whose fields can all be passed on."""
    set_settings(request, unread.read(), names, "", request.betas)
    _complete(unread, origins, request)


def _step_parameters(
    body: CountTokensBody,
    betas: Sequence[str],
    given: Mapping[str, object],
    path: str,
    origins: Origins,
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
        _add_conversation(parameters, merged, f"{path}.", origins)
    set_settings(parameters, merged, overrides.keys(), path, betas)
    return parameters

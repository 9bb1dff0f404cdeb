"""Requests: translate bodies of `generateContent` and `countTokens` to the canonical request.

The model is named by the path. A request for a provider of this dialect reaches it with all its
fields, as those without a canonical name are kept as JSON.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from facade.dialects.extensions import EXTENSION_FIELDS, set_extensions
from facade.dialects.gemini.contents import add_contents, add_system
from facade.dialects.gemini.settings import set_settings
from facade.dialects.gemini.types import CountTokensBody, GenerateContentBody, Parameters
from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.paths import SourceMap
from facade.dialects.steps import check_step, given_fields, keep_difference
from facade.dialects.validation import check, read_quickly
from gateway.conversation.v1.conversation_pb2 import DIALECT_GEMINI
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import invalid

_GENERATE: TypeAdapter[GenerateContentBody] = TypeAdapter(GenerateContentBody)
_COUNT: TypeAdapter[CountTokensBody] = TypeAdapter(CountTokensBody)
_PARAMETERS: TypeAdapter[Parameters] = TypeAdapter(Parameters)

_CONFIG = "generationConfig"
_NESTED = "generateContentRequest"
# Fields that a fallback step cannot override, as they apply to the whole request.
_OF_THE_WHOLE = GenerateContentBody.model_fields.keys() - Parameters.model_fields.keys()
# Fields of the gateway that would otherwise count as unknown.
_REFUSED = ("use_built_in_tools", "thinking_block_strategy")


def parse_generate(body: bytes, *, model: str, stream: bool) -> ParsedRequest:
    """Parse the body of `generateContent` or `streamGenerateContent`.

    Args:
        body: JSON.
        model: the model that the path names.
        stream: whether the answer is streamed.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    wire, _ = read_quickly(_GENERATE, body)
    del body  # frees its megabytes, unless the caller keeps a reference
    source_map = SourceMap()
    request = _translated(wire, model, "", source_map)
    parsed = ParsedRequest(request, model, stream, source_map)
    parsed.metadata = wire.labels
    parsed.includes_thoughts = _includes_thoughts(wire)
    return parsed


def parse_count_tokens(body: bytes, *, model: str) -> ParsedRequest:
    """Parse the body of `countTokens`; see `parse_generate`.

    Raises:
        GatewayError: invalid, naming the invalid field and its valid values.
    """
    wire, _ = read_quickly(_COUNT, body)
    source_map = SourceMap()
    whole = wire.generateContentRequest
    if whole is not None:
        if wire.contents is not None:
            raise invalid(_NESTED, f"{_NESTED}: cannot be given together with contents")
        # Its model repeats that of the path.
        if whole.model_extra:
            whole.model_extra.pop("model", None)
        request = _translated(whole, model, f"{_NESTED}.", source_map)
    else:
        extra = dict(wire.model_extra or {})
        parameters = GenerateContentBody.model_construct(contents=wire.contents)
        parameters.__pydantic_extra__ = extra
        request = _translated(parameters, model, "", source_map)
    return ParsedRequest(request, model, False, source_map)


def _includes_thoughts(wire: Parameters) -> bool:
    thinking = (wire.generationConfig or {}).get("thinkingConfig") or {}
    return bool(thinking.get("includeThoughts"))


def _translated(
    wire: GenerateContentBody, model: str, prefix: str, source_map: SourceMap
) -> GenerateRequest:
    request = GenerateRequest(
        model=model,
        dialect=DIALECT_GEMINI,
        omits_stop_sequence=True,
        has_unsigned_thinking=True,
    )
    for name in _REFUSED:
        if wire.model_extra and wire.model_extra.get(name) is not None:
            raise invalid(
                f"{prefix}{name}",
                f"{prefix}{name}: not supported on this endpoint; use /v1/messages",
            )
    _add_conversation(request, wire, prefix, source_map)
    set_settings(request, wire, prefix, source_map)
    if not EXTENSION_FIELDS.isdisjoint(wire.model_fields_set):
        set_extensions(request, wire, partial(_step_parameters, wire), source_map)
    return request


def _add_conversation(
    request: GenerateRequest, wire: Parameters, prefix: str, source_map: SourceMap
) -> None:
    if wire.systemInstruction is not None:
        path = f"{prefix}systemInstruction"
        add_system(request.messages, wire.systemInstruction, path, source_map)
    add_contents(request.messages, wire.contents or [], f"{prefix}contents", source_map)


def _step_parameters(
    outer: GenerateContentBody, parameters: Mapping[str, object], path: str, source_map: SourceMap
) -> GenerateRequest:
    """Parse the parameters of a fallback step; see `ReadParameters`.

    The step is merged into the outer request, with its options of the answer over those of the
    request, and checked as a whole. The result has only the fields in which the two differ.
    """
    check_step(parameters, path, _OF_THE_WHOLE, ("tools", "contents"))
    checked = check(_PARAMETERS, parameters, path)
    step, whole = GenerateRequest(dialect=DIALECT_GEMINI), GenerateRequest(dialect=DIALECT_GEMINI)
    set_settings(step, _over(outer, checked), f"{path}.", SourceMap())
    set_settings(whole, outer, "", SourceMap())
    keep_difference(step, whole)
    if checked.contents is not None or checked.systemInstruction is not None:
        merged = _over(outer, checked)
        _add_conversation(step, merged, f"{path}.", source_map)
    return step


def _over(outer: GenerateContentBody, step: Parameters) -> Parameters:
    """Return the outer fields with the fields of a step over them; nulls count as absent."""
    below, above = given_fields(outer, Parameters), given_fields(step, Parameters)
    if below.get(_CONFIG) and above.get(_CONFIG):
        above[_CONFIG] = {**below[_CONFIG], **above[_CONFIG]}
    merged: dict[str, Any] = below | above
    typed = {name: value for name, value in merged.items() if name in Parameters.model_fields}
    parameters = Parameters.model_construct(**typed)
    parameters.__pydantic_extra__ = {
        name: value for name, value in merged.items() if name not in typed
    }
    return parameters

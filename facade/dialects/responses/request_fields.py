"""Unknown fields of a response's body, kept for providers of this dialect.

A partly known object is kept as a whole: a provider's adapter of this dialect puts it over the
known fields.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from facade.dialects.cache_marks import COVERED_OPTIONS, OPTIONS, set_options
from facade.dialects.openai.formats import FORMATS, has_schema
from facade.dialects.openai.moderation import blocks_by_moderation
from facade.dialects.responses.compaction import CONTEXT_MANAGEMENT, set_threshold
from facade.dialects.responses.state import ENCRYPTED, LOGPROBS, SOURCES
from facade.dialects.responses.types import Format, ResponseParameters, TextConfig
from facade.dialects.validation import to_opaque
from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Opaque
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import invalid

# Fields that would otherwise count as unknown, with the error message.
_REFUSED = {
    "messages": "not supported on this endpoint; use input",
    "max_tokens": "not supported on this endpoint; use max_output_tokens",
    "max_completion_tokens": "not supported on this endpoint; use max_output_tokens",
    "response_format": "not supported on this endpoint; use text.format",
    "reasoning_effort": "not supported on this endpoint; use reasoning.effort",
    "use_built_in_tools": "not supported on this endpoint; use /v1/messages",
    "thinking_block_strategy": "not supported on this endpoint; use /v1/messages",
}
# Fields that are kept, with the condition under which the gateway handles them too.
_KEPT: Mapping[str, Callable[[Any], bool]] = {
    "include": lambda value: {ENCRYPTED, LOGPROBS, SOURCES}.issuperset(value),
    "max_tool_calls": lambda value: True,  # it counts the searches alone; see `add_tools`
    "metadata": lambda value: True,
    "prompt": lambda value: False,
    "prompt_cache_key": lambda value: False,
    "safety_identifier": lambda value: False,
    "stream_options": lambda value: True,  # the gateway streams the answer itself
    "truncation": lambda value: value == "disabled",
}
# Options of generation in the background, and what the gateway does in any case.
_BACKGROUND_OPTIONS = "background_options"
_AT_ONCE = ("completion_window", "soonest")
_FORMAT = frozenset(Format.__annotations__)
_EFFORT = frozenset({"effort"})
_REASONING = ("reasoning.effort", "reasoning.summary", "reasoning.generate_summary")


def keep_request_fields(request: GenerateRequest, wire: ResponseParameters, prefix: str) -> None:
    """Keep the unknown fields of a body; nulls are dropped.

    Args:
        request: its `extra` is set.
        wire: the body, or the body with the parameters of a fallback step.
        prefix: prefix of field paths.

    Raises:
        GatewayError: invalid, for a field that belongs to another endpoint, or as `to_json`.
    """
    extra = {name: value for name, value in (wire.model_extra or {}).items() if value is not None}
    for field, why in _REFUSED.items():
        if field in extra:
            path = f"{prefix}{field}"
            raise invalid(path, f"{path}: {why}")
    held = wire.__dict__
    notes = Opaque()
    for name, is_covered in _KEPT.items():
        if (value := held.get(name)) is not None:
            extra[name] = value
            if is_covered(value):
                notes.covered_paths.append(name)
    if CONTEXT_MANAGEMENT in extra:
        set_threshold(request, extra[CONTEXT_MANAGEMENT], prefix)
    if OPTIONS in extra:
        set_options(request, extra[OPTIONS])
        notes.covered_paths.extend(COVERED_OPTIONS)
    _keep_background_options(extra)
    notes.required.extend(_required(wire, extra))
    if wire.top_logprobs is not None and LOGPROBS not in (wire.include or ()):
        extra["top_logprobs"] = wire.top_logprobs
    if wire.reasoning is not None and not wire.reasoning.keys() <= _EFFORT:
        extra["reasoning"] = wire.reasoning
        notes.covered_paths.extend(_REASONING)
    if wire.text is not None:
        _keep_text(wire.text, extra, notes)
    if extra:
        request.extra.CopyFrom(to_opaque(DIALECT_RESPONSES, extra, prefix.removesuffix(".")))
        request.extra.MergeFrom(notes)


def _keep_background_options(extra: dict[str, Any]) -> None:
    """Leave out of the options of the background what the gateway does."""
    if isinstance(options := extra.pop(_BACKGROUND_OPTIONS, None), dict):
        if others := {name: one for name, one in options.items() if (name, one) != _AT_ONCE}:
            extra[_BACKGROUND_OPTIONS] = others


def _required(wire: ResponseParameters, extra: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields without which an answer would have another meaning."""
    if wire.prompt is not None:
        yield "prompt"
    if blocks_by_moderation(extra.get("moderation")):
        yield "moderation"


def _keep_text(text: TextConfig, extra: dict[str, Any], notes: Opaque) -> None:
    form = text.get("format")
    is_known = form is None or form["type"] in FORMATS
    if not is_known:
        notes.required.append("text")
    elif not (
        text.keys() - {"format"} or (form and (form.keys() - _FORMAT or not has_schema(form, form)))
    ):
        return
    extra["text"] = text
    notes.covered_paths.extend(f"text.format.{name}" for name in sorted(_FORMAT))

"""Unknown fields of chat completions, kept as JSON for providers of the dialect.

`Opaque.covered_paths` lists the fields that a canonical field also covers, and `Opaque.required`
those that cannot be dropped.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from facade.dialects import cache_marks
from facade.dialects.openai.moderation import blocks_by_moderation
from facade.dialects.openai.types import JsonSchema, ResponseFormat
from facade.dialects.validation import to_json, to_opaque
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Block, Message, Opaque
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool

_MARK = "cache_control"
_FORM = "response_format"
# Required request fields, which change the answer, with their conditions.
_REQUIRED: Mapping[str, Callable[[Any], bool]] = {
    "audio": bool,
    "previous_response_id": bool,
    "conversation": bool,
    "moderation": blocks_by_moderation,
}
# Fields of a message that have content.
_CONTENT = ("audio",)
_FORM_FIELDS = tuple(name for name in ResponseFormat.__annotations__ if name != "json_schema")
_SCHEMA_FIELDS = tuple(JsonSchema.__annotations__)


def keep_request_fields(request: GenerateRequest, fields: Mapping[str, Any], path: str) -> None:
    """Keep unknown fields of a request, whose canonical fields have been set before.

    Raises:
        GatewayError: invalid, as `to_json`.
    """
    extra = request.extra
    extra.CopyFrom(to_opaque(DIALECT_OPENAI, fields, path))
    extra.required.extend(
        name for name, is_needed in _REQUIRED.items() if name in fields and is_needed(fields[name])
    )
    _keep_modalities(request, fields.get("modalities"))
    if _FORM in fields:
        _name_form(request, extra)
    if request.HasField("web_search"):
        extra.covered_paths.append("web_search_options")
    request.cache_control = _take_mark(fields, extra, path)
    if cache_marks.OPTIONS in fields:
        cache_marks.set_options(request, fields[cache_marks.OPTIONS])
        extra.covered_paths.extend(cache_marks.COVERED_OPTIONS)


def keep_message_fields(message: Message, fields: Mapping[str, Any], path: str) -> None:
    """Keep unknown fields of a message; a cache mark is set on its last block.

    Raises:
        GatewayError: invalid, as `to_json`.
    """
    message.extra.CopyFrom(to_opaque(DIALECT_OPENAI, fields, path))
    message.extra.required.extend(name for name in _CONTENT if name in fields)
    mark = _take_mark(fields, message.extra, path)
    if mark and message.blocks and not message.blocks[-1].cache_control:
        message.blocks[-1].cache_control = mark


def keep_part_fields(holder: Block | Tool, fields: Mapping[str, Any], path: str) -> None:
    """Keep unknown fields of a content part, a tool call or a tool.

    Raises:
        GatewayError: invalid, as `to_json`.
    """
    holder.extra.CopyFrom(to_opaque(DIALECT_OPENAI, fields, path))
    holder.cache_control = _take_mark(fields, holder.extra, path)


def keep_stream_options(request: GenerateRequest, options: Mapping[str, Any]) -> None:
    """Keep stream options, such as `include_obfuscation`, beside those in `extra`.

    Providers of other dialects do not report them as dropped, as the gateway streams the answer
    itself.

    Raises:
        GatewayError: invalid, as `to_json`.
    """
    fields = orjson.loads(request.extra.json) if request.extra.json else {}
    kept = to_opaque(DIALECT_OPENAI, {**fields, "stream_options": options}, "stream_options")
    request.extra.dialect, request.extra.json = kept.dialect, kept.json
    request.extra.covered_paths.append("stream_options")


def _keep_modalities(request: GenerateRequest, modalities: object) -> None:
    if modalities is None:
        return
    if isinstance(modalities, list) and all(isinstance(one, str) for one in modalities):
        request.output_modalities.extend(modalities)
        request.extra.covered_paths.append("modalities")
    else:
        request.extra.required.append("modalities")


def _name_form(request: GenerateRequest, extra: Opaque) -> None:
    """List the fields of `response_format` with a canonical field, or mark it as required."""
    if not request.HasField("output_format"):
        extra.required.append(_FORM)
        return
    extra.covered_paths.extend(f"{_FORM}.{name}" for name in _FORM_FIELDS)
    extra.covered_paths.extend(f"{_FORM}.json_schema.{name}" for name in _SCHEMA_FIELDS)


def _take_mark(fields: Mapping[str, Any], extra: Opaque, path: str) -> bytes:
    """Return the `cache_control` that clients write for Anthropic's models, or b"".

    A part's breakpoint is one too. It is a field of a request, message, content part or tool, or of
    a tool's `function`. It is added to the covered paths of `extra`.
    """
    function = fields.get("function")
    if isinstance(function, dict) and _MARK in function:
        mark, name = function[_MARK], f"function.{_MARK}"
    else:
        mark, name = fields.get(_MARK), _MARK
    if mark is None and (
        breakpoint_mark := cache_marks.mark_of(fields.get(cache_marks.BREAKPOINT))
    ):
        extra.covered_paths.append(cache_marks.BREAKPOINT)
        return breakpoint_mark
    if not isinstance(mark, dict) or not mark:
        return b""
    extra.covered_paths.append(name)
    return to_json(mark, f"{path}.{name}".lstrip("."))

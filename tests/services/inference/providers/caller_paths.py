"""Paths of fields as a request's caller sees them: as the facade translates them."""

import orjson

from facade.dialects import anthropic, openai
from facade.dialects.anthropic.settings import REQUIRED
from facade.dialects.openai.paths import TOOL_CALLS, WHOLE
from facade.dialects.openai.unknown_fields import (
    keep_message_fields,
    keep_part_fields,
    keep_request_fields,
)
from facade.dialects.paths import SYSTEM, CallerPaths, SourceMap
from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Block, Message, Opaque
from gateway.inference.v1.inference_pb2 import GenerateRequest, Tool
from services.inference.providers.base import Call

_NAMES = {
    conversation_pb2.DIALECT_OPENAI: openai.FIELD_NAMES,
    conversation_pb2.DIALECT_ANTHROPIC: anthropic.FIELD_NAMES,
}


def path_of(request: GenerateRequest, path: str) -> str:
    """Return a path in the words of a request's caller; gRPC callers read it as it is."""
    names = _NAMES.get(request.dialect)
    if names is None:
        return path
    return CallerPaths(names, _source_map(request)).path(path)


def dropped_of(call: Call) -> list[str]:
    """Return the dropped fields of a call in its caller's words, each once."""
    return list(dict.fromkeys(path_of(call.request, path) for path in call.dropped))


def with_named_fields(request: GenerateRequest) -> GenerateRequest:
    """Have the facade say what the opaque fields of a chat mean, as it does of a caller's."""
    if request.dialect == conversation_pb2.DIALECT_OPENAI:
        for message in request.messages:
            for block in message.blocks:
                _keep(block)
            _keep(message)
        for tool in request.tools:
            _keep(tool)
    _keep(request)
    return request


def _keep(holder: GenerateRequest | Message | Block | Tool) -> None:
    given: Opaque = holder.extra
    if given.dialect == conversation_pb2.DIALECT_ANTHROPIC and isinstance(holder, GenerateRequest):
        fields = orjson.loads(given.json)
        given.required.extend(name for name in REQUIRED if fields.get(name))
    if given.dialect != conversation_pb2.DIALECT_OPENAI or given.required or given.covered_paths:
        return
    try:
        fields = orjson.loads(given.json)
    except orjson.JSONDecodeError:
        return
    if not isinstance(fields, dict):
        return
    if isinstance(holder, GenerateRequest):
        keep_request_fields(holder, fields, "")
    elif isinstance(holder, Message):
        keep_message_fields(holder, fields, "")
    else:
        mark = holder.cache_control
        keep_part_fields(holder, fields, "")
        holder.cache_control = mark or holder.cache_control
    holder.extra.json = given.json


def _source_map(request: GenerateRequest) -> SourceMap:
    source_map = SourceMap()
    if request.dialect == conversation_pb2.DIALECT_ANTHROPIC:
        if request.messages[0].role == conversation_pb2.ROLE_SYSTEM:
            source_map.add_mapping(0, 0, SYSTEM, 0)
        return source_map
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.blocks):
            if block.HasField("tool_result"):
                source_map.add_mapping(index, place, index, 0, WHOLE)
            elif block.HasField("tool_use"):
                source_map.add_mapping(index, place, index, 0, TOOL_CALLS)
                break
    return source_map

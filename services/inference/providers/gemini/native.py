"""Parts of a conversation in Google's own format, for requests of its dialect. Pure.

They are sent as their caller wrote them: without renaming functions, fitting schemas or media, and
with all their fields. What refers to objects stored at the provider is refused as everywhere.
"""

from typing import Any

import orjson

from gateway.conversation.v1.conversation_pb2 import Block, Media, ToolResult, ToolUse
from gateway.inference.v1.inference_pb2 import Tool
from services.common.ids import UNNAMED_CALL
from services.inference.providers.conversation_writer import base64_of
from services.inference.providers.opaque_json import Json
from services.inference.providers.request_fields import RequestFields

_CALL, _RESPONSE = "functionCall", "functionResponse"
_PARAMETERS = "parameters"


def medium(media: Media, name: str) -> Json:
    """Return the part of a medium by value; `name` is its name, or ""."""
    blob: Json = {"mimeType": media.mime_type, "data": base64_of(media.data)}
    return {"inlineData": {**blob, "displayName": name} if name else blob}


def merged(part: Json, fields: Json) -> Json:
    """Return a part with its unknown fields, and those of the object that it consists of."""
    for name, value in part.items():
        inner = fields.get(name)
        if isinstance(inner, dict) and isinstance(value, dict):
            fields = {**fields, name: {**inner, **value}}
    return {**part, **fields}


def call_part(call: ToolUse, arguments: Any) -> Json:
    """Return the part of a call of a function; the id is left out if the caller named none."""
    fields: Json = {"name": call.name, "args": arguments}
    return {_CALL: fields if call.id.startswith(UNNAMED_CALL) else {"id": call.id, **fields}}


def result_part(result: ToolResult, name: str, texts: list[str], media: list[Json]) -> Json:
    """Return the part of a result: its text is the JSON of an object, or else a plain text."""
    response = _object("\n".join(texts), is_error=result.is_error)
    fields: Json = {"name": name, "response": response}
    if media:
        fields["parts"] = media
    if not result.tool_use_id.startswith(UNNAMED_CALL):
        fields = {"id": result.tool_use_id, **fields}
    return {_RESPONSE: fields}


def _object(text: str, *, is_error: bool) -> Json:
    if text.lstrip().startswith("{"):
        try:
            parsed = orjson.loads(text)
        except orjson.JSONDecodeError:
            parsed = None
        if isinstance(parsed, dict):
            return parsed
    if not text and not is_error:
        return {}
    return {"error" if is_error else "output": text}


def function(tool: Tool, path: str, fields: RequestFields) -> Json:
    """Return the declaration of a function."""
    declared: Json = {"name": tool.name}
    if tool.description:
        declared["description"] = tool.description
    declared |= fields.native_fields(tool.extra, f"{path}.extra", "tools[].extra")
    if tool.input_schema and _PARAMETERS not in declared:
        declared["parametersJsonSchema"] = orjson.Fragment(tool.input_schema)
    return declared


def block_fields(block: Block, path: str, fields: RequestFields) -> Json:
    """Return the unknown fields of a block."""
    extra = f"{path}.extra"
    return fields.native_fields(block.extra, extra, "messages[].blocks[].extra", is_part=True)

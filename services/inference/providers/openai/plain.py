"""Plain requests of another dialect as the body of a chat completion. Pure.

The results equal those of `messages` and `request` for the canonical request.
"""

from collections.abc import Sequence
from typing import Any

from services.common.plain_request import PlainCall, PlainMessage, PlainRequest, PlainTool
from services.inference.providers.base import Call
from services.inference.providers.openai.fields import OpenAIFields
from services.inference.providers.request_fields import Json
from services.inference.providers.schemas import function_schema, lacks_items

# Settings with the same name in the canonical request and in chat completions.
_SETTINGS = frozenset(("max_tokens", "temperature", "top_p", "top_k", "tool_choice"))


def plain_body(call: Call, fields: OpenAIFields) -> Json | None:
    """Return the body of a lazy request, or None if its settings require translation."""
    if call.lazy is None:
        return None
    plain = call.lazy.plain
    if plain is None or plain.settings is None or not plain.settings.keys() <= _SETTINGS:
        return None
    body = {
        "model": call.target.upstream,
        **plain_conversation(plain, fields, call.lazy.json_of("tools")),
        **plain.settings,
    }
    if call.request.names_max_completion_tokens and "max_tokens" in body:
        body["max_completion_tokens"] = body.pop("max_tokens")
    if call.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if call.request.betas:
        fields.drop("betas")
    return body


def plain_conversation(plain: PlainRequest, fields: OpenAIFields, tools_json: bytes) -> Json:
    """Return the fields `messages` and `tools`.

    Args:
        plain: the conversation.
        fields: decides what the server is sent.
        tools_json: the tools as the caller wrote them.
    """
    messages = [
        written for message in plain.messages if (written := _message(message, fields)) is not None
    ]
    if not plain.tools:
        return {"messages": messages}
    may_lack_items = lacks_items(tools_json)
    tools = [_tool(tool, fields, may_lack_items) for tool in plain.tools]
    return {"messages": messages, "tools": tools}


def _message(message: PlainMessage, fields: OpenAIFields) -> Json | None:
    role, texts = message.role, message.texts
    if message.is_error:
        fields.drop("messages[].blocks[].tool_result.is_error")
    if role == "system":
        texts = fields.system_texts(message)
        if not texts:
            return None
    if message.is_marked:
        fields.drop("messages[].blocks[].cache_control")
    if role == "tool":
        content = _content(texts, fields)
        return {"role": role, "tool_call_id": message.call_id, "content": content}
    if role != "assistant":
        return {"role": role, "content": _content(texts, fields)}
    written: Json = {"role": role, "content": "".join(texts) or None}
    if message.calls:
        written["tool_calls"] = [_call(call, fields) for call in message.calls]
    return written


def _content(texts: Sequence[str], fields: OpenAIFields) -> Any:
    """Return texts as a string if that is equivalent; many servers accept nothing else."""
    if len(texts) > 1 and fields.server.newest:
        return [{"type": "text", "text": text} for text in texts]
    return "\n".join(texts)


def _call(call: PlainCall, fields: OpenAIFields) -> Json:
    function = {"name": fields.tool_name(call.name), "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: PlainTool, fields: OpenAIFields, may_lack_items: bool) -> Json:
    if tool.is_marked:
        fields.drop("tools[].cache_control")
    function: Json = {"name": fields.tool_name(tool.name)}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = function_schema(tool.parameters, lacks_items=may_lack_items)
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}

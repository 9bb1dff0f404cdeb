"""Plain requests of another dialect as the body of Anthropic's messages. Pure.

The results equal those of `content` and `request` for the canonical request.
"""

from services.common.plain_request import PlainCall, PlainMessage, PlainRequest, PlainTool
from services.inference.providers.anthropic import sanitizing
from services.inference.providers.anthropic.content import shortest, tool_input
from services.inference.providers.base import Call
from services.inference.providers.request_fields import Json
from services.inference.providers.schemas import object_schema

# `max_tokens` if neither the caller nor the catalogue has a bound.
DEFAULT_MAX_TOKENS = 4096

# Settings with the same name in the canonical request and in Anthropic's messages.
_SETTINGS = frozenset(("max_tokens", "temperature", "top_p", "top_k", "tool_choice"))


def plain_body(call: Call) -> Json | None:
    """Return the body of a lazy request, or None if it must be translated or refused."""
    plain = None if call.lazy is None else call.lazy.plain
    if plain is None or plain.settings is None or not plain.settings.keys() <= _SETTINGS:
        return None
    given = plain.settings
    conversation = plain_conversation(plain)
    if conversation is None or given.get("temperature", 0) > 1:
        return None
    bound = call.target.max_output_tokens or DEFAULT_MAX_TOKENS
    body: Json = {"model": call.target.upstream, **conversation, "max_tokens": bound, **given}
    if "tool_choice" in given:
        body["tool_choice"] = {"type": given["tool_choice"]}
    if call.stream:
        body["stream"] = True
    return body


def plain_conversation(plain: PlainRequest) -> Json | None:
    """Return the fields `messages`, `system` and `tools`.

    None if the conversation must be adapted: a text is only white space, or the last message is not
    the user's.
    """
    system: list[Json] = []
    messages: list[Json] = []
    role, blocks = "", list[Json]()
    for message in plain.messages:
        if any(map(str.isspace, message.texts)):
            return None
        if message.role == "system":
            system += map(_text, message.texts)
            continue
        side = "assistant" if message.role == "assistant" else "user"
        if side != role:
            # Adjacent messages of the same role are merged.
            role, blocks = side, []
            messages.append({"role": role, "content": blocks})
        if message.role == "tool":
            blocks.append(_result(message))
            continue
        blocks += map(_text, message.texts)
        blocks += map(_call, message.calls)
    if role != "user":
        return None
    for written in messages:
        written["content"] = shortest(written["content"])
    translated: Json = {"messages": messages}
    if system:
        translated["system"] = shortest(system)
    if plain.tools:
        translated["tools"] = list(map(_tool, plain.tools))
    return translated


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _call(call: PlainCall) -> Json:
    return {
        "type": "tool_use",
        "id": sanitizing.tool_use_id(call.id),
        "name": call.name,
        "input": tool_input(call.arguments),
    }


def _result(message: PlainMessage) -> Json:
    written: Json = {"type": "tool_result", "tool_use_id": sanitizing.tool_use_id(message.call_id)}
    if message.texts:
        written["content"] = shortest(list(map(_text, message.texts)))
    if message.is_error:
        written["is_error"] = True
    return written


def _tool(tool: PlainTool) -> Json:
    written: Json = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    written["input_schema"] = object_schema(tool.parameters)
    if tool.strict:
        written["strict"] = True
    return written

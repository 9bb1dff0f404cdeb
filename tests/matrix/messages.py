"""The messages endpoint: conversations as its bodies, and its answers in words of no dialect."""

from collections.abc import Mapping
from typing import Any

import orjson

from tests.matrix.json_bodies import arguments_of, base64_of, dropped_of, events_of
from tests.matrix.upstreams import MatrixGateway
from tests.matrix.words import (
    MESSAGES,
    Answer,
    Call,
    Called,
    Conversation,
    Document,
    Failure,
    Image,
    Json,
    Part,
    Result,
    Text,
    Thought,
    Tool,
    Turn,
)

NAME = MESSAGES
_MAX_TOKENS = 4000  # the endpoint asks for some
_SAME = ("max_tokens", "temperature", "top_p", "top_k", "service_tier")
_FINISH = {
    "end_turn": "end",
    "max_tokens": "length",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "refusal": "refusal",
}
_MARK = {"cache_control": {"type": "ephemeral"}}


def body_of(conversation: Conversation, model: str) -> Json:
    """Return the body that asks a model."""
    body: Json = {"model": model, "max_tokens": _MAX_TOKENS, "messages": []}
    for turn in conversation.turns:
        if turn.role == "system" and not body["messages"]:
            body.setdefault("system", []).extend(map(_block, turn.parts))
        else:
            body["messages"].append(_message(turn))
    if conversation.tools:
        body["tools"] = [_tool(tool) for tool in conversation.tools]
    if choice := conversation.choice:
        named = {"type": "tool", "name": choice}
        body["tool_choice"] = {"type": choice} if choice in ("auto", "any", "none") else named
    for name, value in conversation.options.items():
        _set_option(body, name, value)
    return body | conversation.own.get(MESSAGES, {})


def _set_option(body: Json, name: str, value: Any) -> None:
    match name:
        case "stop":
            body["stop_sequences"] = value
        case "effort":
            body["thinking"] = {"type": "adaptive"}
            body.setdefault("output_config", {})["effort"] = value
        case "budget":
            body["thinking"] = {"type": "enabled", "budget_tokens": value}
        case "no_thinking":
            body["thinking"] = {"type": "disabled"}
        case "user":
            body["metadata"] = {"user_id": value}
        case "schema":
            form = {"type": "json_schema", "schema": value}
            body.setdefault("output_config", {})["format"] = form
        case "parallel":
            choice = body.setdefault("tool_choice", {"type": "auto"})
            choice["disable_parallel_tool_use"] = not value
        case _:
            assert name in _SAME, name
            body[name] = value


def _tool(tool: Tool) -> Json:
    body: Json = {"name": tool.name, "input_schema": tool.schema}
    if tool.description:
        body["description"] = tool.description
    if tool.strict is not None:
        body["strict"] = tool.strict
    return {**body, **(_MARK if tool.marked else {})}


def _message(turn: Turn) -> Json:
    blocks = [_block(part) for part in turn.parts]
    plain = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    content: Any = blocks[0]["text"] if plain else blocks
    return {"role": turn.role, "content": content, **turn.own}


def _block(part: Part) -> Json:
    match part:
        case Text(text, marked):
            return {"type": "text", "text": text, **(_MARK if marked else {})}
        case Image(data, mime_type):
            return {"type": "image", "source": _source(data, mime_type)}
        case Document(data, "text/plain", name):
            source = {"type": "text", "media_type": "text/plain", "data": data.decode()}
            return {"type": "document", "source": source, "title": name}
        case Document(data, mime_type, name):
            return {"type": "document", "source": _source(data, mime_type), "title": name}
        case Thought("", signature):
            return {"type": "redacted_thinking", "data": signature}
        case Thought(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case Call(id, name, arguments):
            return {"type": "tool_use", "id": id, "name": name, "input": orjson.loads(arguments)}
        case Result(id, parts, is_error):
            block = {"type": "tool_result", "tool_use_id": id, "content": list(map(_block, parts))}
            return {**block, **({"is_error": True} if is_error else {})}
    raise AssertionError(f"messages have no word for {part}")


def _source(data: bytes, mime_type: str) -> Json:
    return {"type": "base64", "media_type": mime_type, "data": base64_of(data)}


async def ask(
    target: MatrixGateway, body: Json, stream: bool
) -> tuple[Answer | Failure, list[str]]:
    """Ask; return what came and the fields that were dropped."""
    if stream:
        body = {**body, "stream": True}
    url = f"{target.gateway.url}/beta/v1/messages"
    async with target.gateway.http.post(
        url, json=body, headers=target.gateway.api_key()
    ) as response:
        data = await response.read()
    if response.status != 200:
        # The shape has no field for the path: the words begin with it.
        words = orjson.loads(data)["error"]["message"]
        return Failure(response.status, words.partition(": ")[0], words), []
    message = _put_together(data) if stream else orjson.loads(data)
    return _answer(message), dropped_of(response)


def _put_together(data: bytes) -> Json:
    """Return a streamed message as the dialect's reference says."""
    message: Json = {}
    partial: list[str] = []
    events = events_of(data)
    last = {name: one for name, one in events[-1].items() if not name.startswith("amazon-")}
    assert last == {"type": "message_stop"}, events[-1]
    for event in events:
        match event:
            case {"type": "message_start", "message": started}:
                message = started
            case {"type": "content_block_start", "index": index, "content_block": block}:
                assert index == len(message["content"])
                message["content"].append(block)
                partial.append("")
            case {"type": "content_block_delta", "index": index, "delta": delta}:
                assert index == len(message["content"]) - 1
                partial[index] += delta.get("partial_json", "")
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        message["content"][index][name] += delta[name]
            case {"type": "content_block_stop", "index": index}:
                if partial[index]:
                    message["content"][index]["input"] = orjson.loads(partial[index])
            case {"type": "message_delta", "delta": delta, "usage": usage}:
                message |= delta
                message["usage"] |= usage
    return message


def _answer(message: Mapping[str, Any]) -> Answer:
    content = message["content"]
    usage = message["usage"]
    read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    text = "".join(block["text"] for block in content if block["type"] == "text")
    refuses = message["stop_reason"] == "refusal"
    return Answer(
        text="" if refuses else text,
        refusal=text if refuses else "",
        thoughts="".join(block["thinking"] for block in content if block["type"] == "thinking"),
        calls=tuple(
            Called(block["id"], block["name"], arguments_of(orjson.dumps(block["input"]).decode()))
            for block in content
            if block["type"] == "tool_use"
        ),
        finish=_FINISH[message["stop_reason"]],
        stop_sequence=message["stop_sequence"] or "",
        usage=(sum(usage[name] for name in read), usage["output_tokens"]),
        message={"role": "assistant", "content": content},
    )


def go_on(body: Json, answer: Answer, turn: Turn | None) -> Json:
    """Return the body of the next request, with the answer and what is said to it."""
    messages = [_message(turn)] if turn else []
    return {**body, "messages": [*body["messages"], answer.message, *messages]}


def for_model(body: Json, model: str) -> Json:
    """Return a body that asks another model."""
    return {**body, "model": model}

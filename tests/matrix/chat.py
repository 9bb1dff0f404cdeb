"""The chat endpoint: conversations as its bodies, and its answers in words of no dialect."""

from collections.abc import Mapping
from typing import Any

import orjson

from tests.matrix.json_bodies import arguments_of, base64_of, data_url, dropped_of, events_of
from tests.matrix.upstreams import MatrixGateway
from tests.matrix.words import (
    CHAT,
    Answer,
    Audio,
    Call,
    Called,
    Conversation,
    Document,
    Failure,
    Image,
    Json,
    Part,
    Refused,
    Result,
    Text,
    Thought,
    Tool,
    Turn,
)

NAME = CHAT
_SAME = (
    *("max_tokens", "temperature", "top_p", "top_k", "seed", "n", "logprobs", "top_logprobs"),
    *("presence_penalty", "frequency_penalty", "user", "service_tier", "stop"),
)
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_FINISH = {
    "stop": "end",
    "length": "length",
    "tool_calls": "calls",
    "content_filter": "refusal",
}
_MARK = {"cache_control": {"type": "ephemeral"}}


def body_of(conversation: Conversation, model: str) -> Json:
    """Return the body that asks a model."""
    body: Json = {"model": model, "messages": []}
    for turn in conversation.turns:
        body["messages"] += _messages(turn)
    if conversation.tools:
        body["tools"] = [_tool(tool) for tool in conversation.tools]
    if choice := conversation.choice:
        named = {"type": "function", "function": {"name": choice}}
        body["tool_choice"] = _CHOICES.get(choice, named)
    for name, value in conversation.options.items():
        body |= _option(name, value)
    return body | conversation.own.get(CHAT, {})


def _option(name: str, value: Any) -> Json:
    match name:
        case "effort":
            return {"reasoning_effort": value}
        case "no_thinking":
            return {"reasoning_effort": "none"}
        case "parallel":
            return {"parallel_tool_calls": value}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case "schema":
            form = {"name": "answer", "schema": value}
            return {"response_format": {"type": "json_schema", "json_schema": form}}
    assert name in _SAME, name
    return {name: value}


def _tool(tool: Tool) -> Json:
    function: Json = {"name": tool.name, "parameters": tool.schema}
    if tool.description:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function, **(_MARK if tool.marked else {})}


def _messages(turn: Turn) -> list[Json]:
    results = [_result(part) for part in turn.parts if isinstance(part, Result)]
    message: Json = {"role": turn.role}
    parts: list[Json] = []
    for part in turn.parts:
        match part:
            case Result():
                continue
            case Thought(text):
                message["reasoning_content"] = text
            case Refused(text):
                message["refusal"] = text
            case Call():
                message.setdefault("tool_calls", []).append(_call(part))
            case _:
                parts.append(_part(part))
    if turn.name:
        message["name"] = turn.name
    plain = len(parts) == 1 and parts[0].keys() == {"type", "text"}
    message["content"] = parts[0]["text"] if plain else parts or None
    says_nothing = message["content"] is None and len(message) == 2
    return results if results and says_nothing else [*results, {**message, **turn.own}]


def _call(call: Call) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _result(result: Result) -> Json:
    parts = [_part(part) for part in result.parts]
    plain = len(parts) == 1 and parts[0]["type"] == "text"
    content: Any = parts[0]["text"] if plain else parts or ""
    return {"role": "tool", "tool_call_id": result.id, "content": content}


def _part(part: Part) -> Json:
    match part:
        case Text(text, marked):
            return {"type": "text", "text": text, **(_MARK if marked else {})}
        case Image(data, mime_type, detail):
            options = {"detail": detail} if detail else {}
            image = {"url": data_url(data, mime_type), **options}
            return {"type": "image_url", "image_url": image}
        case Document(data, mime_type, name):
            file = {"filename": name, "file_data": data_url(data, mime_type)}
            return {"type": "file", "file": file}
        case Audio(data):
            audio = {"data": base64_of(data), "format": "wav"}
            return {"type": "input_audio", "input_audio": audio}
    raise AssertionError(f"a chat has no word for {part}")


async def ask(
    target: MatrixGateway, body: Json, stream: bool
) -> tuple[Answer | Failure, list[str]]:
    """Ask; return what came and the fields that were dropped."""
    if stream:
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
    url = f"{target.gateway.url}/beta/v1/chat/completions"
    async with target.gateway.http.post(
        url, json=body, headers=target.gateway.bearer()
    ) as response:
        data = await response.read()
    if response.status != 200:
        error = orjson.loads(data)["error"]
        return Failure(response.status, error["param"] or "", error["message"]), []
    dropped = dropped_of(response)
    return (_streamed(data) if stream else _whole(orjson.loads(data))), dropped


def _whole(completion: Json) -> Answer:
    choice = completion["choices"][0]
    return _answer(choice["message"], choice["finish_reason"], completion["usage"])


def _streamed(data: bytes) -> Answer:
    """Return an answer put together as the dialect's reference says."""
    message: Json = {"role": "assistant", "content": None}
    finish, usage = "", {}
    assert data.endswith(b"data: [DONE]\n\n")
    for chunk in events_of(data):
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            assert not finish or choice["index"], "a delta after the end"
            if choice["index"] == 0:
                _add(message, choice["delta"])
                finish = choice["finish_reason"] or finish
    for call in message.get("tool_calls", ()):
        del call["index"]
    return _answer(message, finish, usage)


def _add(message: Json, delta: Json) -> None:
    for name, value in delta.items():
        if name == "tool_calls":
            calls = message.setdefault("tool_calls", [])
            for piece in value:
                if piece["index"] == len(calls):
                    calls.append(piece)
                else:
                    called = calls[piece["index"]]
                    called["function"]["arguments"] += piece["function"].get("arguments", "")
                    others = piece.keys() - {"index", "id", "type", "function"}
                    called |= {other: piece[other] for other in others}
        elif isinstance(value, str) and name != "role":
            message[name] = (message.get(name) or "") + value
        elif name == "reasoning_details":
            for piece in value:
                _add_detail(message.setdefault(name, []), piece)
        elif isinstance(value, list):
            message[name] = message.get(name, []) + value
        elif value is not None:
            message[name] = value


def _add_detail(details: list[Json], piece: Json) -> None:
    """Add a piece to the detail of its index and type."""
    for detail in details:
        if detail["index"] == piece["index"] and detail["type"] == piece["type"]:
            for name, value in piece.items():
                is_text = name in ("text", "summary", "data", "signature")
                detail[name] = (detail.get(name) or "") + value if is_text else value
            return
    details.append({**piece})


def _answer(message: Json, finish: str, usage: Mapping[str, Any]) -> Answer:
    refusal = message.get("refusal") or ""
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls") or ()]
    content = message["content"] or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    return Answer(
        text=content,
        refusal=refusal,
        thoughts=message.get("reasoning_content") or "",
        calls=tuple(
            Called(id, function["name"], arguments_of(function["arguments"]))
            for id, function in calls
        ),
        finish="refusal" if refusal else _FINISH[finish],
        stop_sequence="",
        usage=(usage["prompt_tokens"], usage["completion_tokens"]),
        message=message,
    )


def go_on(body: Json, answer: Answer, turn: Turn | None) -> Json:
    """Return the body of the next request, with the answer and what is said to it."""
    messages = _messages(turn) if turn else []
    return {**body, "messages": [*body["messages"], answer.message, *messages]}


def for_model(body: Json, model: str) -> Json:
    """Return a body that asks another model."""
    return {**body, "model": model}

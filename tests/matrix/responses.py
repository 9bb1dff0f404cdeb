"""The responses endpoint: conversations as its bodies, and its answers in words of no dialect."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson

from tests.matrix.json_bodies import arguments_of, base64_of, data_url, dropped_of, events_of
from tests.matrix.upstreams import MatrixGateway
from tests.matrix.words import (
    RESPONSES,
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

NAME = RESPONSES
_SAME = ("temperature", "top_p", "top_logprobs", "user", "service_tier")
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_LACKING = {
    "stop": "there are no stop strings",
    "n": "there is one answer",
    "top_k": "there is no top_k",
    "seed": "there is no seed, and there are no penalties",
    "budget": "thinking has an effort, and no budget",
}
_LEAST_TOKENS = 16  # OpenAI's own server takes no smaller limit
_ENDS = ("response.completed", "response.incomplete")


def lacks(conversation: Conversation) -> str:
    """Return why a conversation cannot be written as a response request, or ""."""
    options, turns = conversation.options, conversation.turns
    if missing := options.keys() & _LACKING.keys():
        return "; ".join(_LACKING[name] for name in sorted(missing))
    if options.get("max_tokens", _LEAST_TOKENS) < _LEAST_TOKENS:
        return f"max_output_tokens is at least {_LEAST_TOKENS}"
    if any(turn.own for turn in turns):
        # A native provider refuses them, but not where a chat has taught the gateway that.
        return "unknown fields of messages are refused or left out, by what ran before"
    if any(turn.name for turn in turns):
        return "participants have no names"
    parts = [part for turn in turns for part in turn.parts]
    marked = any(isinstance(part, Text) and part.marked for part in parts)
    if marked or any(tool.marked for tool in conversation.tools):
        return "nothing is marked for the cache"
    if any(isinstance(part, Thought) and part.signature for part in parts):
        return "proofs of thoughts are the gateway's own, or of a provider of this dialect"
    return ""


def body_of(conversation: Conversation, model: str) -> Json:
    """Return the body that asks a model, which keeps nothing."""
    body: Json = {"model": model, "store": False, "input": []}
    turns = list(conversation.turns)
    first = turns[0]
    if first.role == "system" and len(first.parts) == 1 and len(turns) > 1:
        body["instructions"] = first.parts[0].text
        del turns[0]
    for turn in turns:
        body["input"] += _items(turn)
    if conversation.tools:
        body["tools"] = [_tool(tool) for tool in conversation.tools]
    if choice := conversation.choice:
        body["tool_choice"] = _CHOICES.get(choice, {"type": "function", "name": choice})
    for name, value in conversation.options.items():
        body |= _option(name, value)
    return body | conversation.own.get(RESPONSES, {})


def _option(name: str, value: Any) -> Json:
    match name:
        case "max_tokens":
            return {"max_output_tokens": value}
        case "effort":
            return {"reasoning": {"effort": value, "summary": "auto"}}
        case "no_thinking":
            return {"reasoning": {"effort": "none"}}
        case "parallel":
            return {"parallel_tool_calls": value}
        case "logprobs":
            return {"include": ["message.output_text.logprobs"]}
        case "json_object":
            return {"text": {"format": {"type": "json_object"}}}
        case "schema":
            form = {"type": "json_schema", "name": "answer", "schema": value}
            return {"text": {"format": form}}
    assert name in _SAME, name
    return {name: value}


def _tool(tool: Tool) -> Json:
    body: Json = {"type": "function", "name": tool.name, "parameters": tool.schema}
    if tool.description:
        body["description"] = tool.description
    if tool.strict is not None:
        body["strict"] = tool.strict
    return body


def _items(turn: Turn) -> Iterator[Json]:
    """Return the items of a turn: what is said between calls and thoughts is one message."""
    for is_item, run in groupby(turn.parts, lambda part: isinstance(part, Thought | Call | Result)):
        if is_item:
            yield from map(_item, run)
        else:
            yield _message(turn, list(run))


def _message(turn: Turn, parts: Sequence[Part]) -> Json:
    content: Any = [_part(part, turn.role) for part in parts]
    if len(parts) == 1 and isinstance(parts[0], Text):
        content = parts[0].text
    return {"type": "message", "role": turn.role, "content": content, **turn.own}


def _item(part: Part) -> Json:
    match part:
        case Thought(text):
            return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}
        case Call(id, name, arguments):
            call = {"type": "function_call", "call_id": id, "name": name}
            return {**call, "arguments": arguments}
        case Result(id, parts):
            output: Any = [_part(inner, "user") for inner in parts]
            if not parts or (len(parts) == 1 and isinstance(parts[0], Text)):
                output = "".join(inner.text for inner in parts if isinstance(inner, Text))
            return {"type": "function_call_output", "call_id": id, "output": output}
    raise AssertionError(f"{part} is no item")


def _part(part: Part, role: str) -> Json:
    match part:
        case Text(text):
            if role == "assistant":
                return {"type": "output_text", "text": text, "annotations": []}
            return {"type": "input_text", "text": text}
        case Refused(text):
            return {"type": "refusal", "refusal": text}
        case Image(data, mime_type, detail):
            options = {"detail": detail} if detail else {}
            return {"type": "input_image", "image_url": data_url(data, mime_type), **options}
        case Document(data, mime_type, name):
            file = {"filename": name, "file_data": data_url(data, mime_type)}
            return {"type": "input_file", **file}
        case Audio(data):
            audio = {"data": base64_of(data), "format": "wav"}
            return {"type": "input_audio", "input_audio": audio}
    raise AssertionError(f"a response has no word for {part}")


async def ask(
    target: MatrixGateway, body: Json, stream: bool
) -> tuple[Answer | Failure, list[str]]:
    """Ask; return what came and the fields that were dropped."""
    if stream:
        body = {**body, "stream": True}
    url = f"{target.gateway.url}/beta/v1/responses"
    async with target.gateway.http.post(
        url, json=body, headers=target.gateway.bearer()
    ) as response:
        data = await response.read()
    if response.status != 200:
        error = orjson.loads(data)["error"]
        return Failure(response.status, error["param"] or "", error["message"]), []
    whole = _put_together(data) if stream else orjson.loads(data)
    return _answer(whole), dropped_of(response)


def _put_together(data: bytes) -> Json:
    """Return a streamed response, of whose output every part has come by deltas."""
    events = events_of(data)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    items: list[Json] = []
    for event in events:
        kind = event["type"].removeprefix("response.")
        match event:
            case {"output_index": index, "item": item} if kind == "output_item.added":
                assert index == len(items)
                items.append(item)
            case {"output_index": index, "item": item} if kind == "output_item.done":
                assert _said(items[index]) == _said(item), "the deltas of an item say otherwise"
                items[index] = item
            case {"output_index": index}:
                _add(items[index], kind, event)
    final = events[-1]
    assert final["type"] in _ENDS, final["type"]
    response: Json = final["response"]
    assert response["output"] == items
    return response


def _add(item: Json, kind: str, event: Json) -> None:
    """Add what an event tells of an item that is open."""
    match kind:
        case "content_part.added":
            assert event["content_index"] == len(item["content"])
            item["content"].append(event["part"])
        case "reasoning_summary_part.added":
            assert event["summary_index"] == len(item["summary"])
            item["summary"].append(event["part"])
        case "output_text.delta":
            item["content"][event["content_index"]]["text"] += event["delta"]
        case "refusal.delta":
            item["content"][event["content_index"]]["refusal"] += event["delta"]
        case "reasoning_summary_text.delta":
            item["summary"][event["summary_index"]]["text"] += event["delta"]
        case "function_call_arguments.delta":
            item["arguments"] += event["delta"]


def _said(item: Json) -> Any:
    """Return what deltas tell of an item."""
    content = [part.get("text", part.get("refusal")) for part in item.get("content") or ()]
    summary = [part["text"] for part in item.get("summary") or ()]
    return content, summary, item.get("arguments"), item.get("call_id"), item.get("name")


def _answer(response: Mapping[str, Any]) -> Answer:
    output = response["output"]
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    text, refusal = (
        "".join(part[field] for part in parts if part["type"] == kind)
        for kind, field in (("output_text", "text"), ("refusal", "refusal"))
    )
    thoughts = [
        part["text"] for item in output if item["type"] == "reasoning" for part in item["summary"]
    ]
    calls = tuple(
        Called(item["call_id"], item["name"], arguments_of(item["arguments"]))
        for item in output
        if item["type"] == "function_call"
    )
    finish = _finish(response, has_calls=bool(calls), refuses=bool(refusal))
    if finish == "refusal" and not refusal:
        text, refusal = "", text
    return Answer(
        text=text,
        refusal=refusal,
        thoughts="".join(thoughts),
        calls=calls,
        finish=finish,
        stop_sequence="",
        usage=(response["usage"]["input_tokens"], response["usage"]["output_tokens"]),
        message=output,
    )


def _finish(response: Mapping[str, Any], *, has_calls: bool, refuses: bool) -> str:
    if details := response["incomplete_details"]:
        assert response["status"] == "incomplete"
        return "length" if details["reason"] == "max_output_tokens" else "refusal"
    assert response["status"] == "completed"
    if refuses:
        return "refusal"
    return "calls" if has_calls else "end"


def go_on(body: Json, answer: Answer, turn: Turn | None) -> Json:
    """Return the body of the next request, with the answer and what is said to it."""
    items = _items(turn) if turn else ()
    return {**body, "input": [*body["input"], *answer.message, *items]}


def for_model(body: Json, model: str) -> Json:
    """Return a body that asks another model."""
    return {**body, "model": model}

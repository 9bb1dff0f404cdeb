"""Google's endpoint: conversations as its bodies, and its answers in words of no dialect."""

from typing import Any

import orjson

from tests.matrix.json_bodies import arguments_of, base64_of, dropped_of, events_of
from tests.matrix.upstreams import MatrixGateway
from tests.matrix.words import (
    GOOGLE,
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

NAME = GOOGLE
_ROLES = {"user": "user", "assistant": "model"}
_SYSTEM = "system"
_MODES = {"auto": "AUTO", "any": "ANY", "none": "NONE"}
_CONFIG = {
    "max_tokens": "maxOutputTokens",
    "stop": "stopSequences",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_THINKING = ("effort", "budget", "no_thinking")
_FORMATS = ("schema", "json_object")
_FILTERED = ("SAFETY", "PROHIBITED_CONTENT")


def lacks(conversation: Conversation) -> str:
    """Return why a conversation is not asked here, or ""."""
    options, turns = conversation.options, conversation.turns
    if conversation.refusals or conversation.own:
        return "its refusals and fields are those of other endpoints"
    if options.keys() - {*_CONFIG, *_THINKING, *_FORMATS}:
        return "there is no such option"
    if turns[0].role != _SYSTEM and any(turn.role == _SYSTEM for turn in turns):
        return "a system prompt is at the beginning"
    if any(turn.role == _SYSTEM for turn in turns[1:]) or len(turns) == 1 == len(_systems(turns)):
        return "a system prompt is at the beginning, and not alone"
    if any(turn.role not in (*_ROLES, _SYSTEM) or turn.name or turn.own for turn in turns):
        return "participants have two roles, no names and no other fields"
    parts = [part for turn in turns for part in turn.parts]
    marked = any(isinstance(part, Text) and part.marked for part in parts)
    if marked or any(tool.marked or tool.strict is not None for tool in conversation.tools):
        return "nothing is marked for the cache, and no schema is strict"
    if any(isinstance(part, Thought | Refused | Audio | Document) for part in parts):
        return "thoughts are those of this endpoint; media are passed to Google as they are"
    if any(isinstance(part, Image) and part.detail for part in parts):
        return "pictures have no detail"
    if any(isinstance(part, Call) and not _is_object(part.arguments) for part in parts):
        return "the arguments of a call are an object"
    if any(isinstance(part, Result) and not _is_text(part) for part in parts):
        return "a result is an object, which is never empty; its pictures are beside it"
    return ""


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        return False


def _is_text(result: Result) -> bool:
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return len(texts) == len(result.parts) and any(texts)


def _systems(turns: Any) -> list[Turn]:
    return [turn for turn in turns if turn.role == _SYSTEM]


def body_of(conversation: Conversation, model: str) -> Json:
    """Return the body; the model is in the path, and is taken out of it by `ask`."""
    body: Json = {"model": model, "contents": []}
    names: dict[str, str] = {}
    for turn in conversation.turns:
        parts = [_part(part, names) for part in turn.parts]
        if turn.role == _SYSTEM:
            body["systemInstruction"] = {"parts": parts}
        else:
            body["contents"].append({"role": _ROLES[turn.role], "parts": parts})
    if conversation.tools:
        body["tools"] = [{"functionDeclarations": [_tool(one) for one in conversation.tools]}]
    if choice := conversation.choice:
        named = {"mode": "ANY", "allowedFunctionNames": [choice]}
        config = {"mode": _MODES[choice]} if choice in _MODES else named
        body["toolConfig"] = {"functionCallingConfig": config}
    config = {}
    for name, value in conversation.options.items():
        config |= _option(name, value)
    return body | ({"generationConfig": config} if config else {})


def _option(name: str, value: Any) -> Json:
    match name:
        case "effort":
            level = value.upper() if value != "max" else "HIGH"
            return {"thinkingConfig": {"thinkingLevel": level, "includeThoughts": True}}
        case "budget":
            return {"thinkingConfig": {"thinkingBudget": value, "includeThoughts": True}}
        case "no_thinking":
            return {"thinkingConfig": {"thinkingBudget": 0}}
        case "schema":
            return {"responseMimeType": "application/json", "responseJsonSchema": value}
        case "json_object":
            return {"responseMimeType": "application/json"}
    return {_CONFIG[name]: value}


def _tool(tool: Tool) -> Json:
    function: Json = {"name": tool.name, "parametersJsonSchema": tool.schema}
    return {**function, **({"description": tool.description} if tool.description else {})}


def _part(part: Part, names: dict[str, str]) -> Json:
    match part:
        case Text(text):
            return {"text": text}
        case Image(data, mime_type):
            return {"inlineData": {"mimeType": mime_type, "data": base64_of(data)}}
        case Call(id, name, arguments):
            names[id] = name
            return {"functionCall": {"id": id, "name": name, "args": orjson.loads(arguments)}}
        case Result(id, parts, is_error):
            texts = [inner.text for inner in parts if isinstance(inner, Text)]
            fields = {"error" if is_error else "output": "\n".join(texts)}
            response: Json = {"id": id, "name": names.get(id, "unknown"), "response": fields}
            return {"functionResponse": response}
    raise AssertionError(f"this endpoint has no word for {part}")


async def ask(
    target: MatrixGateway, body: Json, stream: bool
) -> tuple[Answer | Failure, list[str]]:
    """Ask; return what came and the fields that were dropped."""
    sent = {name: value for name, value in body.items() if name != "model"}
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    url = f"{target.gateway.url}/v1beta/models/{body['model']}:{method}"
    headers = {"x-goog-api-key": target.gateway.key}
    async with target.gateway.http.post(url, json=sent, headers=headers) as response:
        data = await response.read()
    if response.status != 200:
        error = orjson.loads(data)["error"]
        words = error["message"]
        return Failure(response.status, words.partition(": ")[0], words), []
    chunks = events_of(data) if stream else [orjson.loads(data)]
    return _answer(chunks), dropped_of(response)


def _answer(chunks: list[Json]) -> Answer:
    candidates = [one for chunk in chunks for one in chunk.get("candidates") or ()]
    parts = [part for one in candidates for part in (one.get("content") or {}).get("parts") or ()]
    # An answer without a text has an empty one in its place.
    parts = _joined([part for part in parts if part != {"text": ""}])
    reason = next(one["finishReason"] for one in reversed(candidates) if one.get("finishReason"))
    usage = chunks[-1]["usageMetadata"]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    says = [part["text"] for part in parts if "text" in part and not part.get("thought")]
    thoughts = [part["text"] for part in parts if part.get("thought")]
    refuses = reason in _FILTERED
    text = "".join(says)
    finish = {"STOP": "calls" if calls else "end", "MAX_TOKENS": "length"}.get(reason, "refusal")
    return Answer(
        text="" if refuses else text,
        refusal=text if refuses else "",
        thoughts="".join(thoughts),
        calls=tuple(
            Called(
                one.get("id", ""),
                one["name"],
                arguments_of(orjson.dumps(one.get("args") or {}).decode()),
            )
            for one in calls
        ),
        finish=finish,
        stop_sequence="",
        usage=(
            usage["promptTokenCount"],
            usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0),
        ),
        message={"role": "model", "parts": parts},
    )


def _joined(parts: list[Json]) -> list[Json]:
    """Return the parts of an answer with the pieces of each thought in one part."""
    joined: list[Json] = []
    for part in parts:
        last = joined[-1] if joined else {}
        if part.keys() == last.keys() == {"text", "thought"}:
            last["text"] += part["text"]
        else:
            joined.append({**part})
    return joined


def go_on(body: Json, answer: Answer, turn: Turn | None) -> Json:
    """Return the body of the next request, with the answer and what is said to it."""
    contents = [*body["contents"], answer.message]
    if turn:
        names = {call.id: call.name for call in answer.calls}
        contents.append({"role": "user", "parts": [_part(part, names) for part in turn.parts]})
    return {**body, "contents": contents}

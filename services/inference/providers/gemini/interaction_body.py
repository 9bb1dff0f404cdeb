"""The body of an interaction for a body of `generateContent`. Pure.

Some of Google's models are in its Interactions API alone. Their requests are those of
`generateContent` in another form, so that all that is said of requests there holds for both.
Nothing is stored at Google.

Source: ai.google.dev/gemini-api/docs/interactions, and the types of google-genai.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from services.common.errors import unsupported
from services.common.text.google_schemas import json_schema
from services.inference.providers.base import Call
from services.inference.providers.gemini.signatures import NOT_SIGNED
from services.inference.providers.opaque_json import Json, write_body

STEP: Final = "interactionStep"  # a part that keeps a step without a counterpart
_SIGNATURE: Final = "thoughtSignature"
_UPPER: Final = re.compile(r"(?<!^)(?=[A-Z])")
_SAME: Final = {
    "temperature": "temperature",
    "topP": "top_p",
    "seed": "seed",
    "maxOutputTokens": "max_output_tokens",
    "stopSequences": "stop_sequences",
}
# Fields of `generationConfig` that interactions lack, with the canonical ones that they are of.
_LACKING: Final = {
    "topK": "top_k",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
# Those without which an answer would be another.
_NEEDED: Final = {"candidateCount": "n", "responseLogprobs": "logprobs"}
_FORMATS: Final = frozenset({"responseMimeType", "responseSchema", "responseJsonSchema"})
_JSON: Final = "application/json"
_EMPTY: Final = frozenset({"text", "thought", _SIGNATURE})  # of a part without content
_MEDIA: Final = ("image", "audio", "video")


def interaction_body(body: bytes, call: Call, *, is_streamed: bool) -> bytes:
    """Return the body of an interaction.

    Args:
        body: a body of `generateContent`.
        call: the call; only `call.dropped` is modified.
        is_streamed: whether the answer is streamed.

    Raises:
        GatewayError: unsupported, for an option that interactions lack.
    """
    given: Json = orjson.loads(body)
    made: Json = {"model": call.target.upstream.removeprefix("models/"), "store": False}
    if is_streamed:
        made["stream"] = True
    made["input"] = [step for one in given.get("contents") or () for step in _steps(one, call)]
    texts = [part.get("text", "") for part in _parts(given.get("systemInstruction"))]
    if texts:
        made["system_instruction"] = "\n\n".join(texts)
    if tools := [one for tool in given.get("tools") or () for one in _tools(tool)]:
        made["tools"] = tools
    config = _config(given.get("generationConfig") or {}, made, call)
    if choice := (given.get("toolConfig") or {}).get("functionCallingConfig"):
        config["tool_choice"] = _choice(choice)
    if config:
        made["generation_config"] = config
    if settings := given.get("safetySettings"):
        made["safety_settings"] = [*map(_safety_setting, settings)]
    if cache := given.get("cachedContent"):
        made["cached_content"] = cache
    if labels := given.get("labels"):
        made["labels"] = labels
    return write_body(made)


def _parts(content: Mapping[str, Any] | None) -> list[Json]:
    return (content or {}).get("parts") or []


def _steps(content: Json, call: Call) -> Iterator[Json]:
    """Yield the steps of a content: its texts and media are one, up to the next step."""
    kind = "model_output" if content.get("role") == "model" else "user_input"
    contents: list[Json] = []
    is_signed = False
    for part in _parts(content):
        others = [*_signed(part, is_signed=is_signed), *_step(part)]
        is_signed = is_signed or any("signature" in one for one in others)
        if others and contents:
            yield {"type": kind, "content": contents}
            contents = []
        yield from others
        if (made := _content(part)) is not None:
            contents.append(made)
        elif not others and part.keys() - _EMPTY:
            call.drop("messages[].blocks[].opaque")
    if contents:
        yield {"type": kind, "content": contents}


def _signed(part: Json, *, is_signed: bool) -> Iterator[Json]:
    """Yield the thought of a part: it has the signature that the part carries.

    Args:
        part: the part.
        is_signed: whether the content has a signature before, and needs no placeholder.
    """
    signature = part.get(_SIGNATURE)
    if is_signed and signature == NOT_SIGNED:
        signature = None
    is_thought = bool(part.get("thought"))
    if not (signature or is_thought):
        return
    summary = [{"type": "text", "text": part["text"]}] if is_thought and part.get("text") else []
    yield {
        "type": "thought",
        **({"summary": summary} if summary else {}),
        **({"signature": signature} if signature else {}),
    }


def _step(part: Json) -> Iterator[Json]:
    """Yield the step of a part that is one: a call or a result of a function, or of a program."""
    if call := _object(part, "functionCall"):
        name = call.get("name")
        made = {"type": "function_call", "id": call.get("id") or name, "name": name}
        yield {**made, "arguments": call.get("args") or {}}
    elif result := _object(part, "functionResponse"):
        yield _function_result(result)
    elif program := _object(part, "executableCode"):
        arguments = {"language": "python", "code": program.get("code") or ""}
        call_id = program.get("id") or ""
        yield {"type": "code_execution_call", "id": call_id, "arguments": arguments}
    elif output := _object(part, "codeExecutionResult"):
        yield {
            "type": "code_execution_result",
            "call_id": output.get("id") or "",
            "result": output.get("output") or "",
            "is_error": output.get("outcome") != "OUTCOME_OK",
        }
    elif step := _object(part, STEP):
        yield step


def _function_result(result: Json) -> Json:
    name, response = result.get("name"), result.get("response") or {}
    made: Json = {"type": "function_result", "name": name, "call_id": result.get("id") or name}
    if "error" in response and "output" not in response:
        made["is_error"] = True
    media = [one for part in result.get("parts") or () if (one := _content(part))]
    if not media:
        return {**made, "result": response}
    text = {"type": "text", "text": orjson.dumps(response).decode()}
    return {**made, "result": [text, *media]}


def _object(part: Json, name: str) -> Json:
    """Return the object in a field of a part; {} for any other value."""
    value = part.get(name)
    return value if isinstance(value, dict) else {}


def _content(part: Json) -> Json | None:
    """Return the content of a part: its text or its medium; None for any other part."""
    if text := part.get("text"):
        return None if part.get("thought") else {"type": "text", "text": text}
    if blob := _object(part, "inlineData"):
        mime = str(blob.get("mimeType") or "")
        return {"type": _kind(mime), "mime_type": mime, "data": blob.get("data")}
    if file := _object(part, "fileData"):
        mime = str(file.get("mimeType") or "")
        named = {"mime_type": mime} if mime else {}
        return {"type": _kind(mime), **named, "uri": file.get("fileUri")}
    return None


def _kind(mime: str) -> str:
    kind = mime.partition("/")[0]
    return kind if kind in _MEDIA else "document"


def _tools(tool: Json) -> Iterator[Json]:
    for name, fields in tool.items():
        if name == "functionDeclarations":
            yield from map(_function, fields or ())
        else:
            yield {
                "type": _snake(name),
                **{_snake(key): one for key, one in (fields or {}).items()},
            }


def _function(declared: Json) -> Json:
    others = {
        name: one
        for name, one in declared.items()
        if name not in ("parameters", "parametersJsonSchema")
    }
    schema = declared.get("parametersJsonSchema")
    if not schema and (parameters := declared.get("parameters")):
        schema = json_schema(parameters)
    return {"type": "function", **others, **({"parameters": schema} if schema else {})}


def _config(given: Json, made: Json, call: Call) -> Json:
    """Return `generation_config`; formats and modalities are fields of the body itself."""
    config: Json = {}
    for name, value in given.items():
        if name in _SAME:
            config[_SAME[name]] = value
        elif name == "thinkingConfig":
            config |= _thinking(value or {}, call)
        elif name == "responseModalities":
            made["response_modalities"] = [one.lower() for one in value or ()]
        elif name in _LACKING:
            call.drop(_LACKING[name])
        elif name in _NEEDED and value not in (1, False):
            raise unsupported(_NEEDED[name], f"{_NEEDED[name]}: Google's interactions lack it")
        elif name not in (*_FORMATS, *_NEEDED, "logprobs"):
            config[_snake(name)] = _snaked(value)
    schema = given.get("responseJsonSchema") or given.get("responseSchema")
    mime = given.get("responseMimeType")
    if schema or mime == _JSON:
        form: Json = {"type": "text", "mime_type": mime or _JSON}
        made["response_format"] = {**form, **({"schema": schema} if schema else {})}
    return config


def _thinking(given: Json, call: Call) -> Json:
    config: Json = {}
    if level := given.get("thinkingLevel"):
        config["thinking_level"] = str(level).lower()
    elif "thinkingBudget" in given:
        call.drop("thinking.budget_tokens")
    if given.get("includeThoughts"):
        config["thinking_summaries"] = "auto"
    return config


def _choice(choice: Json) -> str | Json:
    mode = str(choice.get("mode") or "AUTO").lower()
    names = choice.get("allowedFunctionNames")
    return {"allowed_tools": {"mode": mode, "tools": names}} if names else mode


def _safety_setting(setting: Json) -> Json:
    category = str(setting.get("category") or "").removeprefix("HARM_CATEGORY_")
    return {"type": category.lower(), "threshold": str(setting.get("threshold") or "").lower()}


def _snake(name: str) -> str:
    return _UPPER.sub("_", name).lower()


def _snaked(value: Any) -> Any:
    """Return a value with the names of its fields in `snake_case`."""
    if isinstance(value, dict):
        return {_snake(name): _snaked(one) for name, one in value.items()}
    return [_snaked(one) for one in value] if isinstance(value, list) else value

"""Servers that refuse what they do not know, each in its own words.

Source: the servers' error messages as reported by their users.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from tests.upstream.personalities.base import (
    COMMON,
    Body,
    Personality,
    RefusedError,
    objects,
    refused,
)

Step = str | int
# Returns the error for a field at a path of the body.
Refuse = Callable[[list[Step], Any], RefusedError]

_OF_MESSAGES = frozenset(
    {"role", "content", "name", "refusal", "tool_calls", "tool_call_id", "reasoning_content"}
)
_OF_PARTS = frozenset({"type", "text", "image_url", "input_audio", "file"})
_OF_FUNCTIONS = frozenset({"name", "description", "parameters"})
_KEYWORDS = frozenset({"pattern", "minLength", "maxLength", "propertyNames"})
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_MOST_DESCRIPTION = 1_024
_MOST_ID = 64
_CONTEXT = 8_192


def _unknown(body: Body, fields: Collection[str]) -> Iterator[tuple[list[Step], Any]]:
    """Yield the fields of a chat that a strict server does not know, with their paths."""
    for name, value in body.items():
        if name not in fields:
            yield [name], value
    for index, message in objects(body.get("messages")):
        for name in message.keys() - _OF_MESSAGES:
            yield ["messages", index, name], message[name]
        for place, part in objects(message.get("content")):
            for name in part.keys() - _OF_PARTS:
                yield ["messages", index, "content", place, name], part[name]
    for index, tool in objects(body.get("tools")):
        for name in tool.keys() - {"type", "function"}:
            yield ["tools", index, name], tool[name]
        function = tool.get("function")
        if isinstance(function, dict):
            for name in function.keys() - _OF_FUNCTIONS:
                yield ["tools", index, "function", name], function[name]


def _strict(refuse: Refuse, fields: Collection[str] = COMMON) -> Callable[[Body], Body]:
    def convert(body: Body) -> Body:
        for path, value in _unknown(body, fields):
            raise refuse(path, value)
        return body

    return convert


def _with_brackets(path: list[Step]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _with_dots(path: list[Step]) -> str:
    return ".".join(map(str, path))


def _fireworks(path: list[Step], value: Any) -> RefusedError:
    where = _with_brackets(path)
    return refused(f"Extra inputs are not permitted, field: '{where}', value: {value!r}")


def _openai(path: list[Step], value: Any) -> RefusedError:
    where = _with_brackets(path)
    return refused(f"Unknown parameter: '{where}'.", where, "unknown_parameter")


def _groq(path: list[Step], value: Any) -> RefusedError:
    *place, name = path
    words = f"property '{name}' is unsupported"
    if place:
        where = _with_dots(place)
        words = (
            f"'{where}' : for 'role:user' the following must be satisfied[('{where}' : {words})]"
        )
    return refused(words)


def _nvidia(path: list[Step], value: Any) -> RefusedError:
    words = f"Validation: Unsupported parameter(s): `{_with_brackets(path)}`"
    error = {"message": words, "type": "Bad Request", "code": 400}
    return RefusedError(400, words, {"error": error})


def _rust(path: list[Step], value: Any) -> RefusedError:
    *place, name = path
    where = f"{_with_brackets(place)}: " if place else ""
    return refused(
        f"Failed to deserialize the JSON body into the target type: {where}unknown field "
        f"`{name}`, expected one of `role`, `content` at line 1 column 99"
    )


def _vllm(path: list[Step], value: Any) -> RefusedError:
    problem = {"type": "extra_forbidden", "loc": ("body", *path), "input": value}
    words = str([{**problem, "msg": "Extra inputs are not permitted"}])
    error = {"object": "error", "message": words, "type": "BadRequestError", "code": 400}
    return RefusedError(400, words, error)


def _xai(body: Body) -> Body:
    for name, shown in (
        ("presence_penalty", "presencePenalty"),
        ("frequency_penalty", "frequencyPenalty"),
        ("stop", "stop"),
        ("reasoning_effort", "reasoningEffort"),
    ):
        if name in body:
            words = f"Argument not supported on this model: {shown}"
            error = {"code": "Client specified an invalid argument", "error": words}
            raise RefusedError(400, words, error)
    return body


def _anthropic(refuse: Refuse) -> Callable[[Body], Body]:
    """Return a function that refuses newer fields, as older deployments of Claude do."""

    def convert(body: Body) -> Body:
        for path, value in _newer(body):
            raise refuse(path, value)
        return body

    return convert


def _newer(body: Body) -> Iterator[tuple[list[Step], Any]]:
    for index, tool in objects(body.get("tools")):
        for name in tool.keys() & {"strict", "input_examples", "defer_loading"}:
            yield ["tools", index, "custom", name], tool[name]
    if isinstance(output := body.get("output_config"), dict) and "effort" in output:
        yield ["output_config", "effort"], output["effort"]
    yield from _lifetimes(["system"], body.get("system"))
    for index, message in objects(body.get("messages")):
        yield from _lifetimes(["messages", index, "content"], message.get("content"))


def _lifetimes(path: list[Step], blocks: object) -> Iterator[tuple[list[Step], Any]]:
    for index, block in objects(blocks):
        control = block.get("cache_control")
        if not isinstance(control, dict):
            continue
        for name in control.keys() - {"type"}:
            kind = [] if path == ["system"] else [block["type"]]
            yield [*path, index, *kind, "cache_control", "ephemeral", name], control[name]


def _of_claude(path: list[Step], value: Any) -> RefusedError:
    words = f"{_with_dots(path)}: Extra inputs are not permitted"
    error = {"type": "invalid_request_error", "message": words}
    return RefusedError(400, words, {"type": "error", "error": error})


def _bedrock(path: list[Step], value: Any) -> RefusedError:
    *place, name = [step for step in path if step not in ("custom", "ephemeral", "text")]
    words = (
        f"Malformed input request: #/{'/'.join(map(str, place))}: extraneous key [{name}] is not "
        "permitted, please reformat your input and try again."
    )
    return RefusedError(400, words, {"message": words})


def _odd_type(schema: Any) -> str:
    """Return a type of a property that JSON Schema does not have, or ""."""
    for part in (schema or {}).get("properties", {}).values():
        if isinstance(kind := part.get("type"), str) and kind not in _TYPES:
            return kind
    return ""


def _odd_schemas(body: Body) -> Body:
    """Refuse tools whose schemas are none, as Anthropic does."""
    for index, tool in objects(body.get("tools")):
        if _odd_type(tool.get("input_schema")):
            words = (
                f"tools.{index}.custom.input_schema: JSON schema is invalid. It must match JSON "
                "Schema draft 2020-12 (https://json-schema.org/draft/2020-12)."
            )
            error = {"type": "invalid_request_error", "message": words}
            raise RefusedError(400, words, {"type": "error", "error": error})
    return body


def _schema_words(body: Body) -> Body:
    """Refuse keywords in the parameters of functions, as OpenAI's strict mode does."""
    for _, tool in objects(body.get("tools")):
        function = tool.get("function") or {}
        if kind := _odd_type(function.get("parameters")):
            raise refused(
                f"Invalid schema for function '{function['name']}': '{kind}' is not valid under "
                "any of the given schemas.",
                "tools[0].function.parameters",
                "invalid_function_parameters",
            )
        for name, part in (function.get("parameters") or {}).get("properties", {}).items():
            for word in sorted(part.keys() & _KEYWORDS):
                raise refused(
                    f"Invalid schema for function '{function['name']}': In context="
                    f"('properties', '{name}'), '{word}' is not permitted.",
                    "tools[0].function.parameters",
                    "invalid_function_parameters",
                )
    return body


def _lengths(body: Body) -> Body:
    """Refuse long descriptions and ids, as OpenAI does."""
    for index, tool in objects(body.get("tools")):
        text = (tool.get("function") or {}).get("description") or ""
        _check_length(text, f"tools[{index}].function.description", _MOST_DESCRIPTION)
    _check_length(body.get("user") or "", "user", _MOST_ID)
    return body


def _items(body: Body) -> Body:
    """Refuse long ids of items in a request for a response."""
    for index, item in objects(body.get("input")):
        for name in ("call_id", "id"):
            _check_length(item.get(name) or "", f"input[{index}].{name}", _MOST_ID)
    return body


def _check_length(text: str, path: str, bound: int) -> None:
    if len(text) > bound:
        raise refused(
            f"Invalid '{path}': string too long. Expected a string with maximum length {bound}, "
            f"but got a string with length {len(text)} instead.",
            path,
            "string_above_max_length",
        )


def _small_context(body: Body) -> Body:
    """Count `max_tokens` as part of the context, as vLLM does; a word is a token."""
    words = sum(
        len(str(message.get("content")).split()) for _, message in objects(body["messages"])
    )
    asked = body.get("max_tokens") or 0
    if words + asked > _CONTEXT:
        raise refused(
            f"This model's maximum context length is {_CONTEXT} tokens. However, you requested "
            f"{words + asked} tokens ({words} in the messages, {asked} in the completion). Please "
            "reduce the length of the messages or completion."
        )
    return body


def _personality(name: str, convert: Callable[[Body], Body], **fields: Any) -> Personality:
    about = "refuses unknown fields, or what its models do not take, in its own words"
    return Personality(name, about, convert_request=convert, **fields)


REFUSING = (
    _personality("fireworks", _strict(_fireworks)),
    _personality("groq", _strict(_groq)),
    _personality("nvidia", _strict(_nvidia)),
    _personality("openai-old", _strict(_openai)),
    _personality("rust", _strict(_rust)),
    _personality("vllm-strict", _strict(_vllm)),
    _personality("xai", _xai),
    _personality("claude-old", _anthropic(_of_claude), dialect="anthropic"),
    _personality("bedrock", _anthropic(_bedrock), dialect="anthropic"),
    _personality("claude-schemas", _odd_schemas, dialect="anthropic"),
    _personality("schema-words", _schema_words),
    _personality("lengths", _lengths, convert_responses_request=_items),
    _personality("small-context", _small_context),
)

"""Mistral: strict about fields, ids and the order of messages; thinking is a content part.

Source: https://docs.mistral.ai/api, and responses of its servers as reported by users.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from services.sandbox.model.models import SandboxError
from tests.upstream.openai_rules import TOOL_NAME
from tests.upstream.personalities.base import (
    ANY_TOOL_NAME,
    Body,
    Json,
    Personality,
    RefusedError,
    in_choices,
    objects,
    readable,
    tool_names,
)

_READ = frozenset(
    {
        *("model", "messages", "stream", "stop", "max_tokens", "temperature", "top_p", "n"),
        *("presence_penalty", "frequency_penalty", "response_format", "tools", "tool_choice"),
        *("parallel_tool_calls", "reasoning_effort", "metadata", "prediction"),
    }
)
_OWN = frozenset({"random_seed", "safe_prompt", "prompt_mode", "guardrails", "prompt_cache_key"})
_OF_MESSAGES = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "tool_calls", "prefix"}),
    "tool": frozenset({"role", "content", "tool_call_id", "name"}),
}
_OF_CALLS = frozenset({"id", "type", "function", "index"})
_OF_FUNCTIONS = frozenset({"name", "arguments"})
_OF_PARTS = frozenset({"type", "text", "image_url", "input_audio", "file", "thinking", "closed"})
_ID_LENGTH = 9
_ID = re.compile(rf"[a-zA-Z0-9]{{{_ID_LENGTH}}}")
_ORDER = "invalid_request_message_order"


def _convert_request(body: Body) -> Body:
    if unknown := list(_unknown(body)):
        error_object = _error_object({"detail": unknown}, "invalid_request_error", None)
        raise RefusedError(422, "Extra inputs are not permitted", error_object)
    messages = [message for _, message in objects(body.get("messages"))]
    for call_id in _ids(messages):
        if not (isinstance(call_id, str) and _ID.fullmatch(call_id)):
            raise _refused(
                f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9.",
                "invalid_function_call",
                "3280",
            )
    for _, name in tool_names(body):
        if not TOOL_NAME.fullmatch(name):
            raise _refused(
                f"Function name was {name} but must be a-z, A-Z, 0-9, or contain underscores and "
                "dashes, with a maximum length of 64.",
                "invalid_function_call",
                "3280",
            )
    if wrong := _order_problem(messages):
        raise _refused(wrong, _ORDER, "3230")
    converted = readable(body, _READ)
    if converted.get("stream"):
        converted["stream_options"] = {"include_usage": True}  # Mistral always reports usage
    for _, message in objects(converted.get("messages")):
        if message.get("role") == "assistant" and isinstance(message.get("content"), list):
            # The types of OpenAI's SDK have no parts for thinking.
            parts = [part for part in message["content"] if part.get("type") != "thinking"]
            message["content"] = parts or None
    return converted


def _unknown(body: Body) -> Iterator[Json]:
    for name, value in body.items():
        if name not in _READ | _OWN:
            yield _extra(["body", name], value)
    for index, message in objects(body.get("messages")):
        role = str(message.get("role"))
        where: list[str | int] = ["body", "messages", index, role]
        for name in message.keys() - _OF_MESSAGES.get(role, message.keys()):
            yield _extra([*where, name], message[name])
        for place, part in objects(message.get("content")):
            for name in part.keys() - _OF_PARTS:
                path = [*where, "content", place, str(part.get("type")), name]
                yield _extra(path, part[name])
        for place, call in objects(message.get("tool_calls")):
            yield from _unknown_of_call([*where, "tool_calls", place], call)
    for index, tool in objects(body.get("tools")):
        for name in tool.keys() - {"type", "function"}:
            yield _extra(["body", "tools", index, name], tool[name])


def _unknown_of_call(where: list[str | int], call: Json) -> Iterator[Json]:
    for name in call.keys() - _OF_CALLS:
        yield _extra([*where, name], call[name])
    if isinstance(function := call.get("function"), dict):
        for name in function.keys() - _OF_FUNCTIONS:
            yield _extra([*where, "function", name], function[name])


def _extra(where: list[str | int], value: Any) -> Json:
    problem = {"type": "extra_forbidden", "loc": where, "msg": "Extra inputs are not permitted"}
    return {**problem, "input": value}


def _ids(messages: Sequence[Json]) -> Iterator[Any]:
    for message in messages:
        if message.get("role") == "tool":
            yield message.get("tool_call_id")
        for _, call in objects(message.get("tool_calls")):
            yield call.get("id")


def _order_problem(messages: Sequence[Json]) -> str:
    roles = [message.get("role") for message in messages]
    for before, after in pairwise(roles):
        if before == "tool" and after == "user":
            return "Unexpected role 'user' after role 'tool'"
    if roles and roles[-1] == "assistant" and not messages[-1].get("prefix"):
        return (
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got "
            "assistant"
        )
    return ""


def _convert_answer(answer: Json) -> Json:
    return in_choices(answer, _convert_message)


def _convert_message(message: Json) -> Json:
    message = {**message}
    thoughts = message.pop("reasoning_content", None)
    if thoughts:
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thoughts}]}]
        if message.get("content"):
            parts.append({"type": "text", "text": message["content"]})
        message["content"] = parts
    if message.get("tool_calls"):
        message["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    return message


def _call(call: Json) -> Json:
    if "id" not in call:
        return call
    return {**call, "id": call["id"].removeprefix("call_")[:_ID_LENGTH]}


def _refused(message: str, kind: str, code: str) -> RefusedError:
    error = {**_error_object(message, kind, code), "raw_status_code": 400}
    return RefusedError(400, message, error)


def _error_object(message: Any, kind: str, code: str | None) -> Json:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def _failure(error: SandboxError, body: Json) -> Json:
    return _error_object(error.message, body["error"]["type"], None)


MISTRAL = Personality(
    "mistral",
    "ids of tool calls are 9 letters and digits; unknown fields, stream_options among them, are "
    "refused (422), and a user after a tool; thoughts are parts of the content",
    model_aliases={"mistral-medium-latest": "echo", "magistral-medium-latest": "echo"},
    convert_request=_convert_request,
    convert_answer=_convert_answer,
    failure=_failure,
    tool_name=ANY_TOOL_NAME,
)

"""Personalities: differences of a provider from the one whose API it copies."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from services.sandbox.model.models import SandboxError
from tests.upstream.openai_rules import TOOL_NAME

Json = dict[str, Any]
Body = Mapping[str, Any]
Chunks = Callable[[Json], Iterable[Json]]

# Fields of requests of OpenAI's dialect that every server of it supports.
COMMON = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "stop", "max_tokens"),
        *("temperature", "top_p", "frequency_penalty", "presence_penalty"),
        *("tools", "tool_choice", "response_format", "reasoning_effort"),
    }
)
# For servers without a rule for tool names, or with their own error message for it.
ANY_TOOL_NAME = re.compile(r".+", re.DOTALL)
_OF_MESSAGES = frozenset({"role", "content", "name", "refusal", "tool_calls", "tool_call_id"})
_OF_CALLS = frozenset({"id", "type", "function", "custom"})
_OF_PARTS = frozenset({"type", "text", "refusal", "image_url", "input_audio", "file"})
_OF_TOOLS = frozenset({"type", "function", "custom"})


class RefusedError(SandboxError):
    """Error raised with a provider's own error body.

    Attributes:
        body: the response's body.
    """

    def __init__(self, status: int, message: str, body: Any) -> None:
        super().__init__("invalid", status, message)
        self.body = body


def refused(message: str, param: str | None = None, code: str | None = None) -> RefusedError:
    """Return an error in OpenAI's format, with the message unchanged."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return RefusedError(400, message, {"error": error})


def as_it_is(value: Any) -> Any:
    """Return the value unchanged."""
    return value


def _one_by_one() -> Chunks:
    return lambda chunk: (chunk,)


def _own_form(error: SandboxError, body: Json) -> Any:
    return body


@dataclass(frozen=True, slots=True)
class Personality:
    """A provider that has another provider's API with differences.

    Attributes:
        name: the path below which it is emulated, without slashes.
        about: the differences, for people.
        dialect: the API.
        model_aliases: sandbox models by the provider's names for models.
        convert_request: converts a request to the format of the dialect's maker; raises
            `RefusedError` if the provider rejects it. The types in its argument are unchecked.
        convert_responses_request: as `convert_request`, for requests of OpenAI's responses; None if
            the provider lacks that endpoint.
        convert_response: converts a response object to the provider's format.
        opening: bytes that begin a stream.
        chunks: returns, for one stream, a function that converts each chunk to the chunks to send.
        convert_answer: converts a whole answer, or a chunk of a stream, to the provider's format.
        failure: converts an error body to the provider's format.
        tool_name: pattern of tool names that requests of OpenAI's dialect must match.
    """

    name: str
    about: str
    dialect: Literal["openai", "anthropic", "gemini"] = "openai"
    model_aliases: Mapping[str, str] = field(default_factory=dict)
    convert_request: Callable[[Body], Body] = as_it_is
    convert_responses_request: Callable[[Body], Body] | None = None
    convert_response: Callable[[Json], Json] = as_it_is
    opening: bytes = b""
    chunks: Callable[[], Chunks] = _one_by_one
    convert_answer: Callable[[Json], Json] = as_it_is
    failure: Callable[[SandboxError, Json], Any] = _own_form
    tool_name: re.Pattern[str] = TOOL_NAME

    def read(self, body: Body) -> Body:
        """Convert a request to the format of the dialect's maker, with a sandbox model.

        Raises:
            RefusedError: the provider rejects the request.
        """
        return self._named(self.convert_request(body))

    def read_response(self, body: Body) -> Body:
        """Convert a request of OpenAI's responses; see `read`.

        Raises:
            SandboxError: the provider lacks this endpoint, or rejects the request.
        """
        if self.convert_responses_request is None:
            raise SandboxError("not_found", 404, f"There are no responses below /{self.name}")
        return self._named(self.convert_responses_request(body))

    def _named(self, converted: Body) -> Body:
        """Return a request with the sandbox's name for its model."""
        name = converted.get("model")
        if isinstance(name, str) and name in self.model_aliases:
            return {**converted, "model": self.model_aliases[name]}
        return converted

    def failed(self, error: SandboxError, body: Json) -> Any:
        """Convert an error body from the dialect's format to the provider's."""
        return error.body if isinstance(error, RefusedError) else self.failure(error, body)


def tool_names(body: Body) -> Iterator[tuple[int, str]]:
    """Yield the index and name of each function in a request's tools."""
    for index, tool in objects(body.get("tools")):
        function = tool.get("function")
        if isinstance(function, dict) and isinstance(name := function.get("name"), str):
            yield index, name


def objects(values: object) -> Iterator[tuple[int, Json]]:
    """Yield the objects in a list, each with its index; nothing if it is not a list."""
    for index, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, dict):
            yield index, value


def readable(body: Body, fields: frozenset[str]) -> Json:
    """Return the supported part of a request, for a server that ignores unknown fields."""
    kept = {name: value for name, value in body.items() if name in fields and value is not None}
    if isinstance(kept.get("messages"), list):
        kept["messages"] = [_readable_message(message) for message in kept["messages"]]
    if isinstance(kept.get("tools"), list):
        kept["tools"] = [_named(tool, _OF_TOOLS) for tool in kept["tools"]]
    return kept


def _readable_message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    kept = {name: value for name, value in message.items() if name in _OF_MESSAGES}
    if isinstance(kept.get("tool_calls"), list):
        kept["tool_calls"] = [_named(call, _OF_CALLS) for call in kept["tool_calls"]]
    if isinstance(kept.get("content"), list):
        kept["content"] = [_named(part, _OF_PARTS) for part in kept["content"]]
    return kept


def _named(value: Any, fields: frozenset[str]) -> Any:
    """Return an object with only the given fields."""
    if not isinstance(value, dict):
        return value
    return {name: one for name, one in value.items() if name in fields}


def in_choices(answer: Json, change: Callable[[Json], Json]) -> Json:
    """Return an answer or a chunk with each message or delta changed."""
    choices = []
    for choice in answer["choices"]:
        key = "message" if "message" in choice else "delta"
        choices.append({**choice, key: change(choice[key])})
    return {**answer, "choices": choices}


def thoughts_as(field_name: str) -> Callable[[Json], Json]:
    """Return a function that renames the thinking in a message or delta, or removes it if ""."""

    def change(message: Json) -> Json:
        if "reasoning_content" not in message:
            return message
        others = {name: value for name, value in message.items() if name != "reasoning_content"}
        return {**others, field_name: message["reasoning_content"]} if field_name else others

    return change


def with_usage(answer: Json, change: Callable[[Json], Json]) -> Json:
    """Return an answer or a chunk with its usage changed, if it has one."""
    return {**answer, "usage": change(answer["usage"])} if answer.get("usage") else answer

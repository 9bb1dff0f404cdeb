"""Personalities: the differences of a provider from the one whose API it copies."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from services.sandbox.model.models import SandboxError
from services.sandbox.openai_rules import TOOL_NAME

Json = dict[str, Any]
Body = Mapping[str, Any]
Chunks = Callable[[Json], Iterable[Json]]

# What the requests of OpenAI's dialect hold that every server of it reads.
COMMON = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "stop", "max_tokens"),
        *("temperature", "top_p", "frequency_penalty", "presence_penalty"),
        *("tools", "tool_choice", "response_format", "reasoning_effort"),
    }
)
# Names of tools where a server has no rule for them, or refuses them in words of its own.
ANY_TOOL_NAME = re.compile(r".+", re.DOTALL)
_OF_MESSAGES = frozenset({"role", "content", "name", "refusal", "tool_calls", "tool_call_id"})
_OF_CALLS = frozenset({"id", "type", "function", "custom"})
_OF_PARTS = frozenset({"type", "text", "refusal", "image_url", "input_audio", "file"})
_OF_TOOLS = frozenset({"type", "function", "custom"})


class RefusedError(SandboxError):
    """A refusal in a provider's own words.

    Attributes:
        body: the whole body of the answer.
    """

    def __init__(self, status: int, message: str, body: Any) -> None:
        super().__init__("invalid", status, message)
        self.body = body


def refused(message: str, param: str | None = None, code: str | None = None) -> RefusedError:
    """Return a refusal in OpenAI's form, with the words as they are."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return RefusedError(400, message, {"error": error})


def as_it_is(value: Any) -> Any:
    """Return what is given."""
    return value


def _one_by_one() -> Chunks:
    return lambda chunk: (chunk,)


def _own_form(error: SandboxError, body: Json) -> Any:
    return body


@dataclass(frozen=True, slots=True)
class Personality:
    """A provider that uses the API of another one with differences.

    Attributes:
        name: the path below which it is played, without slashes.
        about: the differences, for people.
        dialect: the API.
        names: its own names of models, with those of the sandbox that answer for them.
        take: returns a request as the dialect's maker would be sent it, or refuses it; raises
            `RefusedError`. What it is given may be of any types.
        take_response: the same of a request of OpenAI's responses; None where the provider has no
            such endpoint.
        tell_response: returns a response object in the provider's form.
        opening: bytes that a stream begins with.
        chunks: makes for one stream what turns each chunk into those that are sent.
        tell: returns a whole answer, or a chunk of a stream, in the provider's form.
        failure: returns the body of a failure in the provider's form.
        tool_name: what the names of tools have to be in requests of OpenAI's dialect.
    """

    name: str
    about: str
    dialect: Literal["openai", "anthropic"] = "openai"
    names: Mapping[str, str] = field(default_factory=dict)
    take: Callable[[Body], Body] = as_it_is
    take_response: Callable[[Body], Body] | None = None
    tell_response: Callable[[Json], Json] = as_it_is
    opening: bytes = b""
    chunks: Callable[[], Chunks] = _one_by_one
    tell: Callable[[Json], Json] = as_it_is
    failure: Callable[[SandboxError, Json], Any] = _own_form
    tool_name: re.Pattern[str] = TOOL_NAME

    def read(self, body: Body) -> Body:
        """Return a request as the dialect's maker would be sent it, for a model of the sandbox.

        Raises:
            RefusedError: the provider refuses it.
        """
        return self._named(self.take(body))

    def read_response(self, body: Body) -> Body:
        """Return a request of OpenAI's responses; see `read`.

        Raises:
            SandboxError: the provider has no such endpoint, or refuses the request.
        """
        if self.take_response is None:
            raise SandboxError("not_found", 404, f"There are no responses below /{self.name}")
        return self._named(self.take_response(body))

    def _named(self, taken: Body) -> Body:
        """Return a request with the sandbox's name of its model."""
        name = taken.get("model")
        if isinstance(name, str) and name in self.names:
            return {**taken, "model": self.names[name]}
        return taken

    def failed(self, error: SandboxError, body: Json) -> Any:
        """Return the body of a failure, of which `body` is the one in the dialect's form."""
        return error.body if isinstance(error, RefusedError) else self.failure(error, body)


def tool_names(body: Body) -> Iterator[tuple[int, str]]:
    """Return the names of a request's tools with their places."""
    for index, tool in objects(body.get("tools")):
        function = tool.get("function")
        if isinstance(function, dict) and isinstance(name := function.get("name"), str):
            yield index, name


def objects(values: object) -> Iterator[tuple[int, Json]]:
    """Return the objects of a list with their places; what is no list has none."""
    for index, value in enumerate(values if isinstance(values, list) else ()):
        if isinstance(value, dict):
            yield index, value


def readable(body: Body, fields: frozenset[str]) -> Json:
    """Return the part of a request that a server reads which ignores every other field."""
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
    """Return an object with those of its fields that are read."""
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
    """Return what gives the thoughts of a message or delta another name, or with "" none."""

    def change(said: Json) -> Json:
        if "reasoning_content" not in said:
            return said
        rest = {name: value for name, value in said.items() if name != "reasoning_content"}
        return {**rest, field_name: said["reasoning_content"]} if field_name else rest

    return change


def with_usage(answer: Json, change: Callable[[Json], Json]) -> Json:
    """Return an answer or a chunk with its usage changed, if it tells any."""
    return {**answer, "usage": change(answer["usage"])} if answer.get("usage") else answer

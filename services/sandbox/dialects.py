"""The APIs of OpenAI and Anthropic: requests are parsed, and answers are written."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec
import orjson

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.ids import IdGenerator
from services.sandbox import anthropic_wire, openai_wire
from services.sandbox.anthropic_types import MessagesRequest
from services.sandbox.bodies import check_types, server_sent
from services.sandbox.model import openai_shapes
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import (
    LISTED,
    MAX_OUTPUT_TOKENS,
    Model,
    SandboxError,
)
from services.sandbox.model.play import Step
from services.sandbox.openai_types import ChatRequest

Json = dict[str, Any]
Body = Mapping[str, Any]

_RELEASED = "2001-02-03T04:05:06Z"
_RELEASED_AT = 981_173_106


class StreamWriter(Protocol):
    """Writes one streamed answer as server-sent events."""

    def write(self, step: Step) -> bytes:
        """Return the bytes of one step; may be empty."""
        ...

    def end(self) -> bytes:
        """Return the end of a successful stream."""
        ...

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        """Return an error event within the stream."""
        ...


class Dialect(Protocol):
    """The HTTP API of a provider.

    Attributes:
        request_id_header: the response header with the request's id.
        waits_in_header: whether the retry delay is sent in a header.
    """

    request_id_header: str
    waits_in_header: bool

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check the headers that every request needs.

        Raises:
            SandboxError: a header is missing or invalid.
        """
        ...

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Return a body that `read_request` can parse.

        Raises:
            SandboxError: the body is invalid.
        """
        ...

    def read_request(self, body: Body) -> GenerateRequest:
        """Parse an accepted body into a canonical request."""
        ...

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write a whole answer to the request in `body`."""
        ...

    def stream(self, answer: Answer, model: Model, body: Body) -> StreamWriter:
        """Return a writer for a streamed answer."""
        ...

    def failure(self, error: SandboxError, request_id: str) -> Any:
        """Write an error."""
        ...

    def counted(self, read: int) -> Json:
        """Write the result of counting input tokens."""
        ...

    def listed(self) -> Json:
        """Write the list of models."""
        ...

    def described(self, model: Model) -> Json:
        """Write one model."""
        ...


class OpenAI:
    """OpenAI's chat completions; see `Dialect`."""

    request_id_header = "x-request-id"
    waits_in_header = True
    request_type: type[msgspec.Struct] = ChatRequest

    def __init__(self, new_id: IdGenerator, now: Callable[[], float]) -> None:
        self._new_id = new_id
        self._now = now

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check for a bearer token."""
        if not headers.get("Authorization", "").startswith("Bearer "):
            raise SandboxError(
                "authentication", 401, "You didn't provide an API key: Authorization: Bearer KEY"
            )

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Check the types of the fields that the models read."""
        check_types(body, self.request_type)
        return body

    def read_request(self, body: Body) -> GenerateRequest:
        """Parse an accepted body into a canonical request."""
        return openai_wire.read_request(body)

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write a `chat.completion`."""
        return openai_wire.completion(answer, self._head(model))

    def stream(self, answer: Answer, model: Model, body: Body) -> StreamWriter:
        """Return a writer of `chat.completion.chunk` events."""
        return ChatStream(self.chunk_writer(answer, model, body))

    def chunk_writer(self, answer: Answer, model: Model, body: Body) -> openai_wire.ChunkWriter:
        """Return a writer of chunks."""
        options = body.get("stream_options") or {}
        include_usage = options.get("include_usage") is True
        return openai_wire.ChunkWriter(answer, self._head(model), include_usage=include_usage)

    def failure(self, error: SandboxError, request_id: str) -> Any:
        """Write an error."""
        return openai_shapes.error_body(error)

    def counted(self, read: int) -> Json:
        """Raise an error: the API has no token counting."""
        raise SandboxError("not_found", 404, "There is no count of tokens")

    def listed(self) -> Json:
        """Write the list of models."""
        return {"object": "list", "data": [self.described(model) for model in LISTED]}

    def described(self, model: Model) -> Json:
        """Write one model."""
        return {
            "id": model.name,
            "object": "model",
            "created": _RELEASED_AT,
            "owned_by": "sandbox",
        }

    def _head(self, model: Model) -> Json:
        return {
            "id": self._new_id("chatcmpl-"),
            "created": int(self._now()),
            "model": model.name,
        }


class ChatStream:
    """Writes a streamed chat completion; see `StreamWriter`."""

    def __init__(self, writer: openai_wire.ChunkWriter) -> None:
        self._writer = writer

    def write(self, step: Step) -> bytes:
        """Return the chunks of one step."""
        return self.serialize(self._writer.write(step))

    def end(self) -> bytes:
        """Return the usage, if requested, and the end of the stream."""
        return self.serialize(self._writer.end()) + b"data: [DONE]\n\n"

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        """Return an error within the stream."""
        return data_line(openai_shapes.error_body(error))

    def serialize(self, chunks: Iterable[Json]) -> bytes:
        """Return chunks as server-sent events."""
        return b"".join(map(data_line, chunks))


class Anthropic:
    """Anthropic's messages; see `Dialect`."""

    request_id_header = "request-id"
    waits_in_header = True

    def __init__(self, new_id: IdGenerator) -> None:
        self._new_id = new_id

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check for a key in either header, and a version."""
        bearer = headers.get("Authorization", "").startswith("Bearer ")
        if not headers.get("x-api-key") and not bearer:
            raise SandboxError("authentication", 401, "x-api-key header is required")
        if not headers.get("anthropic-version"):
            raise SandboxError("invalid", 400, "header is required", path=("anthropic-version",))

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Check the types of the fields that the models read."""
        check_types(body, MessagesRequest)
        return body

    def read_request(self, body: Body) -> GenerateRequest:
        """Parse an accepted body into a canonical request."""
        return anthropic_wire.read_request(body)

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write a `message`."""
        return anthropic_wire.message(answer, self._head(model))

    def stream(self, answer: Answer, model: Model, body: Body) -> StreamWriter:
        """Return a writer of events."""
        return _AnthropicStream(anthropic_wire.EventWriter(answer, self._head(model)))

    def failure(self, error: SandboxError, request_id: str) -> Json:
        """Write an error."""
        return anthropic_wire.error_body(error, request_id)

    def counted(self, read: int) -> Json:
        """Write the result of counting input tokens."""
        return {"input_tokens": read}

    def listed(self) -> Json:
        """Write the list of models, all on one page."""
        models = [self.described(model) for model in LISTED]
        return {
            "data": models,
            "has_more": False,
            "first_id": models[0]["id"],
            "last_id": models[-1]["id"],
        }

    def described(self, model: Model) -> Json:
        """Write one model."""
        return {
            "type": "model",
            "id": model.name,
            "display_name": model.display_name,
            "created_at": _RELEASED,
            "lifecycle": "active",
            "max_input_tokens": model.context_window,
            "max_tokens": MAX_OUTPUT_TOKENS,
        }

    def _head(self, model: Model) -> Json:
        return {"id": self._new_id("msg_"), "model": model.name}


class _AnthropicStream:
    def __init__(self, writer: anthropic_wire.EventWriter) -> None:
        self._writer = writer

    def write(self, step: Step) -> bytes:
        return b"".join(map(server_sent, self._writer.write(step)))

    def end(self) -> bytes:
        return b""

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        return server_sent(anthropic_wire.error_body(error, request_id))


def data_line(value: Any) -> bytes:
    """Serialize a server-sent event without a name."""
    return b"data: " + orjson.dumps(value) + b"\n\n"

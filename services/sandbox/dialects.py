"""The APIs of OpenAI and Anthropic: requests are checked, and answers are written."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import orjson

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.ids import IdGenerator
from services.sandbox import (
    anthropic_rules,
    anthropic_wire,
    openai_wire,
)
from services.sandbox.anthropic_betas import betas_of, check_betas
from services.sandbox.bodies import server_sent
from services.sandbox.checks import Body, Check, Problem
from services.sandbox.model import openai_shapes
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import (
    LISTED,
    MAX_OUTPUT_TOKENS,
    Model,
    SandboxError,
)
from services.sandbox.model.play import Step
from services.sandbox.personalities import USUAL
from services.sandbox.personalities.base import Personality

Json = dict[str, Any]

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
        name: the name in the log.
        request_id_header: the response header with the request's id.
        waits_in_header: whether the retry delay is sent in a header.
    """

    name: str
    request_id_header: str
    waits_in_header: bool

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check the headers that every request needs.

        Raises:
            SandboxError: a header is missing or invalid.
        """
        ...

    def read(self, body: Body) -> Body:
        """Convert a body from the emulated provider's format to that of the dialect's maker.

        Raises:
            SandboxError: the emulated provider rejects it.
        """
        ...

    def problem(self, body: Body, headers: Mapping[str, str]) -> Problem | None:
        """Return the first problem of a body, or None."""
        ...

    def read_request(self, body: Body) -> GenerateRequest:
        """Parse a body that has no problem into a canonical request."""
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

    name = "openai"
    request_id_header = "x-request-id"
    waits_in_header = True

    def __init__(
        self,
        check: Check,
        new_id: IdGenerator,
        now: Callable[[], float],
        find_problem: Check,
        personality: Personality = USUAL,
    ) -> None:
        self._check = check
        self._new_id = new_id
        self._now = now
        self._find_problem = find_problem
        self._personality = personality

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check for a bearer token."""
        if not headers.get("Authorization", "").startswith("Bearer "):
            raise SandboxError(
                "authentication", 401, "You didn't provide an API key: Authorization: Bearer KEY"
            )

    def read(self, body: Body) -> Body:
        """Convert a body to OpenAI's format."""
        return self._personality.read(body)

    def problem(self, body: Body, headers: Mapping[str, str]) -> Problem | None:
        """Check the types, then the other rules."""
        return self._check(body) or self._find_problem(body)

    def read_request(self, body: Body) -> GenerateRequest:
        """Parse a body that has no problem into a canonical request."""
        return openai_wire.read_request(body)

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write a `chat.completion`."""
        return self._personality.convert_answer(openai_wire.completion(answer, self._head(model)))

    def stream(self, answer: Answer, model: Model, body: Body) -> StreamWriter:
        """Return a writer of `chat.completion.chunk` events."""
        options = body.get("stream_options") or {}
        include_usage = options.get("include_usage") is True
        return _OpenAIStream(
            openai_wire.ChunkWriter(answer, self._head(model), include_usage=include_usage),
            self._personality,
        )

    def failure(self, error: SandboxError, request_id: str) -> Any:
        """Write an error."""
        return self._personality.failed(error, openai_shapes.error_body(error))

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


class _OpenAIStream:
    def __init__(self, writer: openai_wire.ChunkWriter, personality: Personality) -> None:
        self._writer = writer
        self._personality = personality
        self._chunks = personality.chunks()
        self._opening = personality.opening

    def write(self, step: Step) -> bytes:
        opening, self._opening = self._opening, b""
        return opening + self._told(self._writer.write(step))

    def end(self) -> bytes:
        return self._told(self._writer.end()) + b"data: [DONE]\n\n"

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        return _data(self._personality.failed(error, openai_shapes.error_body(error)))

    def _told(self, written: Iterable[Json]) -> bytes:
        convert_answer = self._personality.convert_answer
        return b"".join(
            _data(convert_answer(chunk)) for one in written for chunk in self._chunks(one)
        )


class Anthropic:
    """Anthropic's messages; see `Dialect`."""

    name = "anthropic"
    request_id_header = "request-id"
    waits_in_header = True

    def __init__(
        self,
        check: Check,
        beta_check: Check,
        betas: frozenset[str],
        new_id: IdGenerator,
        personality: Personality = USUAL,
    ) -> None:
        self._check = check
        self._beta_check = beta_check
        self._betas = betas
        self._new_id = new_id
        self._personality = personality

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check for a key in either header, a version, and known beta features."""
        bearer = headers.get("Authorization", "").startswith("Bearer ")
        if not headers.get("x-api-key") and not bearer:
            raise SandboxError("authentication", 401, "x-api-key header is required")
        if not headers.get("anthropic-version"):
            raise SandboxError("invalid", 400, "header is required", path=("anthropic-version",))
        check_betas(headers, self._betas)

    def read(self, body: Body) -> Body:
        """Convert a body to Anthropic's format."""
        return self._personality.read(body)

    def problem(self, body: Body, headers: Mapping[str, str]) -> Problem | None:
        """Check the types, then the other rules."""
        betas = betas_of(headers)
        check = self._beta_check if betas else self._check
        return check(body) or anthropic_rules.find_problem(body, betas)

    def read_request(self, body: Body) -> GenerateRequest:
        """Parse a body that has no problem into a canonical request."""
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


def _data(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"

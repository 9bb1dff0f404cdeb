"""The sandbox's dialects as strict as the providers that they imitate.

Each accepts a body if its provider would, and if the sandbox's own server does.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from services.common.ids import IdGenerator
from services.sandbox.dialects import (
    Anthropic,
    Body,
    ChatStream,
    Json,
    OpenAI,
    StreamWriter,
    data_line,
)
from services.sandbox.gemini import Gemini
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import Model, SandboxError
from services.sandbox.model.openai_shapes import error_body
from services.sandbox.model.play import Step
from services.sandbox.openai_embeddings import Embeddings
from services.sandbox.openai_wire import ChunkWriter
from services.sandbox.responses import Responses, ResponseStream
from services.sandbox.responses_stream import EventWriter
from tests.upstream import anthropic_rules
from tests.upstream.anthropic_betas import betas_of, check_betas
from tests.upstream.checks import Check, Problem
from tests.upstream.personalities.base import Personality

GOOGLE = Personality("", "Google's own API", dialect="gemini")


class ImitatedChat(OpenAI):
    """OpenAI's chat completions, as a provider has them."""

    def __init__(
        self,
        new_id: IdGenerator,
        now: Callable[[], float],
        checks: Sequence[Check],
        personality: Personality,
    ) -> None:
        super().__init__(new_id, now)
        self._checks = checks
        self._personality = personality

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Convert a body to OpenAI's format, and check it."""
        body = self._personality.read(body)
        _refuse(_first_problem(body, self._checks))
        return super().accept(body, headers)

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write an answer in the provider's format."""
        return self._personality.convert_answer(super().whole(answer, model, body))

    def stream(self, answer: Answer, model: Model, body: Body) -> StreamWriter:
        """Return a writer of chunks in the provider's format."""
        return _ImitatedChatStream(self.chunk_writer(answer, model, body), self._personality)

    def failure(self, error: SandboxError, request_id: str) -> Any:
        """Write an error in the provider's format."""
        return self._personality.failed(error, error_body(error))


class _ImitatedChatStream(ChatStream):
    def __init__(self, writer: ChunkWriter, personality: Personality) -> None:
        super().__init__(writer)
        self._personality = personality
        self._chunks = personality.chunks()
        self._opening = personality.opening

    def write(self, step: Step) -> bytes:
        opening, self._opening = self._opening, b""
        return opening + super().write(step)

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        return data_line(self._personality.failed(error, error_body(error)))

    def serialize(self, chunks: Iterable[Json]) -> bytes:
        return super().serialize(
            self._personality.convert_answer(converted)
            for chunk in chunks
            for converted in self._chunks(chunk)
        )


class ImitatedEmbeddings(Embeddings):
    """OpenAI's embeddings, with OpenAI's checks."""

    def __init__(
        self, new_id: IdGenerator, now: Callable[[], float], checks: Sequence[Check]
    ) -> None:
        super().__init__(new_id, now)
        self._checks = checks

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Check a body."""
        _refuse(_first_problem(body, self._checks))
        return super().accept(body, headers)


class ImitatedResponses(Responses):
    """OpenAI's responses, as a provider has them."""

    def __init__(
        self,
        new_id: IdGenerator,
        now: Callable[[], float],
        checks: Sequence[Check],
        personality: Personality,
    ) -> None:
        super().__init__(new_id, now)
        self._checks = checks
        self._personality = personality

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Convert a body to OpenAI's format, and check it."""
        body = self._personality.read_response(body)
        _refuse(_first_problem(body, self._checks))
        return super().accept(body, headers)

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write a response in the provider's format."""
        return self._personality.convert_response(super().whole(answer, model, body))

    def stream(self, answer: Answer, model: Model, body: Body) -> StreamWriter:
        """Return a writer of events in the provider's format."""
        return _ImitatedResponseStream(self.event_writer(answer, model, body), self._personality)

    def failure(self, error: SandboxError, request_id: str) -> Any:
        """Write an error in the provider's format."""
        return self._personality.failed(error, error_body(error))


class _ImitatedResponseStream(ResponseStream):
    def __init__(self, writer: EventWriter, personality: Personality) -> None:
        super().__init__(writer)
        self._personality = personality

    def serialize(self, event: Json) -> bytes:
        if "response" in event:
            event = {**event, "response": self._personality.convert_response(event["response"])}
        return super().serialize(event)


class ImitatedMessages(Anthropic):
    """Anthropic's messages, as a provider has them.

    Args:
        new_id: generates ids.
        check: checks the types of requests.
        beta_check: checks the types of requests that name beta features.
        betas: the names of beta features that the SDK lists.
        personality: the provider.
    """

    def __init__(
        self,
        new_id: IdGenerator,
        check: Check,
        beta_check: Check,
        betas: Collection[str],
        personality: Personality,
    ) -> None:
        super().__init__(new_id)
        self._check = check
        self._beta_check = beta_check
        self._betas = betas
        self._personality = personality

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check for a key, a version, and known beta features."""
        super().authenticate(headers)
        check_betas(headers, self._betas)

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Convert a body to Anthropic's format, and check it."""
        body = self._personality.read(body)
        betas = betas_of(headers)
        check = self._beta_check if betas else self._check
        _refuse(check(body) or anthropic_rules.find_problem(body, betas))
        return super().accept(body, headers)


class ImitatedGemini(Gemini):
    """Google's API with Google's checks, as a deployment has it."""

    def __init__(
        self,
        new_id: IdGenerator,
        request_type: type[msgspec.Struct],
        check: Check,
        personality: Personality = GOOGLE,
    ) -> None:
        super().__init__(new_id, request_type)
        self._check = check
        self._personality = personality

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Check a body."""
        body = self._personality.read(body)
        _refuse(self._check(body))
        return super().accept(body, headers)

    def failure(self, error: SandboxError, request_id: str) -> Any:
        """Write an error in the deployment's format."""
        return self._personality.failed(error, super().failure(error, request_id))


def _first_problem(body: Body, checks: Iterable[Check]) -> Problem | None:
    """Return the first problem that checks find, each of which relies on those before it."""
    return next((problem for check in checks if (problem := check(body)) is not None), None)


def _refuse(problem: Problem | None) -> None:
    if problem is not None:
        raise SandboxError("invalid", 400, problem.message, path=problem.path)

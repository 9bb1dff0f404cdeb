"""OpenAI's responses as a dialect of the sandbox."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.ids import IdGenerator
from services.sandbox import responses_rules
from services.sandbox.bodies import server_sent
from services.sandbox.checks import Body, Check, Problem
from services.sandbox.dialects import Json, OpenAI, StreamWriter
from services.sandbox.model import openai_shapes
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import Model, SandboxError
from services.sandbox.model.play import Step
from services.sandbox.personalities import USUAL
from services.sandbox.personalities.base import Personality
from services.sandbox.responses_items import Item, Writer, items_of
from services.sandbox.responses_request import read_request
from services.sandbox.responses_stream import EventWriter

# Codes of a failed response.
_CODES = {"rate_limit": "rate_limit_exceeded", "invalid": "invalid_prompt"}


class Responses(OpenAI):
    """OpenAI's responses; see `dialects.Dialect`."""

    name = "responses"

    def __init__(
        self,
        check: Check,
        new_id: IdGenerator,
        now: Callable[[], float],
        personality: Personality = USUAL,
    ) -> None:
        super().__init__(check, new_id, now, responses_rules.find_problem, personality)

    def read(self, body: Body) -> Body:
        """Convert a body to OpenAI's format.

        Raises:
            SandboxError: the emulated provider has no responses, or rejects the body.
        """
        return self._personality.read_response(body)

    def problem(self, body: Body, headers: Mapping[str, str]) -> Problem | None:
        """Check the types, then the other rules."""
        return self._check(body) or self._find_problem(body)

    def read_request(self, body: Body) -> GenerateRequest:
        """Parse a body that has no problem into a canonical request."""
        return read_request(body)

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write a `response`."""
        writer, items = self._begin(answer, model, body)
        last = len(items) - 1
        output = [writer.item(item, is_last=at == last) for at, item in enumerate(items)]
        return self._personality.convert_response(writer.response(writer.final_status, output))

    def stream(self, answer: Answer, model: Model, body: Body) -> StreamWriter:
        """Return a writer of events."""
        options = body.get("stream_options") or {}
        pads = options.get("include_obfuscation") is not False
        writer, items = self._begin(answer, model, body)
        return _Stream(EventWriter(writer, items, pads=pads), self._personality)

    def _begin(self, answer: Answer, model: Model, body: Body) -> tuple[Writer, list[Item]]:
        head = {
            "id": self._new_id("resp_"),
            "created_at": int(self._now()),
            "model": model.name,
        }
        return Writer(answer, head, body), list(items_of(answer, self._new_id))


class _Stream:
    def __init__(self, writer: EventWriter, personality: Personality) -> None:
        self._writer = writer
        self._personality = personality

    def write(self, step: Step) -> bytes:
        return b"".join(map(self._sent, self._writer.write(step)))

    def end(self) -> bytes:
        return b""

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        fields: dict[str, Any] = openai_shapes.error_body(error)["error"]
        code = _CODES.get(error.kind, "server_error")
        return self._sent(self._writer.failed({"code": code, "message": fields["message"]}))

    def _sent(self, event: Json) -> bytes:
        if "response" in event:
            event = {**event, "response": self._personality.convert_response(event["response"])}
        return server_sent(event)

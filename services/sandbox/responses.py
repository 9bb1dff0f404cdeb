"""OpenAI's responses as a dialect of the sandbox."""

from typing import Any

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.sandbox.bodies import server_sent
from services.sandbox.dialects import Body, Json, OpenAI, StreamWriter
from services.sandbox.model import openai_shapes
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import Model, SandboxError
from services.sandbox.model.play import Step
from services.sandbox.openai_types import ResponsesRequest
from services.sandbox.responses_items import Item, Writer, items_of
from services.sandbox.responses_request import read_request
from services.sandbox.responses_stream import EventWriter

# Codes of a failed response.
_CODES = {"rate_limit": "rate_limit_exceeded", "invalid": "invalid_prompt"}


class Responses(OpenAI):
    """OpenAI's responses; see `dialects.Dialect`."""

    request_type = ResponsesRequest

    def read_request(self, body: Body) -> GenerateRequest:
        """Parse an accepted body into a canonical request."""
        return read_request(body)

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write a `response`."""
        writer, items = self._begin(answer, model, body)
        last = len(items) - 1
        output = [writer.item(item, is_last=at == last) for at, item in enumerate(items)]
        return writer.response(writer.final_status, output)

    def stream(self, answer: Answer, model: Model, body: Body) -> StreamWriter:
        """Return a writer of events."""
        return ResponseStream(self.event_writer(answer, model, body))

    def counted(self, read: int) -> Json:
        """Write the result of counting input tokens."""
        return {"object": "response.input_tokens", "input_tokens": read}

    def event_writer(self, answer: Answer, model: Model, body: Body) -> EventWriter:
        """Return a writer of the events of a stream."""
        options = body.get("stream_options") or {}
        pads = options.get("include_obfuscation") is not False
        writer, items = self._begin(answer, model, body)
        return EventWriter(writer, items, pads=pads)

    def _begin(self, answer: Answer, model: Model, body: Body) -> tuple[Writer, list[Item]]:
        head = {
            "id": self._new_id("resp_"),
            "created_at": int(self._now()),
            "model": model.name,
        }
        return Writer(answer, head, body), list(items_of(answer, self._new_id))


class ResponseStream:
    """Writes a streamed response; see `dialects.StreamWriter`."""

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer

    def write(self, step: Step) -> bytes:
        """Return the events of one step."""
        return b"".join(map(self.serialize, self._writer.write(step)))

    def end(self) -> bytes:
        """Return nothing: the last step has the last event."""
        return b""

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        """Return the event of a failed response."""
        fields: dict[str, Any] = openai_shapes.error_body(error)["error"]
        code = _CODES.get(error.kind, "server_error")
        return self.serialize(self._writer.failed({"code": code, "message": fields["message"]}))

    def serialize(self, event: Json) -> bytes:
        """Return an event as a server-sent event."""
        return server_sent(event)

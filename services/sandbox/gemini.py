"""The API of Gemini; see `dialects.Dialect`."""

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.ids import IdGenerator
from services.sandbox import gemini_wire
from services.sandbox.bodies import check_types
from services.sandbox.dialects import Body, Json
from services.sandbox.gemini_types import GenerateContentRequest
from services.sandbox.model.answers import Answer
from services.sandbox.model.models import (
    LISTED,
    MAX_OUTPUT_TOKENS,
    Model,
    SandboxError,
)
from services.sandbox.model.play import Step

_NO_KEY = (
    "Method doesn't allow unregistered callers (callers without established identity). Please "
    "use API Key or other form of API consumer identity to call this API."
)


class Gemini:
    """Google's `generateContent`; see `Dialect`."""

    request_id_header = "x-request-id"
    waits_in_header = False

    def __init__(
        self, new_id: IdGenerator, request_type: type[msgspec.Struct] = GenerateContentRequest
    ) -> None:
        self._new_id = new_id
        self._request_type = request_type

    def authenticate(self, headers: Mapping[str, str]) -> None:
        """Check for a key."""
        if not headers.get("x-goog-api-key"):
            raise SandboxError("permission", 403, _NO_KEY)

    def accept(self, body: Body, headers: Mapping[str, str]) -> Body:
        """Check the types of the fields that the models read."""
        check_types(body, self._request_type)
        return body

    def read_request(self, body: Body) -> GenerateRequest:
        """Parse an accepted body into a canonical request."""
        return gemini_wire.read_request(body)

    def whole(self, answer: Answer, model: Model, body: Body) -> Json:
        """Write a `GenerateContentResponse`."""
        return gemini_wire.whole(answer, self._head(model))

    def stream(self, answer: Answer, model: Model, body: Body) -> "_GeminiStream":
        """Return a writer of `GenerateContentResponse` events."""
        return _GeminiStream(gemini_wire.ChunkWriter(answer, self._head(model)))

    def failure(self, error: SandboxError, request_id: str) -> Json:
        """Write an error."""
        return gemini_wire.error_body(error)

    def counted(self, read: int) -> Json:
        """Write the result of counting input tokens."""
        return {"totalTokens": read}

    def listed(self) -> Json:
        """Write the list of models, all on one page."""
        return {"models": [self.described(model) for model in LISTED]}

    def described(self, model: Model) -> Json:
        """Write one model."""
        return {
            "name": f"models/{model.name}",
            "version": "001",
            "displayName": model.display_name,
            "inputTokenLimit": model.context_window,
            "outputTokenLimit": MAX_OUTPUT_TOKENS,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }

    def _head(self, model: Model) -> Json:
        return {"modelVersion": model.name, "responseId": self._new_id("")}


class _GeminiStream:
    def __init__(self, writer: gemini_wire.ChunkWriter) -> None:
        self._writer = writer

    def write(self, step: Step) -> bytes:
        return b"".join(map(_data, self._writer.write(step)))

    def end(self) -> bytes:
        return b""

    def failure(self, error: SandboxError, request_id: str) -> bytes:
        return _data(gemini_wire.error_body(error))


def _data(value: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\r\n\r\n"

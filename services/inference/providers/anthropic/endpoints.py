"""Where a server has Anthropic's messages, and how their requests differ there. Pure.

Anthropic's own API and compatible servers have one path for all models. Vertex AI
(`vertex.claude`) and Bedrock (`bedrock.claude`) name the model in the path, and a version in the
body.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from services.inference.providers.base import Call
from services.inference.providers.opaque_json import Json
from services.inference.providers.upstream import SSE, Framing

Headers = list[tuple[str, str]]


class Endpoint(Protocol):
    """The paths and the bodies of one server.

    Attributes:
        framing: the format of its streams.
    """

    framing: Framing

    def path(self, call: Call) -> str:
        """Return the path for messages, below the base URL."""

    def head(self, call: Call, headers: Headers) -> Json:
        """Return the first fields of a body; fields that `headers` become are removed there."""

    def count_path(self, call: Call) -> str:
        """Return the path to count input tokens."""

    def count_head(self, call: Call, headers: Headers) -> Json:
        """Return the first fields of a body to count; see `head`."""

    def count_body(self, body: bytes) -> bytes:
        """Return a body to count as the server reads it."""

    def counted(self, answer: Mapping[str, Any]) -> Any:
        """Return the number of input tokens in an answer."""


class OwnEndpoint:
    """Anthropic's own API, and compatible servers; see `Endpoint`."""

    framing = SSE

    def path(self, call: Call) -> str:
        """Return the path for messages."""
        return "/v1/messages"

    def head(self, call: Call, headers: Headers) -> Json:
        """Return the first fields of a body."""
        model = call.target.upstream
        return {"model": model, "stream": True} if call.stream else {"model": model}

    def count_path(self, call: Call) -> str:
        """Return the path to count input tokens."""
        return "/v1/messages/count_tokens"

    def count_head(self, call: Call, headers: Headers) -> Json:
        """Return the first fields of a body to count."""
        return {"model": call.target.upstream}

    def count_body(self, body: bytes) -> bytes:
        """Return a body to count as it is."""
        return body

    def counted(self, answer: Mapping[str, Any]) -> Any:
        """Return the number of input tokens in an answer."""
        return answer.get("input_tokens")


OWN = OwnEndpoint()

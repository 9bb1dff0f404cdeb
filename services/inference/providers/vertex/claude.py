"""Anthropic's models on Vertex AI. Pure.

Sources: the client `AnthropicVertex` of Anthropic's SDK, and Google's page "Claude models".
"""

from services.inference.providers.anthropic.endpoints import Headers, OwnEndpoint
from services.inference.providers.base import Call
from services.inference.providers.opaque_json import Json
from services.inference.providers.vertex.paths import model_path

_VERSION: Json = {"anthropic_version": "vertex-2023-10-16"}


class VertexEndpoint(OwnEndpoint):
    """Anthropic's models on Vertex AI; see `anthropic.endpoints.Endpoint`."""

    def path(self, call: Call) -> str:
        """Return the path for messages."""
        method = "streamRawPredict" if call.stream else "rawPredict"
        return f"/{model_path(call.target.upstream)}:{method}"

    def head(self, call: Call, headers: Headers) -> Json:
        """Return the first fields of a body."""
        return {**_VERSION, "stream": True} if call.stream else _VERSION

    def count_path(self, call: Call) -> str:
        """Return the path to count input tokens; the body names the model."""
        return f"/{model_path('count-tokens', 'anthropic')}:rawPredict"

    def count_head(self, call: Call, headers: Headers) -> Json:
        """Return the first fields of a body to count."""
        return {"model": call.target.upstream, **_VERSION}

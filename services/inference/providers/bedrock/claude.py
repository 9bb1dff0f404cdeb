"""Anthropic's own messages on Bedrock, by InvokeModel. Pure.

Sources: the client `AnthropicBedrock` of Anthropic's SDK, and AWS's references of InvokeModel,
InvokeModelWithResponseStream and CountTokens.
"""

import base64
from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson

from services.inference.providers.anthropic.endpoints import Headers, OwnEndpoint
from services.inference.providers.base import Call
from services.inference.providers.bedrock import sanitizing
from services.inference.providers.bedrock.frames import CONTENT_TYPE, FrameSplitter
from services.inference.providers.opaque_json import Json
from services.inference.providers.upstream import Framing

_VERSION = "bedrock-2023-05-31"
_BETA_HEADER = "anthropic-beta"


class BedrockEndpoint(OwnEndpoint):
    """Anthropic's models on Bedrock, by InvokeModel; see `anthropic.endpoints.Endpoint`.

    Args:
        provider: the provider's name in the settings, for errors.
    """

    def __init__(self, provider: str) -> None:
        self.framing = Framing(CONTENT_TYPE, partial(FrameSplitter, provider))

    def path(self, call: Call) -> str:
        """Return the path for messages."""
        method = "invoke-with-response-stream" if call.stream else "invoke"
        return f"{sanitizing.model_path(call.target.upstream)}/{method}"

    def head(self, call: Call, headers: Headers) -> Json:
        """Return the first fields of a body, with the beta features in place of their header."""
        head: Json = {"anthropic_version": _VERSION}
        for pair in headers:
            if pair[0] == _BETA_HEADER:
                head["anthropic_beta"] = pair[1].split(",")
                headers.remove(pair)
                break
        return head

    def count_path(self, call: Call) -> str:
        """Return the path to count input tokens."""
        return f"{sanitizing.model_path(call.target.upstream)}/count-tokens"

    def count_head(self, call: Call, headers: Headers) -> Json:
        """Return the first fields of a body to count, which is one to answer."""
        request = call.request
        bound = max(request.max_tokens, request.thinking.budget_tokens) + 1
        return {**self.head(call, headers), "max_tokens": bound}

    def count_body(self, body: bytes) -> bytes:
        """Return the body of CountTokens for a body of InvokeModel."""
        packed = base64.b64encode(body).decode()
        return orjson.dumps({"input": {"invokeModel": {"body": packed}}})

    def counted(self, answer: Mapping[str, Any]) -> Any:
        """Return the number of input tokens in an answer."""
        return answer.get("inputTokens")

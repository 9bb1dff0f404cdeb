"""Values of OpenTelemetry's semantic conventions for HTTP and generative AI.

Those for generative AI have a repository of their own, and are followed in version 0.1.0, which
depends on version 1.45 of the others: https://github.com/open-telemetry/semantic-conventions-genai
"""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from gateway.conversation.v1.conversation_pb2 import Usage
from services.common.messages.passthrough_answer import TokenCounts

SCHEMA_URL = "https://opentelemetry.io/schemas/1.45.0"

Operation = Literal[
    "chat", "embeddings", "generate_content", "moderation", "rerank", "text_completion"
]

# Names of providers here for which the conventions have another value. Names that the conventions
# do not have stand for themselves.
_PROVIDERS: Mapping[str, str] = {
    "gemini": "gcp.gemini",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "vertex": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}


def provider_name(name: str) -> str:
    """Return the conventions' value for a provider of the settings."""
    return _PROVIDERS.get(name, name)


def server_attributes(url: str) -> dict[str, str | int]:
    """Return the attributes of a server, by its URL; none for one without a host."""
    parts = urlsplit(url)
    if not parts.hostname:
        return {}
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"server.address": parts.hostname, "server.port": port}


def usage_attributes(tokens: Usage | TokenCounts) -> dict[str, int]:
    """Return the attributes of token counts; by the conventions, input includes the cache's."""
    read, created = tokens.cache_read_input_tokens, tokens.cache_creation_input_tokens
    attributes = {
        "gen_ai.usage.input_tokens": tokens.input_tokens + read + created,
        "gen_ai.usage.output_tokens": tokens.output_tokens,
    }
    if read:
        attributes["gen_ai.usage.cache_read.input_tokens"] = read
    if created:
        attributes["gen_ai.usage.cache_write.input_tokens"] = created
    if tokens.reasoning_tokens:
        attributes["gen_ai.usage.reasoning.output_tokens"] = tokens.reasoning_tokens
    return attributes

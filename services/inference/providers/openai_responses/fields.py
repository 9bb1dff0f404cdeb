"""Fields without a canonical name in requests to OpenAI's responses. Pure."""

import re

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES
from services.inference.providers.openai.fields import OpenAIFields

# Members of JSON that name what is kept at a provider: files, vector stores, containers, skills,
# and tunnels to MCP servers. A container may be named by its id alone.
_KEPT = re.compile(
    rb'"(?:file_ids?|vector_store_ids|container_id|skill_id|tunnel_id)"\s*:'
    rb'|"container"\s*:\s*"'
)
# Fields of a request that name what is kept at a provider.
STATEFUL = frozenset({"previous_response_id", "conversation", "prompt"})


def names_state(json: bytes) -> bool:
    """Return whether JSON of a part or a tool names something kept at the provider."""
    return _KEPT.search(json) is not None


class ResponsesFields(OpenAIFields):
    """What of one call's request a server may be sent; see `RequestFields`."""

    dialect = DIALECT_RESPONSES

    def check_json(self, json: bytes, path: str) -> None:
        """Refuse JSON that names something kept at the provider, unless that is allowed."""
        if not self.pass_stateful and names_state(json):
            raise self.kept_at_provider(path)

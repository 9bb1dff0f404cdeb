"""Fields unknown to the canonical request, for OpenAI's responses. Pure."""

import re

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES
from services.inference.providers.openai.fields import OpenAIFields

# JSON members that refer to objects stored at a provider: files, vector stores, containers, skills,
# and tunnels to MCP servers. A container may be referred to by its id alone.
_STORED_OBJECTS = re.compile(
    rb'"(?:file_ids?|vector_store_ids|container_id|skill_id|tunnel_id)"\s*:'
    rb'|"container"\s*:\s*"'
)
# Fields of a request that refer to objects stored at a provider.
STATEFUL = frozenset({"previous_response_id", "conversation", "prompt"})


def refers_to_stored_objects(json: bytes) -> bool:
    """Return whether the JSON of a part or a tool refers to an object stored at the provider."""
    return _STORED_OBJECTS.search(json) is not None


class ResponsesFields(OpenAIFields):
    """Decides which parts of a call's request a server is sent; see `RequestFields`."""

    dialect = DIALECT_RESPONSES

    def check_json(self, json: bytes, path: str) -> None:
        """Raise an error for JSON that refers to stored objects of the provider, unless allowed."""
        if not self.pass_stateful and refers_to_stored_objects(json):
            raise self.stored_object_error(path)

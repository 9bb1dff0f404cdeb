"""Fields unknown to the canonical request, for OpenAI's responses. Pure."""

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES
from services.inference.providers.openai.fields import OpenAIFields


class ResponsesFields(OpenAIFields):
    """Decides which parts of a call's request a server is sent; see `RequestFields`."""

    dialect = DIALECT_RESPONSES

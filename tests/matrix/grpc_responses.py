"""The gRPC service, asked in the dialect of OpenAI's responses; see `grpc_calls`."""

from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES
from gateway.inference.v1.inference_pb2 import GenerateRequest
from tests.matrix import grpc_calls
from tests.matrix.grpc_calls import ask, for_model, go_on
from tests.matrix.words import GRPC, Audio, Conversation

__all__ = ["NAME", "ask", "body_of", "for_model", "go_on", "takes"]

NAME = GRPC


def takes(conversation: Conversation) -> bool:
    """Return whether the dialect has words for a conversation."""
    options = conversation.options
    parts = [part for turn in conversation.turns for part in turn.parts]
    return not (
        {"n", "budget", "logprobs"} & options.keys()
        or options.get("max_tokens", 16) < 16
        or any(isinstance(part, Audio) for part in parts)
        or any(len(tool.name) > 64 for tool in conversation.tools)
    )


def body_of(conversation: Conversation, model: str) -> GenerateRequest:
    """Return the request that asks a model, with a summary of its thoughts."""
    request = grpc_calls.body_of(conversation, model)
    request.dialect = DIALECT_RESPONSES
    if request.thinking.effort:
        request.thinking.extra.dialect = DIALECT_RESPONSES
        request.thinking.extra.json = b'{"summary":"auto"}'
    return request

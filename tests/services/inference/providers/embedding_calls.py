"""Calls for vectors, as the tests of providers make them."""

from collections.abc import Sequence
from typing import Any

from gateway.conversation.v1 import conversation_pb2
from gateway.inference.v1.inference_pb2 import EmbedRequest, GenerateRequest
from services.common.text import packed_floats
from services.inference.providers.base import EmbeddingCall, Provider, Target


def embedding_call(texts: Sequence[str] = (), model: str = "embed", **fields: Any) -> EmbeddingCall:
    """Return a call of a caller of OpenAI's dialect that takes the provider's own JSON."""
    inputs = EmbedRequest(
        texts=texts, dialect=conversation_pb2.DIALECT_OPENAI, takes_passthrough=True, **fields
    )
    routed = GenerateRequest(dialect=inputs.dialect)
    return EmbeddingCall(routed, Target("m", "acme", model), False, inputs=inputs)


async def embed(
    provider: Provider, texts: Sequence[str], model: str = "embed"
) -> list[list[float]]:
    """Return the vectors of texts as numbers, as the gateway's own tasks ask for them."""
    call = EmbeddingCall(
        GenerateRequest(), Target("m", "acme", model), False, inputs=EmbedRequest(texts=texts)
    )
    response = await provider.embed(call)
    return [packed_floats.unpack(vector).tolist() for vector in response.vectors]

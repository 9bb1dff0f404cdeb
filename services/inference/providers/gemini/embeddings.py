"""Embeddings of Gemini's `batchEmbedContents`. Pure.

The fields are those of Google's reference (ai.google.dev/api/embeddings).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from services.inference.providers.base import EmbeddingCall
from services.inference.providers.bounds import tokens
from services.inference.providers.upstream import Upstream
from services.inference.providers.vectors import VectorTexts, check_lengths, no_answer, packed

# Maximum texts per request.
MAX_BATCH = 100
# Maximum JSON values of an answer per vector, besides its numbers.
_VALUES_A_VECTOR = 64


def build_batches(
    call: EmbeddingCall, model: str, own: Mapping[str, Any]
) -> Iterator[tuple[bytes, int]]:
    """Yield the request bodies of a call, each with the number of its texts.

    Args:
        call: the call.
        model: the path of the model.
        own: fields of Google's dialect that every text gets.
    """
    inputs = call.inputs
    size = {"outputDimensionality": inputs.dimensions} if inputs.HasField("dimensions") else {}
    for begin in range(0, len(inputs.texts), MAX_BATCH):
        requests = [
            {"model": model, "content": {"parts": [{"text": text}]}, **own, **size}
            for text in inputs.texts[begin : begin + MAX_BATCH]
        ]
        yield orjson.dumps({"requests": requests}), len(requests)


def read_batch(answer: bytes, count: int, upstream: Upstream) -> tuple[list[bytes], int | None]:
    """Return the packed vectors of `count` texts, and the texts' tokens if reported.

    Raises:
        UpstreamError: the answer does not have that many vectors of the same length.
    """
    texts = VectorTexts(answer, "values")
    parsed = upstream.json_object_of(texts.outline, (count + 1) * _VALUES_A_VECTOR)
    embeddings = parsed.get("embeddings")
    items = embeddings if isinstance(embeddings, list) else []
    if len(items) != count:
        raise no_answer(count, upstream.name)
    read_vectors = [
        texts.vector_of(item.get("values")) if isinstance(item, dict) else None for item in items
    ]
    vectors = [packed(one, upstream.name) for one in check_lengths(read_vectors, upstream.name)]
    match parsed.get("usageMetadata"):
        case {"promptTokenCount": read}:
            try:
                return vectors, tokens(read)
            except ValueError:
                pass
    return vectors, None

"""Embeddings of Gemini's `batchEmbedContents`."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from services.inference.providers.openai.vectors import read_vectors

# Maximum texts per request.
MAX_BATCH = 100


def build_embedding(model: str, texts: Sequence[str]) -> bytes:
    """Return the request body for embeddings of texts."""
    requests = [{"model": model, "content": {"parts": [{"text": text}]}} for text in texts]
    return orjson.dumps({"requests": requests})


def read_embedding(answer: Mapping[str, Any], count: int, provider: str) -> list[list[float]]:
    """Return the vectors of `count` texts, in the order of the texts.

    Raises:
        UpstreamError: the response does not have `count` vectors of one length.
    """
    given = answer.get("embeddings")
    items = given if isinstance(given, list) else []
    data = [{"embedding": item.get("values")} if isinstance(item, dict) else {} for item in items]
    return read_vectors({"data": data}, count, provider)

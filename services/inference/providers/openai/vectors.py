"""Reads OpenAI's embeddings: `{"data": [{"index": 0, "embedding": [0.1, …]}, …]}`."""

from collections.abc import Mapping
from typing import Any

from services.inference.providers.failures import broken_answer

# Numbers of a vector, beyond those of any model.
MAX_LENGTH = 1 << 13
_MAX_NUMBER = 3.4e38  # that a float of 32 bits holds


def read_vectors(answer: Mapping[str, Any], count: int, provider: str) -> list[list[float]]:
    """Return the vectors of `count` texts in the order of the texts.

    Raises:
        UpstreamError: the answer is not that many vectors of one length.
    """
    data = answer.get("data")
    items = data if isinstance(data, list) else []
    found = dict(_embedding(place, item) for place, item in enumerate(items))
    vectors = [found.get(place) for place in range(count)]
    length = len(vectors[0]) if isinstance(vectors[0], list) else 0
    if len(items) != count or not 0 < length <= MAX_LENGTH:
        raise broken_answer(provider, f"did not answer {count} vectors")
    read: list[list[float]] = []
    for vector in vectors:
        if not isinstance(vector, list) or len(vector) != length or not _are_numbers(vector):
            raise broken_answer(provider, "answered vectors that are none, or of several lengths")
        read.append([float(value) for value in vector])
    return read


def _embedding(place: int, item: Any) -> tuple[int, Any]:
    """Return an item's index and what it holds; servers that keep the order leave it out."""
    if not isinstance(item, dict):
        return place, None
    index = item.get("index")
    return index if isinstance(index, int) else place, item.get("embedding")


def _are_numbers(vector: list[Any]) -> bool:
    return all(isinstance(value, int | float) and abs(value) < _MAX_NUMBER for value in vector)

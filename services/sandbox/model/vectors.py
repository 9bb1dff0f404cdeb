"""Embeddings without a model: texts with common words or parts of words have similar vectors.

Feature hashing: each word and each run of three letters in it is added to the component that its
hash selects, so that "dog" and "dogs" are similar. Equal texts have equal vectors in every process.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from services.sandbox.model.models import Model, SandboxError, not_made_for, refuse_failing

DIMENSIONS = 256

_CHARACTERS_A_TOKEN = 4

_WORD = re.compile(r"\w+")
_RUN = 3
# Weight of a word, relative to a run of its letters.
_WHOLE = 2.0


def embed(texts: Sequence[str], model: Model, dimensions: int | None = None) -> list[list[float]]:
    """Return a unit vector for each text, with at most `DIMENSIONS` components.

    Raises:
        SandboxError: the model makes no embeddings, or not of this length, or always fails.
    """
    refuse_failing(model)
    if not model.embeds:
        raise not_made_for(model, "makes no vectors")
    if dimensions is not None and not 1 <= dimensions <= DIMENSIONS:
        raise SandboxError(
            "invalid", 400, f"takes 1 to {DIMENSIONS} dimensions", path=("dimensions",)
        )
    return [_shortened(_vector(text), dimensions) for text in texts]


def count_tokens(texts: Iterable[str]) -> int:
    """Return the tokens of texts, in the sandbox's own tokens."""
    return sum(-(-len(text) // _CHARACTERS_A_TOKEN) for text in texts)


def _shortened(vector: list[float], dimensions: int | None) -> list[float]:
    """Return the first components of a vector, normalized to unit length."""
    if dimensions is None or dimensions == len(vector):
        return vector
    first = vector[:dimensions]
    length = math.hypot(*first)
    return [number / length for number in first] if length else [1.0, *first[1:]]


def _vector(text: str) -> list[float]:
    places = [0.0] * DIMENSIONS
    for feature, weight in _features(text):
        hashed = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
        # The sign keeps features with the same component from adding up.
        places[hashed % DIMENSIONS] += weight if hashed >> 63 else -weight
    length = math.hypot(*places)
    if not length:
        return [1.0] + [0.0] * (DIMENSIONS - 1)
    return [place / length for place in places]


def _features(text: str) -> Iterator[tuple[str, float]]:
    # A text without words is one feature.
    words = _WORD.findall(text.casefold()) or [text]
    for word in words:
        yield word, _WHOLE
        for begin in range(len(word) - _RUN + 1):
            yield f"{word[begin : begin + _RUN]}…", 1.0

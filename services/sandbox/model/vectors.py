"""Vectors of texts without a model: texts that share words, or parts of them, are near.

Every word is thrown into one of the places of the vector by its hash, and each run of
three of its letters into another, so that "dog" and "dogs" stand beside each other. The
same text gets the same vector in every process.
"""

import math
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from services.sandbox.model.models import Model, not_made_for, refuse_failing

DIMENSIONS = 256

_WORD = re.compile(r"\w+")
_RUN = 3
# What a word counts for beside one run of its letters.
_WHOLE = 2.0


def embed(texts: Sequence[str], model: Model) -> list[list[float]]:
    """Return a vector of length 1 for each text.

    Raises:
        SandboxError: the model makes no vectors, or failing is what it does.
    """
    refuse_failing(model)
    if not model.embeds:
        raise not_made_for(model, "makes no vectors")
    return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    places = [0.0] * DIMENSIONS
    for feature, weight in _features(text):
        hashed = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
        # The sign keeps features that share a place from adding up.
        places[hashed % DIMENSIONS] += weight if hashed >> 63 else -weight
    length = math.hypot(*places)
    if not length:
        return [1.0] + [0.0] * (DIMENSIONS - 1)
    return [place / length for place in places]


def _features(text: str) -> Iterator[tuple[str, float]]:
    # A text without words stands for itself.
    words = _WORD.findall(text.casefold()) or [text]
    for word in words:
        yield word, _WHOLE
        for begin in range(len(word) - _RUN + 1):
            yield f"{word[begin : begin + _RUN]}…", 1.0

"""A stand-in for an embedding model: no network, no weights, the same vectors every time.

It is latent semantic analysis: words and the character n-grams in them, hashed into
columns, weighed by rarity over the texts it was made from, and projected onto the main
directions of these. It knows that texts go together when their words occur in the same
company, and nothing about language. A real model knows synonyms, so take its figures
for a lower bound of what vectors bring, and as a test that fusing them does no harm.
"""

import math
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from services.memory.archive import words

NAME = "bench/lsa-192"
_COLUMNS = 4096
_DIMENSIONS = 192
_GRAM = 4


class Embedder:
    """Vectors for texts, after a collection of them."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = np.stack([_counts(text) for text in texts])
        occurring = (counts > 0).sum(axis=0)
        self._rarity = np.log((1 + len(texts)) / (1 + occurring)).astype(np.float32)
        _, _, directions = np.linalg.svd(_unit(counts * self._rarity), full_matrices=False)
        self._directions = directions[:_DIMENSIONS].T

    def __call__(self, text: str) -> list[float]:
        """Return the vector of a text."""
        weighed = _unit(_counts(text)[None] * self._rarity)
        vector: list[float] = (weighed @ self._directions)[0].tolist()
        return vector


def _counts(text: str) -> "NDArray[np.float32]":
    columns = np.zeros(_COLUMNS, np.float32)
    for term in words.terms(text):
        padded = f"^{term}$"
        grams = [padded[at : at + _GRAM] for at in range(max(1, len(padded) - _GRAM + 1))]
        columns[crc32(term.encode()) % _COLUMNS] += 1
        for gram in grams:
            columns[crc32(gram.encode()) % _COLUMNS] += 0.5 / math.sqrt(len(grams))
    return np.log1p(columns)


def _unit(rows: "NDArray[np.float32]") -> "NDArray[np.float32]":
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[np.float32] = rows / np.maximum(lengths, 1e-9)
    return unit

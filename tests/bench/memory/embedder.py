"""Embedders of the benchmark: a stand-in for an embedding model, and the embedded one.

The stand-in needs no weights. It is latent semantic analysis: words and the character n-grams in
them, hashed into columns, weighed by rarity over the texts it was made from, and projected onto the
main directions of these. It knows that texts go together when their words occur in the same
company, and nothing about language: its figures test that fusing vectors does no harm.
"""

import math
import os
from collections.abc import Sequence
from typing import Protocol
from zlib import crc32

import numpy as np
import orjson
from numpy.typing import NDArray

from services.common.text.packed_floats import unpack
from services.media.conversion.parts import Source
from services.memory.archive import words

_COLUMNS = 4096
_DIMENSIONS = 192
_GRAM = 4


class Embedder(Protocol):
    """Makes vectors of texts.

    Attributes:
        name: the name under which they are stored.
    """

    name: str

    def __call__(self, text: str, *, is_query: bool = False) -> list[float]:
        """Return the vector of a text, or of a question."""
        ...


class SemanticAnalysis:
    """Latent semantic analysis of a collection of texts."""

    name = "bench/lsa-192"

    def __init__(self, texts: Sequence[str]) -> None:
        counts = np.stack([_counts(text) for text in texts])
        occurring = (counts > 0).sum(axis=0)
        self._rarity = np.log((1 + len(texts)) / (1 + occurring)).astype(np.float32)
        _, _, directions = np.linalg.svd(_unit(counts * self._rarity), full_matrices=False)
        self._directions = directions[:_DIMENSIONS].T

    def __call__(self, text: str, *, is_query: bool = False) -> list[float]:
        """Return the vector of a text, or of a question."""
        weighed = _unit(_counts(text)[None] * self._rarity)
        vector: list[float] = (weighed @ self._directions)[0].tolist()
        return vector


class EmbeddedModel:
    """The embedded model; see `services.media.conversion.vectors`."""

    name = "embedded/multilingual-e5-small"

    def __init__(self, texts: Sequence[str]) -> None:
        # More threads than cores that are idle wait for each other, and take ten times as long.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        # The package is an extra, and reads the variable when it is imported.
        from services.media.conversion import vectors

        self._vectors = vectors.vectors

    def __call__(self, text: str, *, is_query: bool = False) -> list[float]:
        """Return the vector of a text, or of a question."""
        source = Source(orjson.dumps([text]), "application/json")
        made = self._vectors(source, is_query=is_query)
        return unpack(made.packed).tolist()


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

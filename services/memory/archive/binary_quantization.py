"""Packed vectors, and nearest neighbours by binary quantization. Pure.

Ten thousand vectors take ten megabytes: too much to read for a question, or to cache in a process.
So the sign bits of each vector are stored besides, packed in blocks, at a thirty-second of its
size. A search first ranks all turns by the Hamming distance of their sign bits, and then the
nearest few hundred by the cosine similarity of their whole vectors.
"""

import struct
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from services.memory.archive.top_k import are_within, top_k

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TURN = struct.Struct("<q")
# Bytes of a number in a packed vector.
VALUE_BYTES = 4
# Turns whose sign bits are compared at once: their data fit into a core's cache.
_AT_ONCE = 8192


def pack(values: Sequence[float]) -> bytes:
    """Return a vector normalized to length 1 as 32-bit floats; the zero vector stays zero."""
    return _unit(values).tobytes()


def quantize(turn: int, packed: bytes) -> bytes:
    """Return a turn and the sign bits of its vector, which `pack` returned."""
    import numpy as np

    signs = np.packbits(np.frombuffer(packed, np.float32) > 0).tobytes()
    return (_TURN.pack(turn) + signs).ljust(record_size(len(packed) // VALUE_BYTES), b"\0")


def record_size(dimensions: int) -> int:
    """Return the size of a turn and the sign bits of its vector, in bytes."""
    return _TURN.size + 8 * -(-dimensions // 64)


def transpose(blocks: Sequence[bytes], dimensions: int) -> list[bytes]:
    """Return the records of blocks, ordered by turn, as columns: turns, then 64 sign bits each."""
    import numpy as np

    records = np.frombuffer(b"".join(blocks), np.uint64).reshape(-1, record_size(dimensions) // 8)
    records = records[np.argsort(records[:, 0], kind="stable")]
    return [column.tobytes() for column in records.T]


def nearest_by_hamming(
    columns: Sequence[bytes],
    values: Sequence[float],
    *,
    before_turn: int,
    most: int,
    ranges: Sequence[tuple[int, int]] | None = None,
) -> list[int]:
    """Return the turns with the least Hamming distance to a vector; of equals, the later.

    Args:
        columns: the quantized vectors, of the same dimensions, as `transpose` returns them.
        values: the vector.
        before_turn: that turn and later ones are left out.
        most: maximum number of turns.
        ranges: if given, other turns are left out; see `top_k.are_within`.
    """
    import numpy as np

    turns, *words = (np.frombuffer(column, np.uint64) for column in columns)
    turns = turns[: bisect_left(turns, before_turn)]
    # The number of equal bits for each turn.
    similarity = np.zeros(len(turns), np.uint16)
    _, *asked = np.frombuffer(quantize(0, pack(values)), np.uint64)
    inverted = list(zip(words, np.invert(asked), strict=True))
    for first in range(0, len(turns), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        counts = similarity[part]
        for word, asked_word in inverted:
            counts += np.bitwise_count(word[part][: len(counts)] ^ asked_word)
    if ranges is not None:
        is_searched = are_within(turns.astype(np.intp), ranges)
        turns, similarity = turns[is_searched], similarity[is_searched]
    nearest: list[int] = turns[top_k(similarity, most)].tolist()
    return nearest


def cosine_similarities(packed: bytes, values: Sequence[float]) -> list[float]:
    """Return the cosine similarities of packed vectors to a vector of the same dimensions."""
    import numpy as np

    similarities = np.frombuffer(packed, np.float32).reshape(-1, len(values)) @ _unit(values)
    as_floats: list[float] = similarities.tolist()
    return as_floats


def _unit(values: Sequence[float]) -> "NDArray[np.float32]":
    import numpy as np

    vector = np.nan_to_num(np.asarray(values, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    largest = np.abs(vector).max(initial=0.0)
    if not largest:
        return vector.astype(np.float32)
    vector /= largest  # squares of very large or small numbers overflow
    unit: NDArray[np.float32] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit

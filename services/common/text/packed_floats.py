"""Vectors as little-endian 32-bit floats: the format of `EmbedResponse.vectors` and base64."""

import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Final

import orjson

WIDTH: Final = 4  # bytes of a number


def pack(numbers: Sequence[float]) -> bytes:
    """Return numbers as 32-bit floats.

    Raises:
        OverflowError: a number is too large for 32 bits.
        struct.error: an item is not a number.
    """
    return struct.pack(f"<{len(numbers)}f", *numbers)


def unpack(packed: bytes) -> "array[float]":
    """Return the numbers of a packed vector, whose size is a multiple of `WIDTH`."""
    numbers = array("f", packed)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def to_json(packed: bytes) -> bytes:
    """Return a packed vector as a JSON list, with the shortest form of each 32-bit float.

    A number that is not finite becomes `null`.
    """
    # Imported on demand: it takes 20 MB, and most processes write no vectors.
    import numpy as np

    return orjson.dumps(np.frombuffer(packed, "<f4"), option=orjson.OPT_SERIALIZE_NUMPY)

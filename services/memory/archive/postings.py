"""Packed postings of terms. Pure.

A posting has eight bytes: the turn, the frequency of the term in it, and the count of terms in the
turn. The postings of a term are stored in blocks by turn, so that a new turn rewrites little; a
search reads only the blocks of its terms.
"""

import struct
from collections.abc import Set

SIZE = 8
# Turns in a block of postings or of quantized vectors.
BLOCK = 4096

_POSTING = struct.Struct("<IHH")
_MOST = 0xFFFF


def pack(turn: int, count: int, length: int) -> bytes:
    """Return the posting of a term that occurs `count` times in a turn of `length` terms."""
    return _POSTING.pack(turn, min(count, _MOST), min(length, _MOST))


def without(packed: bytes, turns: Set[int], size: int = SIZE) -> bytes:
    """Return the records of other turns; each has `size` bytes, and begins with its turn."""
    records = (packed[at : at + size] for at in range(0, len(packed), size))
    return b"".join(one for one in records if int.from_bytes(one[:4], "little") not in turns)


def keep_before(packed: bytes, first_turn: int, size: int = SIZE) -> bytes:
    """Return the records before a turn; each has `size` bytes, and begins with its turn."""
    records = (packed[at : at + size] for at in range(0, len(packed), size))
    return b"".join(one for one in records if int.from_bytes(one[:4], "little") < first_turn)

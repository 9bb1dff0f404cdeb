"""Count the values in JSON text without parsing it.

Parsed JSON takes up to fifty times the memory of its text, so a body with too many values is
rejected before it is parsed. A value is a string, number, literal, array or object at any depth;
member names do not count.

`upper_bound` is fast, and counts too many values if strings contain punctuation. `count_values`
skips strings; it is used if the upper bound exceeds a limit.
"""

# Maximum number of values, at any depth, in a part of a request that is forwarded uninterpreted
# and that a provider's adapter parses at once.
MAX_OPAQUE_VALUES = 200_000

# Bytes that are scanned at once: large enough for the speed of C, small enough for memory.
_SLICE = 256 << 10
_PUNCTUATION = (b",", b"[", b"{")
_WHITESPACE = b" \t\r\n"


def upper_bound(text: bytes) -> int:
    """Return an upper bound of the number of values in `text`."""
    return 1 + sum(text.count(each) for each in _PUNCTUATION)


def exceeds(text: bytes, limit: int) -> bool:
    """Return whether JSON text has more than `limit` values; costs `count_values` at most."""
    # A value takes two bytes, with the comma or bracket beside it.
    if len(text) // 2 < limit or upper_bound(text) <= limit:
        return False
    return count_values(text, limit) > limit


def count_values(text: bytes, limit: int) -> int:
    """Return the number of values in JSON text.

    If the text is not valid JSON, the values before the first error are counted; the rest may add
    to the count.

    Args:
        text: JSON in UTF-8.
        limit: counting stops soon after it exceeds this number.
    """
    # Each value but the outermost follows a comma or opens a container that is not empty.
    count = 1
    in_string = False
    carried = b""  # an escape or an empty container that the end of a slice may have split
    for start in range(0, len(text), _SLICE):
        piece = carried + text[start : start + _SLICE]
        carried = b""
        backslashes = len(piece) - len(piece.rstrip(b"\\"))
        if backslashes % 2:
            piece, carried = piece[:-1], b"\\"
        # Remove pairs of backslashes first: only then does `\"` denote an escaped quotation mark.
        pieces = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        # Every second piece is inside a string; the first one if the last slice ended in a string.
        outside = pieces[in_string::2]
        in_string ^= len(pieces) % 2 == 0
        # One quotation mark represents each string, so that containers of strings are not empty.
        structure = b'"'.join(outside).translate(None, _WHITESPACE)
        if not in_string and not carried and structure.endswith((b"[", b"{")):
            carried, structure = structure[-1:], structure[:-1]
        count += structure.count(b",") + structure.count(b"[") + structure.count(b"{")
        count -= structure.count(b"[]") + structure.count(b"{}")
        if count > limit:
            return count
    return count

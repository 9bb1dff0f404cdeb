"""Count the values in JSON text without parsing it.

Parsed JSON takes up to fifty times the memory of its text, so a body with too many values is
refused before it is parsed. A value is a string, number, literal, array or object at any
depth; names of members are none.

`upper_bound` is fast and counts too many where strings hold punctuation. `count_values` skips
strings, and decides where the bound is above a limit.
"""

# Values, at any depth, of a part of a request that is passed on without being read, and which
# a provider's adapter parses in one go.
MAX_OPAQUE_VALUES = 200_000

# Bytes that are looked at together: enough for the speed of C, and little memory.
_SLICE = 256 << 10
_PUNCTUATION = (b",", b"[", b"{")
_WHITESPACE = b" \t\r\n"


def upper_bound(text: bytes) -> int:
    """Return a number that is at least that of the values in `text`."""
    return 1 + sum(text.count(each) for each in _PUNCTUATION)


def exceeds(text: bytes, limit: int) -> bool:
    """Return whether JSON text has more than `limit` values, at most costs of `count_values`."""
    # A value takes two bytes, with the comma or bracket beside it.
    if len(text) // 2 < limit or upper_bound(text) <= limit:
        return False
    return count_values(text, limit) > limit


def count_values(text: bytes, limit: int) -> int:
    """Return the number of values in JSON text.

    Where the text is not JSON, the values before the first error are counted, and what
    follows adds something or nothing.

    Args:
        text: JSON in UTF-8.
        limit: the count stops soon after it is above this.
    """
    # Each value but the outermost follows a comma or opens a container that is not empty.
    count = 1
    in_string = False
    held = b""  # an escape or an empty container that a slice's end may have cut
    for start in range(0, len(text), _SLICE):
        piece = held + text[start : start + _SLICE]
        held = b""
        backslashes = len(piece) - len(piece.rstrip(b"\\"))
        if backslashes % 2:
            piece, held = piece[:-1], b"\\"
        # In a run of backslashes each two are one; only then is one before a quotation mark its.
        pieces = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        # Every second piece lies within a string; the first one where the last slice ended in one.
        outside = pieces[in_string::2]
        in_string ^= len(pieces) % 2 == 0
        # A quotation mark stands for each string, so that containers of strings are not empty.
        structure = b'"'.join(outside).translate(None, _WHITESPACE)
        if not in_string and not held and structure.endswith((b"[", b"{")):
            held, structure = structure[-1:], structure[:-1]
        count += structure.count(b",") + structure.count(b"[") + structure.count(b"{")
        count -= structure.count(b"[]") + structure.count(b"{}")
        if count > limit:
            return count
    return count

"""Writes events of a streamed response, with their sequence numbers."""

from collections.abc import Sequence
from itertools import chain, repeat

import orjson

# Digits of small numbers.
_DIGITS = tuple(b"%d" % number for number in range(1024))
_EVENT = b'event: %b\ndata: {"type":"%b",%b,"sequence_number":%d}\n\n'


class Deltas:
    """The JSON around the deltas of one text or of one call's arguments.

    Attributes:
        head: what comes before the string of a delta.
        tail: what comes after it, up to the sequence number.
    """

    __slots__ = ("head", "tail")

    def __init__(self, kind: str, fields: dict[str, object], *, has_logprobs: bool = False) -> None:
        """Create the JSON around deltas of a type, with the fields beside the delta."""
        name = kind.encode()
        around = orjson.dumps(fields)[1:-1]
        self.head = b'event: %b\ndata: {"type":"%b",%b,"delta":' % (name, name, around)
        self.tail = b',"logprobs":[],"sequence_number":' if has_logprobs else b',"sequence_number":'


class EventWriter:
    """The events of a stream that have not been taken yet.

    Attributes:
        number: the next sequence number.
        out: the bytes of the events.
    """

    __slots__ = ("number", "out")

    def __init__(self) -> None:
        self.number = 0
        self.out: list[bytes] = []

    def take(self) -> bytes:
        """Return the events written since the last call."""
        taken = b"".join(self.out)
        self.out.clear()
        return taken

    def write(self, kind: str, **fields: object) -> None:
        """Write an event."""
        name = kind.encode()
        self.out.append(_EVENT % (name, name, orjson.dumps(fields)[1:-1], self.number))
        self.number += 1

    def write_delta(self, deltas: Deltas, text: str, pieces: Sequence[bytes]) -> None:
        """Write a delta as one event, or as an event per piece if there are several."""
        number = self.number
        if not pieces:
            self.out += (deltas.head, orjson.dumps(text), deltas.tail, b"%d}\n\n" % number)
            self.number = number + 1
            return
        self.number = number + len(pieces)
        between = repeat(b'"' + deltas.tail)
        digits = _digits(number, self.number)
        heads = repeat(b'}\n\n%b"' % deltas.head)
        events = chain.from_iterable(zip(heads, pieces, between, digits, strict=False))
        next(events)  # the end of an event before the first one
        self.out += (deltas.head, b'"', *events, b"}\n\n")


def _digits(start: int, end: int) -> Sequence[bytes]:
    """Return the digits of the numbers from `start` up to `end`."""
    if end <= len(_DIGITS):
        return _DIGITS[start:end]
    return [b"%d" % number for number in range(start, end)]

"""Writer of the events of a streamed response, with their sequence numbers."""

from collections.abc import Sequence
from itertools import chain, repeat

import orjson

# JSON after a delta, up to the sequence number: of a call or a refusal, and of a text.
_TAILS = (b',"sequence_number":', b',"logprobs":[],"sequence_number":')
# JSON after the text of a delta, for small sequence numbers.
_ENDS = tuple([b'"%b%d}\n\n' % (tail, number) for number in range(1024)] for tail in _TAILS)
_EVENT = b'event: %b\ndata: {"type":"%b",%b,"sequence_number":%d}\n\n'


class Deltas:
    """The JSON around the deltas of one text or of one call's arguments.

    Attributes:
        head: the JSON before the string of a delta.
        tail: the JSON after that string, up to the sequence number.
        ends: the JSON after the text of a delta, for small sequence numbers.
    """

    __slots__ = ("ends", "head", "tail")

    def __init__(self, kind: str, fields: dict[str, object], *, has_logprobs: bool = False) -> None:
        """Create the JSON around deltas of a type, with the fields beside the delta."""
        name = kind.encode()
        around = orjson.dumps(fields)[1:-1]
        self.head = b'event: %b\ndata: {"type":"%b",%b,"delta":' % (name, name, around)
        self.tail, self.ends = _TAILS[has_logprobs], _ENDS[has_logprobs]

    def end(self, number: int) -> bytes:
        """Return the JSON after the text of the delta with a sequence number."""
        return b'"%b%d}\n\n' % (self.tail, number)


class EventWriter:
    """A buffer of the events of a stream.

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
        ends = deltas.ends[number : self.number]
        if len(ends) < len(pieces):
            ends = [deltas.end(index) for index in range(number, self.number)]
        self.out += chain.from_iterable(zip(repeat(deltas.head + b'"'), pieces, ends, strict=False))

"""Server-sent events, parsed as their bytes come in.

The format is that of the HTML standard, section 9.2.6 ("Interpreting an event
stream"): lines end in LF, CRLF or CR, a blank line dispatches, `data` lines join with
LF, comments and unknown fields go. `id` and `retry` serve reconnecting, which a
generated answer has no use for, so they go as well.
"""

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_DATA = b"data: "
_EVENT = b"event: "
_DEFAULT_EVENT = "message"


class ServerSentEvent(NamedTuple):
    """One dispatched event.

    Attributes:
        event: its type; "message" where the stream names none.
        data: its data lines, joined with LF.
    """

    event: str
    data: bytes


class SseTooLongError(Exception):
    """A line, or the data of one event, is longer than the parser takes."""


class SseParser:
    """Turns chunks of any size, cut anywhere, into events.

    Time is linear in the bytes fed and memory is bounded by `max_line` and one chunk.
    After it has raised, a parser is of no more use.
    """

    def __init__(self, max_line: int) -> None:
        """Take the most bytes that a line, and the data of an event, may have."""
        self._max_line = max_line
        self._opening: bytes | None = b""  # what may yet become a BOM; None past it
        self._after_cr = False
        self._partial: list[bytes] = []  # a line without its end, in pieces
        self._partial_size = 0
        self._event = b""
        self._data: list[bytes] = []
        self._data_size = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and give the events they complete.

        Raises:
            SseTooLongError: a line or an event is over the bound.
        """
        if self._opening is not None:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        if self._partial:
            # Joined once a line, so a long one that comes in pieces stays linear.
            chunk = b"".join((*self._partial, chunk))
            self._partial.clear()
            self._partial_size = 0
        return self._lines(chunk)

    def close(self) -> bool:
        """Tell whether the stream ended within an event; such an event is not dispatched."""
        return bool(self._opening or self._partial or self._event or self._data)

    def _without_bom(self, chunk: bytes) -> bytes:
        opening = (self._opening or b"") + chunk
        if len(opening) < len(_BOM) and _BOM.startswith(opening):
            self._opening = opening
            return b""
        self._opening = None
        return opening.removeprefix(_BOM)

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._partial.append(piece)
            self._partial_size += len(piece)
            if self._partial_size > self._max_line:
                raise SseTooLongError

    def _lines(self, text: bytes) -> list[ServerSentEvent]:
        """Read text that holds at least one line end; every one of them is LF."""
        events: list[ServerSentEvent] = []
        if self._data or self._event:
            head, blank, text = self._to_blank_line(text)
            for line in head:
                self._field(line)
            if not blank:
                self._keep(text)
                return events
            self._dispatch(events)
        *blocks, tail = text.split(b"\n\n")
        for block in blocks:
            self._block(block, events)
        *lines, rest = tail.split(b"\n")
        for line in lines:
            # The blank line of an odd run of LFs dispatches nothing: the event went before it.
            if line:
                self._field(line)
        self._keep(rest)
        return events

    def _to_blank_line(self, text: bytes) -> tuple[list[bytes], bool, bytes]:
        """Give the lines up to the first blank one, whether there is one, and what follows."""
        if text.startswith(b"\n"):
            return [], True, text[1:]
        end = text.find(b"\n\n")
        if end >= 0:
            return text[:end].split(b"\n"), True, text[end + 2 :]
        *lines, rest = text.split(b"\n")
        return lines, False, rest

    def _block(self, block: bytes, events: list[ServerSentEvent]) -> None:
        """Read the lines of one whole event, the two usual forms without taking them apart."""
        if len(block) <= self._max_line:
            if block.startswith(_DATA) and b"\n" not in block:
                events.append(ServerSentEvent(_DEFAULT_EVENT, block[len(_DATA) :]))
                return
            if block.startswith(_EVENT):
                end = block.find(b"\n")
                if block.startswith(_DATA, end + 1) and block.find(b"\n", end + 1) < 0 <= end:
                    name = block[len(_EVENT) : end].decode("utf-8", "replace")
                    events.append(
                        ServerSentEvent(name or _DEFAULT_EVENT, block[end + 1 + len(_DATA) :])
                    )
                    return
        for line in block.split(b"\n"):
            self._field(line)
        self._dispatch(events)

    def _field(self, line: bytes) -> None:
        if len(line) > self._max_line:
            raise SseTooLongError
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data_size += len(value)
            if self._data_size > self._max_line:
                raise SseTooLongError
            self._data.append(value)
        elif name == b"event":
            self._event = value

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data:
            name = self._event.decode("utf-8", "replace") or _DEFAULT_EVENT
            events.append(ServerSentEvent(name, b"\n".join(self._data)))
        self._event = b""
        self._data = []
        self._data_size = 0

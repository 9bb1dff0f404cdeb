"""Split and parse server-sent events.

The format is that of the HTML standard, section 9.2.6 ("Interpreting an event stream"): lines end
in LF, CRLF or CR, a blank line dispatches, `data` lines are joined with LF, and comments and
unknown fields are ignored. `id` and `retry` serve reconnecting, which generated answers do not
support, and are ignored too. So are events with empty data, which some servers send as heartbeats.
"""

import re
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_DATA = b"data: "
_EVENT = b"event: "
BLANK = b"\n\n"
_DEFAULT_EVENT = "message"
# Text without effect at the start of an event: blank lines, comments, and events without data.
_NOTHING = re.compile(rb"(?:\n|:[^\n]*\n|(?:(?!data)[^\n]++\n)++(?=\n))*+")
# Bound on lines per text: each one takes some 50 bytes of memory, whatever its length.
_MAX_LINES = 1 << 18
# The beginning of an event stream; no JSON begins like this.
_BEGINNING = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*+(?:data|event|id|retry)?:")


class ServerSentEvent(NamedTuple):
    """One dispatched event.

    Attributes:
        event: its type; "message" by default.
        data: its data lines, joined with LF.
    """

    event: str
    data: bytes


class SseTooLongError(Exception):
    """Error raised for an event that exceeds the limit."""


class SseSplitter:
    """Splits a stream into complete events, from chunks of any size.

    Time is linear in the input, and memory is bounded by `max_event` and one chunk. The splitter
    cannot be used after an error.
    """

    def __init__(self, max_event: int) -> None:
        """Create a splitter; `max_event` is the maximum size of an event's lines in bytes."""
        self._max_event = max_event
        self._opening: bytes | None = b""  # possible start of a BOM; None after it
        self._after_cr = False
        self._held = bytearray()  # an incomplete event

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk; return the text of the completed events, for `read_event`.

        Raises:
            SseTooLongError: an event exceeds the limit, or has too many lines.
        """
        if self._opening is not None and chunk:
            if self._opening or chunk.startswith(_BOM[:1]):
                chunk = self._without_bom(chunk)
            else:
                self._opening = None
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._held:
            if BLANK not in chunk and not (chunk.startswith(b"\n") and self._held.endswith(b"\n")):
                self._buffer(chunk)
                return b""
            # Joined once per event, so that a long event in many chunks takes linear time.
            chunk = b"".join((self._held, chunk))
            self._held = bytearray()
        end = chunk.rfind(BLANK) + len(BLANK)
        if end < len(BLANK):
            self._buffer(chunk)
            return b""
        if end < len(chunk):
            self._buffer(chunk[end:])
        text = chunk[:end]
        if len(text) > self._max_event and max(map(len, text.split(BLANK))) > self._max_event:
            raise SseTooLongError
        if len(text) > _MAX_LINES and text.count(b"\n") > _MAX_LINES:
            raise SseTooLongError
        return text

    def _without_bom(self, chunk: bytes) -> bytes:
        opening = (self._opening or b"") + chunk
        if len(opening) < len(_BOM) and _BOM.startswith(opening):
            self._opening = opening
            return b""
        self._opening = None
        return opening.removeprefix(_BOM)

    def _buffer(self, piece: bytes) -> None:
        self._held += piece
        # One byte more: the first line feed of the blank line may be held already.
        if len(self._held) > self._max_event + 1:
            raise SseTooLongError


def is_event_stream(body: bytes) -> bool:
    """Return whether a body begins like an event stream, not like JSON."""
    return _BEGINNING.match(body) is not None


def read_event(text: bytes, at: int) -> tuple[ServerSentEvent | None, int]:
    """Parse the event that starts at `at`; return it and the start of the next one.

    Args:
        text: text returned by `SseSplitter`.
        at: start of an event.

    Returns:
        None in place of an event without data, or with only white space.
    """
    # Nearly all events consist of a data line, or of an event line and a data line.
    if text.startswith(_DATA, at):
        end = text.index(b"\n", at)
        data = text[at + len(_DATA) : end]
        if text.startswith(b"\n", end + 1) and data.strip():
            return ServerSentEvent(_DEFAULT_EVENT, data), end + len(BLANK)
    elif text.startswith(_EVENT, at):
        begin = text.index(b"\n", at) + 1
        if text.startswith(_DATA, begin):
            end = text.index(b"\n", begin)
            data = text[begin + len(_DATA) : end]
            if text.startswith(b"\n", end + 1) and data.strip():
                name = text[at + len(_EVENT) : begin - 1].decode("utf-8", "replace")
                return ServerSentEvent(name or _DEFAULT_EVENT, data), end + len(BLANK)
    elif text.startswith(b"\n", at):
        return None, _after_nothing(text, at)
    return _read_lines(text, at)


def _read_lines(text: bytes, at: int) -> tuple[ServerSentEvent | None, int]:
    """Parse an event with any lines; see `read_event`."""
    end = text.index(BLANK, at)
    lines = text[at:end]
    name, data = b"", list[bytes]()
    for line in lines.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    joined = b"\n".join(data)
    if not joined.strip():
        return None, _after_nothing(text, end + len(BLANK))
    event = name.decode("utf-8", "replace") or _DEFAULT_EVENT
    return ServerSentEvent(event, joined), end + len(BLANK)


def _after_nothing(text: bytes, at: int) -> int:
    """Return the start of the next event with content, or the end of the text."""
    match = _NOTHING.match(text, at)
    assert match is not None, "it matches anything"
    return match.end()

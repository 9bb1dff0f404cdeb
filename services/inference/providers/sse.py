"""Server-sent events, cut out of bytes as they come in, and read.

The format is that of the HTML standard, section 9.2.6 ("Interpreting an event
stream"): lines end in LF, CRLF or CR, a blank line dispatches, `data` lines join with
LF, comments and unknown fields go. `id` and `retry` serve reconnecting, which a
generated answer has no use for, so they go as well.
"""

import re
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_DATA = b"data: "
BLANK = b"\n\n"
_DEFAULT_EVENT = "message"
# What dispatches nothing, where an event may begin: blank lines, comments, and whole events
# without data.
_NOTHING = re.compile(rb"(?:\n|:[^\n]*\n|(?:(?!data)[^\n]++\n)++(?=\n))*+")
# A line takes some 50 bytes, whatever it holds.
_MAX_LINES = 1 << 18


class ServerSentEvent(NamedTuple):
    """One dispatched event.

    Attributes:
        event: its type; "message" where the stream names none.
        data: its data lines, joined with LF.
    """

    event: str
    data: bytes


class SseTooLongError(Exception):
    """An event is longer than the cutter takes."""


class SseSplitter:
    """Cuts a stream that comes in chunks of any size after its events.

    Time is linear in the bytes fed and memory is bounded by `max_event` and one chunk.
    After it has raised, a cutter is of no more use.
    """

    def __init__(self, max_event: int) -> None:
        """Take the most bytes that the lines of an event may have."""
        self._max_event = max_event
        self._opening: bytes | None = b""  # what may yet become a BOM; None past it
        self._after_cr = False
        self._held = bytearray()  # an event without its end

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes; return the text of the events they complete, for `read_event`.

        Raises:
            SseTooLongError: an event is over the bound, or has far too many lines.
        """
        if self._opening is not None:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if self._held:
            if BLANK not in chunk and not (chunk.startswith(b"\n") and self._held.endswith(b"\n")):
                self._hold(chunk)
                return b""
            # Joined once an event, so a long one that comes in pieces stays linear.
            chunk = b"".join((self._held, chunk))
            self._held = bytearray()
        end = chunk.rfind(BLANK) + len(BLANK)
        if end < len(BLANK):
            self._hold(chunk)
            return b""
        if end < len(chunk):
            self._hold(chunk[end:])
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

    def _hold(self, piece: bytes) -> None:
        self._held += piece
        # The last of its line ends may be there already.
        if len(self._held) > self._max_event + 1:
            raise SseTooLongError


def read_event(text: bytes, at: int) -> tuple[ServerSentEvent | None, int]:
    """Read the event that begins at `at`; return where the next one begins, too.

    Args:
        text: what an `SseSplitter` gave.
        at: where an event begins.

    Returns:
        None in place of an event that has no data, and thus is none.
    """
    if text.startswith(b"\n", at):
        return None, _after_nothing(text, at)
    end = text.index(BLANK, at)
    lines = text[at:end]
    if lines.startswith(_DATA) and b"\n" not in lines:
        return ServerSentEvent(_DEFAULT_EVENT, lines[len(_DATA) :]), end + len(BLANK)
    name, data = b"", list[bytes]()
    for line in lines.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    if not data:
        return None, _after_nothing(text, end + len(BLANK))
    event = name.decode("utf-8", "replace") or _DEFAULT_EVENT
    return ServerSentEvent(event, b"\n".join(data)), end + len(BLANK)


def _after_nothing(text: bytes, at: int) -> int:
    """Return where what begins at `at` says something, or the text ends."""
    match = _NOTHING.match(text, at)
    assert match is not None, "it matches anything"
    return match.end()

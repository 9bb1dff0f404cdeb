"""What goes over a link, as bytes; `gateway/link/v1/link.proto` has the table.

Pure: nothing here knows of calls or connections.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

OPEN: Final = 1
MESSAGE: Final = 2
MORE: Final = 3
HALF_CLOSE: Final = 4
CANCEL: Final = 5
CREDIT: Final = 6
HEADERS: Final = 7
STATUS: Final = 8
GOAWAY: Final = 9

# Bytes that an end may send of a call before it is given credit.
WINDOW: Final = 256 << 10
# Credit that a message takes beside its bytes.
MESSAGE_COST: Final = 64
# Bytes of a message in one frame.
FRAGMENT: Final = 64 << 10
# Bytes of a batch at which no more is added, and those that it never reaches.
BATCH: Final = 256 << 10
MAX_BATCH: Final = 1 << 20
MAX_METADATA: Final = 16 << 10
MAX_CALL: Final = (1 << 32) - 1
_MAX_DEADLINE_MS: Final = (1 << 32) - 1

_HEADER = struct.Struct("<IBI")
_OPEN = struct.Struct("<IBH")
_ENTRY = struct.Struct("<HI")
_STATUS = struct.Struct("<HI")
_NUMBER = struct.Struct("<I")
_MESSAGE = struct.Struct("<IBII")
_HEADER_SIZE: Final = _HEADER.size
_ONE_MESSAGE: Final = 1

Metadata = tuple[tuple[str, str | bytes], ...]


class Entry(NamedTuple):
    """One entry of metadata, as `grpc.aio` gives it to servicers."""

    key: str
    value: str | bytes


class FrameError(Exception):
    """What the other end sent makes no sense; the text tells why, and holds nothing of it."""


class MetadataTooLargeError(Exception):
    """Metadata has more bytes than a frame takes."""


def open_call(
    call: int, method: bytes, metadata: bytes, deadline_ms: int | None, *, one_message: bool
) -> bytes:
    """Give the frame that opens a call.

    Args:
        call: its number.
        method: `/package.Service/Method`.
        metadata: as `pack_metadata` gives it.
        deadline_ms: milliseconds until it must end, or None.
        one_message: whether the request is one message.
    """
    # 0 says that there is none, so that a deadline of no time left is sent as the shortest.
    deadline = 0 if deadline_ms is None else min(max(deadline_ms, 1), _MAX_DEADLINE_MS)
    head = _OPEN.pack(deadline, one_message, len(method))
    size = len(head) + len(method) + len(metadata)
    return b"".join((_HEADER.pack(call, OPEN, size), head, method, metadata))


def message_header(call: int, size: int, piece: int) -> bytes:
    """Give what stands before the first `piece` bytes of a message of `size` bytes."""
    return _MESSAGE.pack(call, MESSAGE, piece + 4, size)


def more_header(call: int, piece: int) -> bytes:
    """Give what stands before the next `piece` bytes of a message."""
    return _HEADER.pack(call, MORE, piece)


def bare(call: int, kind: int) -> bytes:
    """Give a HALF_CLOSE, CANCEL or GOAWAY."""
    return _HEADER.pack(call, kind, 0)


def credit(call: int, size: int) -> bytes:
    """Give the frame that allows `size` more bytes."""
    return _MESSAGE.pack(call, CREDIT, 4, size)


def headers(call: int, metadata: bytes) -> bytes:
    """Give the frame with initial metadata."""
    return _HEADER.pack(call, HEADERS, len(metadata)) + metadata


def status(call: int, code: int, details: str, metadata: bytes) -> bytes:
    """Give the frame that ends a call."""
    text = details.encode(errors="replace")
    head = _STATUS.pack(code, len(text))
    size = len(head) + len(text) + len(metadata)
    return b"".join((_HEADER.pack(call, STATUS, size), head, text, metadata))


def pack_metadata(entries: Iterable[tuple[str, str | bytes]]) -> bytes:
    """Give metadata as bytes.

    Raises:
        MetadataTooLargeError: a frame does not take so much.
    """
    parts: list[bytes] = []
    for key, value in entries:
        name = key.encode()
        content = value.encode() if isinstance(value, str) else value
        if len(name) + len(content) > MAX_METADATA:
            raise MetadataTooLargeError
        parts += (_ENTRY.pack(len(name), len(content)), name, content)
    packed = b"".join(parts)
    if len(packed) > MAX_METADATA:
        raise MetadataTooLargeError
    return packed


def scan(batch: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Give of each frame: call, kind, and where its bytes begin and end in the batch.

    Raises:
        FrameError: the batch is cut, or a kind is unknown.
    """
    at, end = 0, len(batch)
    unpack = _HEADER.unpack_from
    while at < end:
        if end - at < _HEADER_SIZE:
            raise FrameError("a frame's header is cut")
        call, kind, size = unpack(batch, at)
        at += _HEADER_SIZE
        stop = at + size
        if stop > end:
            raise FrameError("a frame is cut")
        if not OPEN <= kind <= GOAWAY:
            raise FrameError("a frame of unknown kind")
        yield call, kind, at, stop
        at = stop


def read_open(batch: bytes, at: int, stop: int) -> tuple[str, Metadata, int | None, bool]:
    """Give method, metadata, milliseconds to the deadline, and whether one message follows.

    Raises:
        FrameError: it is no such frame.
    """
    if stop - at < _OPEN.size:
        raise FrameError("an OPEN is cut")
    deadline, flags, size = _OPEN.unpack_from(batch, at)
    at += _OPEN.size
    if at + size > stop or flags > _ONE_MESSAGE:
        raise FrameError("an OPEN is malformed")
    method = _text(batch[at : at + size])
    return method, read_metadata(batch, at + size, stop), deadline or None, bool(flags)


def read_message(batch: bytes, at: int, stop: int) -> tuple[int, bytes]:
    """Give the size of a message and its beginning.

    Raises:
        FrameError: it is no such frame.
    """
    if stop - at < 4:
        raise FrameError("a MESSAGE is cut")
    return _NUMBER.unpack_from(batch, at)[0], batch[at + 4 : stop]


def read_credit(batch: bytes, at: int, stop: int) -> int:
    """Give the bytes of credit.

    Raises:
        FrameError: it is no such frame.
    """
    if stop - at != 4:
        raise FrameError("a CREDIT is malformed")
    number: int = _NUMBER.unpack_from(batch, at)[0]
    return number


def read_status(batch: bytes, at: int, stop: int) -> tuple[int, str, Metadata]:
    """Give status code, text and trailing metadata.

    Raises:
        FrameError: it is no such frame.
    """
    if stop - at < _STATUS.size:
        raise FrameError("a STATUS is cut")
    code, size = _STATUS.unpack_from(batch, at)
    at += _STATUS.size
    if at + size > stop:
        raise FrameError("a STATUS is cut")
    if at + size == stop and not size:
        return code, "", ()
    return code, _text(batch[at : at + size]), read_metadata(batch, at + size, stop)


def read_metadata(batch: bytes, at: int, stop: int) -> Metadata:
    """Give the entries of metadata.

    Raises:
        FrameError: it is cut, too large or no UTF-8.
    """
    if stop - at > MAX_METADATA:
        raise FrameError("metadata is too large")
    entries: list[Entry] = []
    while at < stop:
        if stop - at < _ENTRY.size:
            raise FrameError("metadata is cut")
        name, content = _ENTRY.unpack_from(batch, at)
        at += _ENTRY.size
        middle, end = at + name, at + name + content
        if end > stop:
            raise FrameError("metadata is cut")
        key, value = _text(batch[at:middle]), batch[middle:end]
        entries.append(Entry(key, value if key.endswith("-bin") else _text(value)))
        at = end
    return tuple(entries)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise FrameError("a text is no UTF-8") from None

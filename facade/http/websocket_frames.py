"""Frames of WebSockets (RFC 6455), as a server reads and writes them. Pure."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from enum import IntEnum
from hashlib import sha1
from typing import Final, NamedTuple

VERSION: Final = "13"
# Section 1.3.
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16
# Section 5.2: the bits of the first two bytes, and the sizes that announce a longer length.
_FINAL, _RESERVED, _OPCODE, _MASKED, _SIZE = 0x80, 0x70, 0x0F, 0x80, 0x7F
_TWO_BYTES, _EIGHT_BYTES = 126, 127
_MASK_BYTES: Final = 4
# Section 5.5: the payload of a control frame.
_MAX_CONTROL: Final = 125


class Opcode(IntEnum):
    """The kind of a frame."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class CloseCode(IntEnum):
    """Reasons to close a connection (section 7.4.1, and the registry of IANA)."""

    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    POLICY_VIOLATION = 1008
    TOO_LARGE = 1009
    RESTARTING = 1012
    TRY_AGAIN_LATER = 1013


class FrameError(Exception):
    """Error raised for a frame that a client may not send."""


class FrameHead(NamedTuple):
    """The head of a client's frame.

    Attributes:
        opcode: the kind.
        is_final: whether the frame is the last of its message.
        size: the bytes of the payload.
        mask: the mask of the payload.
        head_size: the bytes of the head itself.
    """

    opcode: Opcode
    is_final: bool
    size: int
    mask: bytes
    head_size: int


def accept_of(key: str) -> str | None:
    """Return `Sec-WebSocket-Accept` for a client's key; None for a key that is none."""
    try:
        if len(b64decode(key, validate=True)) != _KEY_BYTES:
            return None
    except (Base64Error, ValueError):
        return None
    return b64encode(sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()


def read_head(data: bytes | bytearray) -> FrameHead | None:
    """Return the head of the frame at the start of `data`; None if it is incomplete.

    Raises:
        FrameError: the frame breaks the protocol, or uses an extension.
    """
    if len(data) < 2:
        return None
    first, second = data[0], data[1]
    is_final = bool(first & _FINAL)
    try:
        opcode = Opcode(first & _OPCODE)
    except ValueError:
        raise FrameError("unknown opcode") from None
    if first & _RESERVED:
        raise FrameError("extensions are not supported")
    if not second & _MASKED:
        raise FrameError("frames of clients must be masked")
    size = second & _SIZE
    if opcode >= Opcode.CLOSE and not (is_final and size <= _MAX_CONTROL):
        raise FrameError("control frames must be short and unfragmented")
    begin = 2
    if size >= _TWO_BYTES:
        begin += 8 if size == _EIGHT_BYTES else 2
        if len(data) < begin:
            return None
        size = int.from_bytes(data[2:begin])
    end = begin + _MASK_BYTES
    if len(data) < end:
        return None
    return FrameHead(opcode, is_final, size, bytes(data[begin:end]), end)


def unmasked(data: bytes, mask: bytes, offset: int) -> bytes:
    """Return part of a payload without its mask; `offset` is its place in the payload."""
    size, turn = len(data), offset % _MASK_BYTES
    key = (mask[turn:] + mask[:turn]) * (size // _MASK_BYTES + 1)
    # Integers of any size, which need no loop in Python.
    number = int.from_bytes(data, "little") ^ int.from_bytes(key[:size], "little")
    return number.to_bytes(size, "little")


def frame(opcode: Opcode, payload: bytes) -> bytes:
    """Return a whole frame of the server."""
    size = len(payload)
    if size < _TWO_BYTES:
        length = bytes((size,))
    elif size < 1 << 16:
        length = bytes((_TWO_BYTES,)) + size.to_bytes(2)
    else:
        length = bytes((_EIGHT_BYTES,)) + size.to_bytes(8)
    return b"".join((bytes((_FINAL | opcode,)), length, payload))


def close_payload(code: int, reason: str = "") -> bytes:
    """Return the payload of a frame that closes a connection; `reason` is short, for people."""
    return code.to_bytes(2) + reason.encode()[: _MAX_CONTROL - 2]

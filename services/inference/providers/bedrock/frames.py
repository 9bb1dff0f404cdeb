"""Split Amazon's event streams into messages, and rewrite them as server-sent events. Pure.

The format is `application/vnd.amazon.eventstream`: a prelude (the total length, the length of the
headers, both as 32-bit big-endian numbers, and their CRC32), headers, a payload, and the CRC32 of
all before it. Source: the Smithy specification, "Amazon Event Stream Specification".
"""

import base64
import binascii
import struct
from collections.abc import Mapping
from typing import Final

import orjson

from services.common.errors import UpstreamError
from services.inference.providers.bedrock.errors import error_object
from services.inference.providers.failures import broken_answer
from services.inference.providers.sse import SseTooLongError

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"
_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_LENGTH = struct.Struct(">H")
_SMALLEST = _PRELUDE.size + _CRC.size
# Types of header values, and the sizes of those with a fixed size.
_BYTES, _STRING = 6, 7
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
# Events whose payload has an event of the model's own API as base64 text (InvokeModel).
_CHUNK = "chunk"


class FrameSplitter:
    """Splits a stream into messages, from chunks of any size.

    Time is linear in the input, and memory is bounded by `max_message` and one chunk. The splitter
    cannot be used after an error.
    """

    def __init__(self, provider: str, max_message: int) -> None:
        """Create a splitter.

        Args:
            provider: the provider's name in the settings, for errors.
            max_message: the maximum size of a message in bytes.
        """
        self._provider = provider
        self._max_message = max_message
        self._held = bytearray()
        self._needed = _PRELUDE.size  # size of `_held` from which it can be read further

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk; return the completed messages as server-sent events, for `sse.read_event`.

        The event is the message's type, the data its payload. An exception becomes an event `error`
        with an error object.

        Raises:
            SseTooLongError: a message exceeds the limit.
            UpstreamError: a message is malformed, or a checksum is wrong.
        """
        held = self._held
        held += chunk
        if len(held) < self._needed:
            return b""
        events: list[bytes] = []
        begin = 0
        while True:
            end = begin + self._size_at(begin)
            if end > len(held) or end == begin:
                self._needed = max(end - begin, _PRELUDE.size)
                break
            events.append(self._read(bytes(held[begin:end])))
            begin = end
        del held[:begin]
        return b"".join(events)

    def _size_at(self, begin: int) -> int:
        """Return the size of the message that begins at `begin`; 0 if its prelude is incomplete."""
        prelude = bytes(self._held[begin : begin + _PRELUDE.size])
        if len(prelude) < _PRELUDE.size:
            return 0
        size, headers_size, crc = _PRELUDE.unpack(prelude)
        if binascii.crc32(prelude[: -_CRC.size]) != crc or size < _SMALLEST + headers_size:
            raise self._malformed()
        if size > self._max_message:
            raise SseTooLongError
        return int(size)

    def _read(self, message: bytes) -> bytes:
        """Return a complete message as a server-sent event."""
        (crc,) = _CRC.unpack_from(message, len(message) - _CRC.size)
        if binascii.crc32(memoryview(message)[: -_CRC.size]) != crc:
            raise self._malformed()
        payload_at = _PRELUDE.size + _PRELUDE.unpack_from(message)[1]
        try:
            headers = _read_headers(message[_PRELUDE.size : payload_at])
            return _server_sent(headers, message[payload_at : -_CRC.size])
        except (ValueError, LookupError, TypeError, struct.error) as error:
            raise self._malformed() from error

    def _malformed(self) -> UpstreamError:
        return broken_answer(self._provider, "streamed a malformed message")


def _read_headers(data: bytes) -> Mapping[str, str]:
    """Return the string headers of a message; others are skipped.

    Raises:
        ValueError, LookupError, struct.error: the headers are malformed.
    """
    headers: dict[str, str] = {}
    at = 0
    while at < len(data):
        name_end = at + 1 + data[at]
        name, kind, at = data[at + 1 : name_end].decode(), data[name_end], name_end + 1
        if kind in (_BYTES, _STRING):
            (size,) = _LENGTH.unpack_from(data, at)
            at += _LENGTH.size
        else:
            size = _FIXED_SIZES[kind]
        if at + size > len(data):
            raise ValueError("a header beyond the end of the headers")
        if kind == _STRING:
            headers[name] = data[at : at + size].decode()
        at += size
    return headers


def _server_sent(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return a message as a server-sent event.

    Raises:
        ValueError, LookupError, TypeError: the message is malformed.
    """
    kind = headers[":message-type"]
    if kind == "event":
        event = headers[":event-type"]
        if event == _CHUNK:
            return b"data: " + _one_line(_chunk_of(payload)) + b"\n\n"
        if not event.isalnum():
            raise ValueError("an invalid name of an event")
        return b"event: %b\ndata: %b\n\n" % (event.encode(), _one_line(payload) or b"{}")
    if kind == "exception":
        name = headers[":exception-type"]
        message = _message_of(orjson.loads(payload or b"{}"))
    else:  # an error that the service has no type for
        name, message = headers[":error-code"], headers.get(":error-message", "")
    return b"event: error\ndata: " + orjson.dumps(error_object(name, message)) + b"\n\n"


def _message_of(fields: object) -> str:
    match fields:
        case {"originalMessage": str(message)} | {"message": str(message)}:
            return message
    return ""


def _chunk_of(payload: bytes) -> bytes:
    return base64.b64decode(orjson.loads(payload)["bytes"], validate=True)


def _one_line(data: bytes) -> bytes:
    """Return JSON without line breaks, which are white space there."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\r", b" ").replace(b"\n", b" ")
    return data

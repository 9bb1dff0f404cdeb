"""Event streams of AWS: split at any byte, damaged in any byte, and never too large."""

import binascii
import struct

import pytest

from services.common.errors import UpstreamError
from services.inference.providers.bedrock.frames import FrameSplitter
from services.inference.providers.sse import SseTooLongError
from tests.services.inference.providers.bedrock.calls import stream_of
from tests.upstream.bedrock import wire

STREAM = stream_of(("messageStart", {"role": "assistant"}), ("metadata", {"usage": {}}))
EVENTS = (
    b'event: messageStart\ndata: {"role":"assistant"}\n\nevent: metadata\ndata: {"usage":{}}\n\n'
)


def splitter(most: int = 1 << 16) -> FrameSplitter:
    return FrameSplitter("bedrock", most)


def test_split_at_any_byte():
    for at in range(len(STREAM)):
        one = splitter()
        assert one.feed(STREAM[:at]) + one.feed(STREAM[at:]) == EVENTS
    one = splitter()
    assert b"".join(one.feed(STREAM[at : at + 1]) for at in range(len(STREAM))) == EVENTS


def test_any_damaged_byte_is_an_error():
    for at in range(len(STREAM)):
        damaged = STREAM[:at] + bytes([STREAM[at] ^ 1]) + STREAM[at + 1 :]
        with pytest.raises((UpstreamError, SseTooLongError)):
            splitter().feed(damaged)


def test_a_large_message_is_refused_by_its_prelude():
    prelude = struct.pack(">II", 70_000, 0)
    with pytest.raises(SseTooLongError):
        splitter().feed(prelude + struct.pack(">I", binascii.crc32(prelude)))


def test_headers_of_all_types_are_skipped():
    values = [(0, b""), (1, b""), (2, b"a"), (3, b"ab"), (4, b"abcd"), (5, b"x" * 8)]
    values += [(6, b"\x00\x02ab"), (8, b"x" * 8), (9, b"x" * 16)]
    headers = b"".join(b"\x01h" + bytes([kind]) + value for kind, value in values)
    for name, value in ((b":message-type", b"event"), (b":event-type", b"metadata")):
        headers += bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
    prelude = struct.pack(">II", 16 + len(headers) + 2, len(headers))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + b"{}"
    message += struct.pack(">I", binascii.crc32(message))
    assert splitter().feed(message) == b"event: metadata\ndata: {}\n\n"


def test_line_breaks_of_a_payload_are_no_end():
    assert splitter().feed(wire.frame("event", "metadata", b'{\r\n"a":1\n}')) == (
        b'event: metadata\ndata: {  "a":1 }\n\n'
    )


@pytest.mark.parametrize(
    "message",
    [
        wire.frame("event", "meta\ndata: x", b"{}"),
        wire.frame("strange", "metadata", b"{}"),
        wire.frame("exception", "throttlingException", b"{"),
        wire.frame("event", "chunk", b'{"bytes":"*"}'),
    ],
)
def test_malformed_messages_are_errors(message: bytes):
    with pytest.raises(UpstreamError):
        splitter().feed(message)

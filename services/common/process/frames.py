"""Frames between a process and its child over a pipe: a JSON head, followed by bytes."""

import struct
from typing import IO, Any

import orjson

_SIZES = struct.Struct("<IQ")  # sizes of the head and of the content


def write_frame(to: IO[bytes], head: Any, *content: bytes) -> None:
    """Write a frame; its content may consist of several parts.

    `head` is an object that `orjson` serializes, or bytes of JSON.
    """
    packed = head if isinstance(head, bytes) else orjson.dumps(head)
    to.write(_SIZES.pack(len(packed), sum(map(len, content))))
    to.write(packed)
    for part in content:
        to.write(part)
    to.flush()


def read_frame(
    source: IO[bytes], *, max_head: int | None = None, max_content: int | None = None
) -> tuple[Any, bytes]:
    """Read a frame; return its parsed head and its content.

    Raises:
        EOFError: the other end is closed.
        ValueError: the head or the content is too large, or the head is not JSON.
    """
    head_size, content_size = _SIZES.unpack(_read(source, _SIZES.size))
    if max_head is not None and head_size > max_head:
        raise ValueError("the head of a frame is too large")
    if max_content is not None and content_size > max_content:
        raise ValueError("the content of a frame is too large")
    head = orjson.loads(_read(source, head_size))
    return head, _read(source, content_size)


def _read(source: IO[bytes], size: int) -> bytes:
    read = source.read(size)
    if len(read) < size:
        raise EOFError
    return read

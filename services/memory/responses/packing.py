"""Responses as the bytes of their rows; large ones are written and read in a thread. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from gateway.memory.v1.responses_pb2 import (
    ResponseContent,
    ResponseItem,
    ResponseItems,
)
from services.memory.transcript.offload import offload_if

# Bytes charged for a response beside its content.
_ROW_BYTES = 512
_LARGE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class PackedContent:
    """A response's content as it is written to a row."""

    body: bytes
    output: bytes
    events: bytes

    @classmethod
    async def of(cls, content: ResponseContent) -> Self:
        """Return the bytes of a content."""
        return cls(content.body, await pack_items(content.output), content.events)

    def size(self, input_bytes: int) -> int:
        """Return the bytes that are charged for it and for an input of so many bytes."""
        return _ROW_BYTES + input_bytes + len(self.body) + len(self.output) + len(self.events)


async def pack_items(items: Iterable[ResponseItem]) -> bytes:
    """Return items as one value of a row."""
    packed = ResponseItems(items=items)
    return await offload_if(packed.ByteSize() > _LARGE, packed.SerializeToString)


async def unpack_items(packed: Iterable[bytes]) -> ResponseItems:
    """Return the items of several values, in order."""
    # Protocol buffers: the fields of messages that are written one after the other are joined.
    joined = b"".join(packed)
    return await offload_if(len(joined) > _LARGE, ResponseItems.FromString, joined)

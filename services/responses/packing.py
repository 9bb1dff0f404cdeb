"""Responses as the bytes of their rows; large ones are written and read in a thread."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import Row

from gateway.memory.v1.responses_pb2 import (
    ResponseContent,
    ResponseItem,
    ResponseItems,
    StoredResponse,
)
from services.common.offload import offload_if
from services.responses.records import STATE_TO_PROTO, ResponseState

# Bytes charged for a response, and for each item of its output, beside the content.
_ROW_BYTES = 512
_ITEM_BYTES = 256
_LARGE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class PackedContent:
    """A response's content as it is written to its rows.

    Attributes:
        body: the response without its output.
        output: its items.
        events: what was streamed of it.
        item_ids: the ids of its items, each once.
    """

    body: bytes
    output: bytes
    events: bytes
    item_ids: Sequence[str] = ()

    @classmethod
    async def of(cls, content: ResponseContent) -> Self:
        """Return the bytes of a content."""
        ids = list(dict.fromkeys([item.id for item in content.output]))
        return cls(content.body, await pack_items(content.output), content.events, ids)

    def size(self, input_bytes: int) -> int:
        """Return the bytes that are charged for it and for an input of so many bytes."""
        own = len(self.body) + len(self.output) + len(self.events)
        return _ROW_BYTES + _ITEM_BYTES * len(self.item_ids) + own + input_bytes


async def pack_items(items: Iterable[ResponseItem]) -> bytes:
    """Return items as one value of a row."""
    packed = ResponseItems(items=items)
    return await offload_if(packed.ByteSize() > _LARGE, packed.SerializeToString)


async def unpack_items(packed: Iterable[bytes]) -> ResponseItems:
    """Return the items of several values, in order."""
    # Protocol buffers: the fields of messages that are written one after the other are joined.
    joined = b"".join(packed)
    return await offload_if(len(joined) > _LARGE, ResponseItems.FromString, joined)


async def unpack_response(row: Row[Any], *, with_events: bool) -> StoredResponse:
    """Return the response of a row, which has the columns of its content, too."""
    output = await unpack_items([row.output])
    return StoredResponse(
        id=row.response_id,
        previous_id=row.previous_id,
        state=STATE_TO_PROTO[ResponseState(row.state)],
        background=row.background,
        created_at_ms=row.created_at_ms,
        expires_at_ms=row.expires_at_ms,
        content=ResponseContent(
            body=row.body, output=output.items, events=row.events if with_events else b""
        ),
    )

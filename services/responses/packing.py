"""Serialization of responses for their rows; large ones are handled in a thread."""

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
from services.common.process.offload import offload_if
from services.responses.records import STATE_TO_PROTO, StoredState

# Bytes charged for a response, and for each item of its output, besides the content.
_ROW_BYTES = 512
_ITEM_BYTES = 256
_LARGE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class PackedContent:
    """The content of a response, serialized for its rows.

    Attributes:
        body: the response without its output.
        output: the items of its output.
        events: the events that were streamed.
        item_ids: the ids of the output items, each once.
    """

    body: bytes
    output: bytes
    events: bytes
    item_ids: Sequence[str] = ()

    @classmethod
    async def of(cls, content: ResponseContent) -> Self:
        """Serialize the content of a response."""
        ids = list(dict.fromkeys([item.id for item in content.output]))
        return cls(content.body, await pack_items(content.output), content.events, ids)

    def size(self, input_bytes: int) -> int:
        """Return the bytes charged for the content and an input of `input_bytes` bytes."""
        own = len(self.body) + len(self.output) + len(self.events)
        return _ROW_BYTES + _ITEM_BYTES * len(self.item_ids) + own + input_bytes


async def pack_items(items: Iterable[ResponseItem]) -> bytes:
    """Serialize items as one column value."""
    packed = ResponseItems(items=items)
    return await offload_if(packed.ByteSize() > _LARGE, packed.SerializeToString)


async def unpack_items(packed: Iterable[bytes]) -> ResponseItems:
    """Parse the items of several column values, in order."""
    # Concatenated protobuf messages parse as one message with their repeated fields joined.
    joined = b"".join(packed)
    return await offload_if(len(joined) > _LARGE, ResponseItems.FromString, joined)


async def unpack_response(row: Row[Any], *, with_events: bool) -> StoredResponse:
    """Return the response of a row that includes the columns of its content."""
    output = await unpack_items([row.output])
    return StoredResponse(
        id=row.response_id,
        previous_id=row.previous_id,
        state=STATE_TO_PROTO[StoredState(row.state)],
        background=row.background,
        created_at_ms=row.created_at_ms,
        expires_at_ms=row.expires_at_ms,
        content=ResponseContent(
            body=row.body, output=output.items, events=row.events if with_events else b""
        ),
    )

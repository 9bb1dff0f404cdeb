"""A memory as its row tells it, and what is said when it is not to be had."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import or_, select

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.texts import MAX_NAME
from services.memory.storage.tables import memories

# There was a turn, whether or not one is left: an unused memory is the same as none.
WAS_USED = or_(memories.c.turns > 0, memories.c.epoch > 0)

COLUMNS = (
    memories.c.id,
    memories.c.owner_id,
    memories.c.memory_id,
    memories.c.created_at_ms,
    memories.c.updated_at_ms,
    memories.c.epoch,
    memories.c.turns,
    memories.c.messages,
    memories.c.summarised,
)


def is_memory_id(name: str) -> bool:
    """Return whether a memory can have that name."""
    return 1 <= len(name) <= MAX_NAME and name.isprintable()


@dataclass(slots=True)
class MemoryRecord:
    """A memory, apart from what was said.

    Attributes:
        id: the gateway's own name of it, never used again.
        owner_id: the user.
        memory_id: the user's name of it.
        created_at_ms: Unix milliseconds.
        updated_at_ms: Unix milliseconds of the last commit.
        epoch: how often it was rewound.
        turns: how many live turns there are, which is also the number of the last.
        messages: how many messages they have.
        summarised: number of the last turn that the summary covers, or 0.
    """

    id: str
    owner_id: str
    memory_id: str
    created_at_ms: int
    updated_at_ms: int
    epoch: int = 0
    turns: int = 0
    messages: int = 0
    summarised: int = 0


def to_record(row: Sequence[Any]) -> MemoryRecord:
    """Return the memory of a row of `COLUMNS`."""
    return MemoryRecord(*row)


def select_owned(entity_id: str, owner_id: str) -> Any:
    """Select a memory by its id and its owner."""
    return select(*COLUMNS).where(memories.c.id == entity_id, memories.c.owner_id == owner_id)


def taken_over() -> GatewayError:
    """Whoever holds the memory is not the caller any more, or it is gone: 409."""
    return GatewayError(
        errors_pb2.REASON_CONFLICT,
        "memory_id: the memory was taken over or deleted meanwhile, and nothing was remembered; "
        "try again",
        param="memory_id",
    )


def quota_exceeded(quota: int) -> GatewayError:
    """The owner has as many memories as the plan allows: 403."""
    return GatewayError(
        errors_pb2.REASON_MEMORY_QUOTA_EXCEEDED,
        f"memory_id: your plan has {quota} memories, and this would be one more; "
        "DELETE /beta/v1/memories/{memory_id} frees one",
        param="memory_id",
        limit="memory.quota",
    )


def storage_exceeded(quota: int) -> GatewayError:
    """Return the 403 of an owner whose memories take up all that the plan has."""
    return GatewayError(
        errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED,
        f"memory_id: your memories may take up {quota} bytes in all, and this turn does not fit; "
        "DELETE /beta/v1/memories/{memory_id} frees what one takes up",
        param="memory_id",
        limit="memory.storage",
    )


def busy() -> GatewayError:
    """Others hold the memory for too long: 429."""
    return GatewayError(
        errors_pb2.REASON_MEMORY_BUSY,
        "memory_id: other requests are using this memory; try again",
        param="memory_id",
    )

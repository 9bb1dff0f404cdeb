"""Memory records, and the errors raised when a memory is unavailable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from sqlalchemy import and_, bindparam, literal_column, or_, select

from gateway.errors.v1 import errors_pb2
from services.common.errors import GatewayError
from services.common.process.byte_budget import UNCHARGED
from services.common.text.texts import MAX_NAME
from services.memory.storage.tables import memories

# A memory that never had a turn counts as absent; one whose turns were all rewound does not.
WAS_USED = or_(memories.c.turns > 0, memories.c.epoch > 0)
# The content of a memory is charged twice, as its index takes up about as much again.
CONTENT_FACTOR = 2
# The predicate of the index of unused memories, in whose words a plan that uses it has to ask.
IS_UNUSED = and_(memories.c.turns == literal_column("0"), memories.c.epoch == literal_column("0"))


def is_memory_id(name: str) -> bool:
    """Return whether a name is valid for a memory."""
    return 1 <= len(name) <= MAX_NAME and name.isprintable()


@dataclass(slots=True)
class MemoryRecord:
    """The row of a memory.

    Attributes:
        id: the internal id, `entity_id` in other tables; never reused.
        owner_id: id of the user.
        memory_id: the name that the user gave the memory.
        created_at_ms: Unix milliseconds.
        updated_at_ms: Unix milliseconds of the last commit.
        epoch: number of times that the memory was rewound.
        turns: count of live turns, which is also the number of the last.
        messages: count of messages in the live turns.
        summarised: number of the last turn that the summary covers, or 0.
        size_bytes: the bytes charged for it, when the record was read.
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
    size_bytes: int = field(default=0, compare=False)

    @property
    def was_used(self) -> bool:
        """Whether the memory ever had a turn, as `WAS_USED`."""
        return self.turns > 0 or self.epoch > 0

    @property
    def is_small(self) -> bool:
        """Whether all its turns are read without being measured, and charged, before."""
        return self.size_bytes <= CONTENT_FACTOR * UNCHARGED


COLUMNS = [memories.c[one.name] for one in fields(MemoryRecord)]
# Selects a memory by its id and its owner: see `owned`. Built once: that takes longer than to
# execute it.
OWNED = select(*COLUMNS).where(
    memories.c.id == bindparam("owned_id"), memories.c.owner_id == bindparam("its_owner_id")
)


def owned(entity_id: str, owner_id: str) -> Mapping[str, str]:
    """Return the parameters of `OWNED`."""
    return {"owned_id": entity_id, "its_owner_id": owner_id}


def to_record(row: Sequence[Any]) -> MemoryRecord:
    """Return the record of a row of `COLUMNS`."""
    return MemoryRecord(*row)


def lock_lost_error() -> GatewayError:
    """Return the 409 error for a caller whose lock on a memory, or the memory itself, is gone."""
    return GatewayError(
        errors_pb2.REASON_CONFLICT,
        "memory_id: another process has taken over or deleted the memory, and this turn was not "
        "stored; try again",
        param="memory_id",
    )


def quota_exceeded(max_memories: int) -> GatewayError:
    """Return the 403 error for an owner who has as many memories as the plan allows."""
    return GatewayError(
        errors_pb2.REASON_MEMORY_QUOTA_EXCEEDED,
        f"memory_id: your plan allows {max_memories} memories; delete one with DELETE "
        "/v1/memories/{memory_id}",
        param="memory_id",
        limit="memory.quota",
    )


def check_storage(size_bytes: int, max_bytes: int) -> None:
    """Check the size of an owner's memories and responses against the owner's plan.

    Raises:
        GatewayError: memory_storage_exceeded.
    """
    if size_bytes > max_bytes:
        raise GatewayError(
            errors_pb2.REASON_MEMORY_STORAGE_EXCEEDED,
            f"memory_id: your plan allows {max_bytes} bytes of memories, which this turn would "
            "exceed; delete a memory with DELETE /v1/memories/{memory_id}",
            param="memory_id",
            limit="memory.storage",
        )


def busy() -> GatewayError:
    """Return the 429 error for a caller that waited too long for a lock on a memory."""
    return GatewayError(
        errors_pb2.REASON_MEMORY_BUSY,
        "memory_id: other requests are using this memory; try again",
        param="memory_id",
    )

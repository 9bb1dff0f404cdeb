"""The tables of memories: memories, transcripts and claims on locks.

A memory belongs to an owner (see `services.common.owners`), who chose its name. Other tables refer
to it by its id, which is never used again: a memory that is deleted and created again has another.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
    text,
)

from services.common.database import metadata
from services.common.owners import owners

MAX_MEMORY_ID = 256

_UNUSED = text("turns = 0 AND epoch = 0")
_LIVE = text("superseded_at_ms IS NULL")

# `reservations` counts the calls that may commit the first turn; unused once there is one.
memories = Table(
    "memories",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner_id", String(64), ForeignKey(owners.c.owner_id), nullable=False),
    Column("memory_id", String(MAX_MEMORY_ID), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("turns", BigInteger, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("summarised", BigInteger, nullable=False),
    Column("reservations", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    UniqueConstraint("owner_id", "memory_id"),
    Index("ix_memories_owner_id", "owner_id", "updated_at_ms", "id"),
    Index("ix_memories_unused", "updated_at_ms", sqlite_where=_UNUSED),
)

# The messages that one commit added to one turn: `content` is a serialized gateway.memory.v1.Turn
# with messages only, the first of which has the index `first_message` in the whole transcript. A
# turn consists of its live parts in order, so that a turn of a thousand tool calls is not written
# again with each.
parts = Table(
    "memory_parts",
    metadata,
    Column("entity_id", String(64), ForeignKey("memories.id"), primary_key=True),
    Column("first_message", BigInteger, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("messages", BigInteger, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("open", Boolean, nullable=False),
    Column("superseded_at_ms", BigInteger),
    Column("content", LargeBinary, nullable=False),
    Index(
        "ix_memory_parts_live",
        "entity_id",
        "turn",
        "first_message",
        unique=True,
        sqlite_where=_LIVE,
    ),
)

# The keys of the live messages, `CHUNK` to a row; the last row may have fewer.
keys = Table(
    "memory_keys",
    metadata,
    Column("entity_id", String(64), ForeignKey("memories.id"), primary_key=True),
    Column("chunk", BigInteger, primary_key=True, autoincrement=False),
    Column("packed", LargeBinary, nullable=False),
)

# The last ticket of each lock queue. The row is locked while a claim gets the next ticket; the
# memory's own row is not, so that no claim waits for a commit.
queues = Table(
    "memory_queues",
    metadata,
    Column("entity_id", String(64), ForeignKey("memories.id"), primary_key=True),
    Column("mode", String(16), primary_key=True),
    Column("tickets", BigInteger, nullable=False),
)

# The claims that hold or wait for a lock, in the order of their tickets. An expired claim does not
# count, whether or not its row is still there. The id begins with the name of its process, so that
# claims of dead processes can be found.
claims = Table(
    "memory_claims",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("entity_id", String(64), ForeignKey("memories.id"), nullable=False),
    Column("mode", String(16), nullable=False),
    Column("ticket", BigInteger, nullable=False),
    Column("ends_at_ms", BigInteger, nullable=False),
    UniqueConstraint("entity_id", "mode", "ticket"),
)

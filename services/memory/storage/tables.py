"""The tables of memories: what each is, its transcript, and who holds it.

A memory is an owner's and has a name of the owner's choice. Everything else hangs on its
id, which is never used again: one that is forgotten and begun anew has another.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
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

MAX_MEMORY_ID = 256

_UNUSED = text("turns = 0 AND epoch = 0")
_LIVE = text("superseded_at_ms IS NULL")

# How many memories each owner has, and how many bytes they have. It changes with them in one
# transaction, and the statement that adds to it holds the quota.
owners = Table(
    "memory_owners",
    metadata,
    Column("owner_id", String(64), primary_key=True),
    Column(
        "memories", BigInteger, CheckConstraint("memories >= 0", name="memories"), nullable=False
    ),
    Column("size_bytes", BigInteger, nullable=False),
)

# `reservations` counts the calls that may yet make the first turn; it means nothing once
# there was one.
memories = Table(
    "memories",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner_id", String(64), ForeignKey("memory_owners.owner_id"), nullable=False),
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

# What one commit added to one turn: `content` is a serialized gateway.memory.v1.Turn of
# messages alone, the first of them being `first_message` of the whole transcript. A turn
# is all its live parts in order, so that one of a thousand calls of tools is not written
# anew with each.
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

# The keys of the live transcript's messages, `CHUNK` to a row; the last may have fewer.
keys = Table(
    "memory_keys",
    metadata,
    Column("entity_id", String(64), ForeignKey("memories.id"), primary_key=True),
    Column("chunk", BigInteger, primary_key=True, autoincrement=False),
    Column("packed", LargeBinary, nullable=False),
)

# The last ticket that was given out for a memory in a mode. Its row is locked while a claim
# gets the next one; the memory's own row is not, so that none waits for a commit.
queues = Table(
    "memory_queues",
    metadata,
    Column("entity_id", String(64), ForeignKey("memories.id"), primary_key=True),
    Column("mode", String(16), primary_key=True),
    Column("tickets", BigInteger, nullable=False),
)

# Who holds a memory or waits for it, in either mode, in the order of their tickets. A
# claim whose time is over is nobody's, whether or not its row is still there. Its id begins
# with the name of the process that made it, where others can tell that one from a dead one.
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

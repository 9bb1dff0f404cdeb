"""The tables of background jobs and of summaries."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from services.common.database import metadata

_LIVE = text("NOT superseded")

# Jobs that are not finished. `entity_id` is null for text outside of any memory; such rows are
# never equal. `variant` distinguishes jobs of one kind about the same turns. `holder` has claimed
# the job until `ends_at_ms`.
jobs = Table(
    "memory_jobs",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("owner_id", String(64), nullable=False),
    Column("entity_id", String(64), ForeignKey("memories.id")),
    Column("first_turn", BigInteger, nullable=False),
    Column("last_turn", BigInteger, nullable=False),
    Column("variant", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("due_at_ms", BigInteger, nullable=False),
    Column("promoted", Boolean, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("holder", String(64), nullable=False),
    Column("ends_at_ms", BigInteger, nullable=False),
    UniqueConstraint("entity_id", "kind", "first_turn", "last_turn", "variant"),
    Index("ix_memory_jobs_due_at_ms", "due_at_ms"),
    Index("ix_memory_jobs_owner_id", "owner_id"),
)

# A summary covers all turns up to `last_turn`; those from `first_turn` on are not covered by the
# summary before. Of the summaries that are not superseded the last is the current one.
summaries = Table(
    "memory_summaries",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("entity_id", String(64), ForeignKey("memories.id"), nullable=False),
    Column("first_turn", BigInteger, nullable=False),
    Column("last_turn", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
    Column("degraded", Boolean, nullable=False),
    Column("superseded", Boolean, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Index(
        "ix_memory_summaries_live",
        "entity_id",
        "last_turn",
        unique=True,
        sqlite_where=_LIVE,
    ),
    Index("ix_memory_summaries_entity_id", "entity_id"),
)

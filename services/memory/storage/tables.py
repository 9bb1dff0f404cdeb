"""The tables of memories: transcripts, locks, jobs, summaries, the archive, and facts.

A memory belongs to an owner (see `services.common.storage.owners`), who chose its name. Other
tables refer to it by its id, which is never reused: a memory that is deleted and created again
gets a new id.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from services.common.storage.database import metadata
from services.common.storage.owners import owners

MAX_MEMORY_ID = 256

_UNUSED = text("turns = 0 AND epoch = 0")
_LIVE_PART = text("superseded_at_ms IS NULL")
_LIVE_SUMMARY = text("NOT superseded")
_LIVE_FACT = text("superseded_by IS NULL")

# `reservations` counts the calls that may commit the first turn; unused once a turn exists.
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
        sqlite_where=_LIVE_PART,
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

# Jobs that are not finished. `entity_id` is null for text outside of any memory; the UNIQUE
# constraint does not apply to such rows. `variant` distinguishes jobs of one kind about the same
# turns. `holder` has claimed the job until `ends_at_ms`.
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

# A summary covers all turns up to `last_turn`; the summary before it covers those before
# `first_turn`. The last summary that is not superseded is the current one.
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
        sqlite_where=_LIVE_SUMMARY,
    ),
    Index("ix_memory_summaries_entity_id", "entity_id"),
)

# The archive of a memory or of a vector store: its user's id, which queries for a user join, the
# counts that BM25 needs, and the number of removals of turns.
archives = Table(
    "memory_archives",
    metadata,
    Column("entity_id", String(64), primary_key=True),
    Column("owner_id", String(64), nullable=False),
    Column("turns", BigInteger, nullable=False),
    Column("terms", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
)

# A turn and its count of terms.
archived_turns = Table(
    "memory_archive_turns",
    metadata,
    Column("entity_id", String(64), ForeignKey("memory_archives.entity_id"), primary_key=True),
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("terms", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
)

# The postings of a term in a block of turns, as `postings` packs them.
postings = Table(
    "memory_archive_postings",
    metadata,
    Column("entity_id", String(64), ForeignKey("memory_archives.entity_id"), primary_key=True),
    Column("term", BigInteger, primary_key=True, autoincrement=False),
    Column("block", BigInteger, primary_key=True, autoincrement=False),
    Column("postings", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# The vector of a turn by a model, normalized to length 1, as 32-bit floats.
vectors = Table(
    "memory_archive_vectors",
    metadata,
    Column("entity_id", String(64), primary_key=True),
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("model", Text, primary_key=True),
    Column("vector", LargeBinary, nullable=False),
    ForeignKeyConstraint(
        ["entity_id", "turn"],
        ["memory_archive_turns.entity_id", "memory_archive_turns.turn"],
        name="fk_memory_archive_vectors_turn",
    ),
)

# The quantized vectors of a block of turns, as `binary_quantization` packs them.
signatures = Table(
    "memory_archive_signatures",
    metadata,
    Column("entity_id", String(64), ForeignKey("memory_archives.entity_id"), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("dimensions", Integer, primary_key=True, autoincrement=False),
    Column("block", BigInteger, primary_key=True, autoincrement=False),
    Column("signatures", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# Each fact is superseded by the next one with the same topic and sub-topic, in the order in which
# they were last said; `place` breaks ties.
facts = Table(
    "memory_facts",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner_id", String(64), nullable=False),
    Column("topic", String(64), nullable=False),
    Column("sub_topic", String(64), nullable=False),
    Column("value", Text, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Column("place", BigInteger, nullable=False),
    Column("superseded_by", String(64)),
    Index(
        "ix_memory_facts_live",
        "owner_id",
        "topic",
        "sub_topic",
        unique=True,
        sqlite_where=_LIVE_FACT,
    ),
    Index("ix_memory_facts_owner_id", "owner_id", "topic", "sub_topic"),
)

# The turns in which facts were said; "" and 0 outside of any memory.
sources = Table(
    "memory_fact_sources",
    metadata,
    Column("fact_id", String(64), ForeignKey("memory_facts.id"), primary_key=True),
    Column("entity_id", String(64), primary_key=True),
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Index("ix_memory_fact_sources_entity_id", "entity_id", "turn"),
)

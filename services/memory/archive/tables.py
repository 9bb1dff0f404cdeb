"""The tables of the archive: turns, the postings of their terms, their vectors.

Every row belongs to one memory. `archives` alone names the user: each query that reads
for a user goes through it.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
)

from services.common.database import metadata

# What ranking needs to know of a memory as a whole: how many turns, of how many terms.
archives = Table(
    "memory_archives",
    metadata,
    Column("entity_id", String(64), primary_key=True),
    Column("owner_id", String(64), nullable=False),
    Column("turns", BigInteger, nullable=False),
    Column("terms", BigInteger, nullable=False),
)

# A turn, its number of terms, and the first turn of the session that it was said in.
turns = Table(
    "memory_archive_turns",
    metadata,
    Column("entity_id", String(64), ForeignKey("memory_archives.entity_id"), primary_key=True),
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("session", BigInteger, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("terms", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
)

# The turns of a block in which a term comes up, as `postings` packs them.
postings = Table(
    "memory_archive_postings",
    metadata,
    Column("entity_id", String(64), ForeignKey("memory_archives.entity_id"), primary_key=True),
    Column("term", BigInteger, primary_key=True, autoincrement=False),
    Column("block", BigInteger, primary_key=True, autoincrement=False),
    Column("postings", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# The vector that a model gave for a turn, of length 1, as 32-bit floats.
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

# The signs of the vectors of a block of turns, as `signatures` packs them, for a first look.
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

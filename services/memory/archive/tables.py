"""The tables of the archive: turns, the postings of their terms, their vectors.

Every row belongs to one memory. Only `archives` has the user's id: queries for a user join it.
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

# The counts of a memory's archive that BM25 needs.
archives = Table(
    "memory_archives",
    metadata,
    Column("entity_id", String(64), primary_key=True),
    Column("owner_id", String(64), nullable=False),
    Column("turns", BigInteger, nullable=False),
    Column("terms", BigInteger, nullable=False),
)

# A turn and its count of terms.
turns = Table(
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

"""The tables of vector stores. The index of their text is that of memories (`storage.tables`)."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from services.common.storage.database import metadata

# `metadata` is JSON. `expires_at_ms` is 0 if the vector store does not expire. `next_chunk` is the
# number of the next chunk, also after the removal of files; -1 if an expired vector store has been
# emptied. A deleted vector store has its row until a job has removed its index.
vector_stores = Table(
    "vector_stores",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("user_id", String(64), nullable=False),
    Column("name", String(256), nullable=False),
    Column("description", String(512), nullable=False),
    Column("metadata", LargeBinary, nullable=False),
    Column("expires_after_days", Integer),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("last_active_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("next_chunk", BigInteger, nullable=False),
    Column("is_deleted", Boolean, nullable=False),
    Index("ix_vector_stores_user_id", "user_id", "id"),
    Index("ix_vector_stores_expires_at_ms", "expires_at_ms"),
)

# `batch_id` is "" for a file that was added alone. The chunks of a file have the numbers from
# `first_chunk` on, -1 until it is known how many there are; the first `indexed` are stored.
vector_store_files = Table(
    "vector_store_files",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("store_id", String(64), ForeignKey("vector_stores.id"), nullable=False),
    Column("user_id", String(64), nullable=False),
    Column("key_id", String(64), nullable=False),
    Column("file_id", String(64), nullable=False),
    Column("batch_id", String(64), nullable=False),
    Column("filename", String(255), nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("error_code", String(32), nullable=False),
    Column("error_message", Text, nullable=False),
    Column("attributes", LargeBinary, nullable=False),
    Column("max_chunk_tokens", Integer, nullable=False),
    Column("overlap_tokens", Integer, nullable=False),
    Column("first_chunk", BigInteger, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("indexed", Integer, nullable=False),
    Column("usage_bytes", BigInteger, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    UniqueConstraint("store_id", "file_id"),
    Index("ix_vector_store_files_store_id", "store_id", "id"),
    Index("ix_vector_store_files_user_id", "user_id"),
    Index("ix_vector_store_files_file_id", "file_id"),
    Index("ix_vector_store_files_batch_id", "batch_id", "id"),
)

vector_store_batches = Table(
    "vector_store_batches",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("store_id", String(64), ForeignKey("vector_stores.id"), nullable=False),
    Column("is_cancelled", Boolean, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Index("ix_vector_store_batches_store_id", "store_id"),
)

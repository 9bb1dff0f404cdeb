"""Vector stores, their files, and batches of files."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    op.create_table(
        "vector_stores",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(256), nullable=False),
        sa.Column("description", sa.String(512), nullable=False),
        sa.Column("metadata", sa.LargeBinary(), nullable=False),
        sa.Column("expires_after_days", sa.Integer(), nullable=True),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_active_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_chunk", sa.BigInteger(), nullable=False),
        sa.Column("is_deleted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_vector_stores"),
    )
    op.create_index("ix_vector_stores_user_id", "vector_stores", ["user_id", "id"])
    op.create_index("ix_vector_stores_expires_at_ms", "vector_stores", ["expires_at_ms"])
    _create_files()
    op.create_table(
        "vector_store_batches",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("store_id", sa.String(64), nullable=False),
        sa.Column("is_cancelled", sa.Boolean(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_vector_store_batches"),
        _of_store("vector_store_batches"),
    )
    op.create_index("ix_vector_store_batches_store_id", "vector_store_batches", ["store_id"])


def _create_files() -> None:
    op.create_table(
        "vector_store_files",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("store_id", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("file_id", sa.String(64), nullable=False),
        sa.Column("batch_id", sa.String(64), nullable=False),
        sa.Column("filename", sa.String(255), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("error_code", sa.String(32), nullable=False),
        sa.Column("error_message", sa.Text(), nullable=False),
        sa.Column("attributes", sa.LargeBinary(), nullable=False),
        sa.Column("max_chunk_tokens", sa.Integer(), nullable=False),
        sa.Column("overlap_tokens", sa.Integer(), nullable=False),
        sa.Column("first_chunk", sa.BigInteger(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("indexed", sa.Integer(), nullable=False),
        sa.Column("usage_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_vector_store_files"),
        sa.UniqueConstraint("store_id", "file_id", name="uq_vector_store_files_store_id_file_id"),
        _of_store("vector_store_files"),
    )
    op.create_index("ix_vector_store_files_store_id", "vector_store_files", ["store_id", "id"])
    op.create_index("ix_vector_store_files_user_id", "vector_store_files", ["user_id"])
    op.create_index("ix_vector_store_files_file_id", "vector_store_files", ["file_id"])
    op.create_index("ix_vector_store_files_batch_id", "vector_store_files", ["batch_id", "id"])


def _of_store(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["store_id"], ["vector_stores.id"], name=f"fk_{table}_store_id")

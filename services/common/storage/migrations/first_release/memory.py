"""Memories with their transcripts, and the claims of readers and writers."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    _create_memories()
    _create_transcripts()
    _create_claims()


def _create_memories() -> None:
    op.create_table(
        "memory_owners",
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("memories", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("owner_id", name="pk_memory_owners"),
        sa.CheckConstraint("memories >= 0", name="ck_memory_owners_memories"),
    )
    op.create_table(
        "memories",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("memory_id", sa.String(256), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.Column("summarised", sa.BigInteger(), nullable=False),
        sa.Column("reservations", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_memories"),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["memory_owners.owner_id"], name="fk_memories_owner_id"
        ),
        sa.UniqueConstraint("owner_id", "memory_id", name="uq_memories_owner_id_memory_id"),
    )
    op.create_index("ix_memories_owner_id", "memories", ["owner_id", "updated_at_ms", "id"])
    op.create_index(
        "ix_memories_unused",
        "memories",
        ["updated_at_ms"],
        sqlite_where=sa.text("turns = 0 AND epoch = 0"),
        postgresql_where=sa.text("turns = 0 AND epoch = 0"),
    )


def _create_transcripts() -> None:
    op.create_table(
        "memory_parts",
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("first_message", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("superseded_at_ms", sa.BigInteger()),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", "first_message", "epoch", name="pk_memory_parts"),
        sa.ForeignKeyConstraint(["entity_id"], ["memories.id"], name="fk_memory_parts_entity_id"),
    )
    op.create_index(
        "ix_memory_parts_live",
        "memory_parts",
        ["entity_id", "turn", "first_message"],
        unique=True,
        sqlite_where=sa.text("superseded_at_ms IS NULL"),
        postgresql_where=sa.text("superseded_at_ms IS NULL"),
    )
    op.create_table(
        "memory_keys",
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("chunk", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", "chunk", name="pk_memory_keys"),
        sa.ForeignKeyConstraint(["entity_id"], ["memories.id"], name="fk_memory_keys_entity_id"),
    )


def _create_claims() -> None:
    op.create_table(
        "memory_queues",
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("tickets", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("entity_id", "mode", name="pk_memory_queues"),
        sa.ForeignKeyConstraint(["entity_id"], ["memories.id"], name="fk_memory_queues_entity_id"),
    )
    op.create_table(
        "memory_claims",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("ticket", sa.BigInteger(), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_memory_claims"),
        sa.ForeignKeyConstraint(["entity_id"], ["memories.id"], name="fk_memory_claims_entity_id"),
        sa.UniqueConstraint(
            "entity_id", "mode", "ticket", name="uq_memory_claims_entity_id_mode_ticket"
        ),
    )

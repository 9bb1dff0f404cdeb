"""Background work of memories with its summaries, and facts about users."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    _create_jobs()
    _create_summaries()
    _create_facts()


def _create_jobs() -> None:
    op.create_table(
        "memory_jobs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("entity_id", sa.String(64)),
        sa.Column("first_turn", sa.BigInteger(), nullable=False),
        sa.Column("last_turn", sa.BigInteger(), nullable=False),
        sa.Column("variant", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("due_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("promoted", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_memory_jobs"),
        sa.ForeignKeyConstraint(["entity_id"], ["memories.id"], name="fk_memory_jobs_entity_id"),
        sa.UniqueConstraint(
            "entity_id",
            "kind",
            "first_turn",
            "last_turn",
            "variant",
            name="uq_memory_jobs_entity_id_kind_first_turn_last_turn_variant",
        ),
    )
    op.create_index("ix_memory_jobs_due_at_ms", "memory_jobs", ["due_at_ms"])
    op.create_index("ix_memory_jobs_owner_id", "memory_jobs", ["owner_id"])


def _create_summaries() -> None:
    op.create_table(
        "memory_summaries",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("first_turn", sa.BigInteger(), nullable=False),
        sa.Column("last_turn", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("degraded", sa.Boolean(), nullable=False),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_memory_summaries"),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["memories.id"], name="fk_memory_summaries_entity_id"
        ),
    )
    op.create_index(
        "ix_memory_summaries_live",
        "memory_summaries",
        ["entity_id", "last_turn"],
        unique=True,
        sqlite_where=sa.text("NOT superseded"),
        postgresql_where=sa.text("NOT superseded"),
    )
    op.create_index("ix_memory_summaries_entity_id", "memory_summaries", ["entity_id"])


def _create_facts() -> None:
    op.create_table(
        "memory_facts",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("topic", sa.String(64), nullable=False),
        sa.Column("sub_topic", sa.String(64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("superseded_by", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="pk_memory_facts"),
    )
    op.create_index(
        "ix_memory_facts_live",
        "memory_facts",
        ["owner_id", "topic", "sub_topic"],
        unique=True,
        sqlite_where=sa.text("superseded_by IS NULL"),
        postgresql_where=sa.text("superseded_by IS NULL"),
    )
    op.create_index("ix_memory_facts_owner_id", "memory_facts", ["owner_id", "topic", "sub_topic"])
    op.create_table(
        "memory_fact_sources",
        sa.Column("fact_id", sa.String(64), nullable=False),
        sa.Column("entity_id", sa.String(64), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("fact_id", "entity_id", "turn", name="pk_memory_fact_sources"),
        sa.ForeignKeyConstraint(
            ["fact_id"], ["memory_facts.id"], name="fk_memory_fact_sources_fact_id"
        ),
    )
    op.create_index(
        "ix_memory_fact_sources_entity_id", "memory_fact_sources", ["entity_id", "turn"]
    )

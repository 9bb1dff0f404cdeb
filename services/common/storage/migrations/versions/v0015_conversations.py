"""Stored conversations, their items, and which responses were generated from them."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "conversations",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("notes", sa.LargeBinary(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("item_count", sa.BigInteger(), nullable=False),
        sa.Column("last_position", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["memory_owners.owner_id"], name="fk_conversations_owner_id"
        ),
    )
    op.create_index("ix_conversations_expires_at_ms", "conversations", ["expires_at_ms"])
    op.create_table(
        "conversation_items",
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", sa.String(128), nullable=False),
        sa.Column("json", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "position", name="pk_conversation_items"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_conversation_items_conversation_id"
        ),
        sa.UniqueConstraint(
            "conversation_id", "item_id", name="uq_conversation_items_conversation_id_item_id"
        ),
    )
    op.create_table(
        "response_origins",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("last_position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_response_origins"),
        sa.ForeignKeyConstraint(
            ["id"], ["responses.id"], name="fk_response_origins_id", ondelete="CASCADE"
        ),
    )

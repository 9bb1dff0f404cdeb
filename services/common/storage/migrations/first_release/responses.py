"""Stored responses, conversations and chat completions."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """Create the tables."""
    _create_responses()
    _create_conversations()
    _create_chat_completions()


def _create_responses() -> None:
    op.create_table(
        "responses",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("response_id", sa.String(64), nullable=False),
        sa.Column("previous_id", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("background", sa.Boolean(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("ends_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_responses"),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["memory_owners.owner_id"], name="fk_responses_owner_id"
        ),
        sa.UniqueConstraint("owner_id", "response_id", name="uq_responses_owner_id_response_id"),
    )
    op.create_index("ix_responses_expires_at_ms", "responses", ["expires_at_ms"])
    op.create_index(
        "ix_responses_ends_at_ms",
        "responses",
        ["ends_at_ms"],
        sqlite_where=sa.text("holder <> ''"),
        postgresql_where=sa.text("holder <> ''"),
    )
    op.create_table(
        "response_contents",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("input", sa.LargeBinary(), nullable=False),
        sa.Column("output", sa.LargeBinary(), nullable=False),
        sa.Column("events", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_response_contents"),
        sa.ForeignKeyConstraint(["id"], ["responses.id"], name="fk_response_contents_id"),
    )
    op.create_table(
        "response_items",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("item_id", sa.String(128), nullable=False),
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", "item_id", name="pk_response_items"),
        sa.ForeignKeyConstraint(["id"], ["responses.id"], name="fk_response_items_id"),
    )
    op.create_index("ix_response_items_owner_id", "response_items", ["owner_id", "item_id"])


def _create_conversations() -> None:
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
    op.create_index(
        "ix_conversations_owner_id", "conversations", ["owner_id", "expires_at_ms", "id"]
    )
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


def _create_chat_completions() -> None:
    op.create_table(
        "chat_completions",
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("model", sa.String(256), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "id", name="pk_chat_completions"),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["memory_owners.owner_id"], name="fk_chat_completions_owner_id"
        ),
    )
    op.create_index(
        "ix_chat_completions_created", "chat_completions", ["owner_id", "created_at_ms", "id"]
    )
    op.create_index("ix_chat_completions_expires_at_ms", "chat_completions", ["expires_at_ms"])
    op.create_table(
        "chat_completion_contents",
        sa.Column("owner_id", sa.String(64), nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("completion", sa.LargeBinary(), nullable=False),
        sa.Column("messages", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "id", name="pk_chat_completion_contents"),
        sa.ForeignKeyConstraint(
            ["owner_id", "id"],
            ["chat_completions.owner_id", "chat_completions.id"],
            name="fk_chat_completion_contents_owner_id",
        ),
    )

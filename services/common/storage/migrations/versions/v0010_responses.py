"""Stored responses, and who generates them."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Make the tables."""
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

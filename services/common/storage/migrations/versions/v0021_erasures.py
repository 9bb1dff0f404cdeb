"""Erasures of users' data, and indexes of the conversations and the groups of a user."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_ERASURES = "erasures"
_COUNTS = "erased_items"
_FOUND_BY_USER = (("conversations", "owner_id"), ("article_groups", "creator_id"))


def upgrade() -> None:
    """Make the tables and the indexes."""
    op.create_table(
        _ERASURES,
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("requested_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_at_ms", sa.BigInteger(), nullable=True),
        sa.Column("due_at_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("user_id", name=f"pk_{_ERASURES}"),
    )
    for name in ("due_at_ms", "finished_at_ms"):
        op.create_index(f"ix_{_ERASURES}_{name}", _ERASURES, [name])
    op.create_table(
        _COUNTS,
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("items", sa.BigInteger(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "kind", name=f"pk_{_COUNTS}"),
        sa.ForeignKeyConstraint(
            ["user_id"], [f"{_ERASURES}.user_id"], name=f"fk_{_COUNTS}_user_id"
        ),
    )
    for table, column in _FOUND_BY_USER:
        op.create_index(f"ix_{table}_{column}", table, [column])
